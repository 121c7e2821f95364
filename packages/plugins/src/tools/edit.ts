/**
 * The `edit` tool: replaces exact text in a file and nothing else (see `edit-text`).
 *
 * Edits of one real path run one after the other, each on the content as it is then. An edit that no longer finds its
 * text in a file that has changed since the session read it says so.
 */
import { sizeOf, tool, ToolFailure, toolResult } from "@bezel/core/tool"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as FileSystem from "node:fs/promises"
import type { EditDetails } from "./contract.ts"
import { unifiedDiff } from "./diff.ts"
import type { NotReplaced } from "./edit-text.ts"
import { replaceText } from "./edit-text.ts"
import type { FileState } from "./file-state.ts"
import { attempt, checkPath, resolvePath, showPath } from "./paths.ts"
import { diffText } from "./read.ts"
import { replaceFile } from "./replace-file.ts"
import { existing } from "./write.ts"

const MAX_FILE_BYTES = 32 * 1024 * 1024

const oldText = Schema.String.annotate({
  description:
    "Text to replace, exactly as it is in the file with its indentation, without line numbers. It must occur once, unless all is true."
})
const newText = Schema.String.annotate({ description: "What to put in its place." })
const all = Schema.Boolean.annotate({ description: "Replace every occurrence. Default false." })

const Input = Schema.Struct({
  path: Schema.String.annotate({ description: "File to edit, relative to the workspace or absolute." }),
  oldText: Schema.optionalKey(oldText),
  newText: Schema.optionalKey(newText),
  all: Schema.optionalKey(all),
  edits: Schema.optionalKey(
    Schema.Array(Schema.Struct({ oldText, newText, all: Schema.optionalKey(all) })).annotate({
      description:
        "Instead of oldText and newText: several edits of this file, one after the other, all of them or none."
    })
  )
})
type Input = typeof Input.Type

interface Edit {
  readonly oldText: string
  readonly newText: string
  readonly all: boolean
}

/** The edits that are asked for, whichever way. */
const editsOf = (input: Input): Effect.Effect<ReadonlyArray<Edit>, ToolFailure> => {
  const fail = (message: string) => Effect.fail(new ToolFailure({ message }))
  const single = input.oldText !== undefined || input.newText !== undefined
  const several = input.edits ?? []
  if (single && several.length > 0) return fail("Give either oldText and newText, or edits, not both.")
  if (!single && several.length === 0) return fail("Nothing to edit: give oldText and newText, or edits.")
  if (single && (input.oldText === undefined || input.newText === undefined)) {
    return fail(`${input.oldText === undefined ? "oldText" : "newText"} is missing; an edit needs both.`)
  }
  const edits = single ? [{ oldText: input.oldText ?? "", newText: input.newText ?? "", all: input.all }] : several
  return edits.some((edit) => edit.oldText === "")
    ? fail("oldText is empty. Give the text to replace; to create a file use write.")
    : Effect.succeed(edits.map((edit) => ({ ...edit, all: edit.all ?? false })))
}

/** All edits, each on what the one before it made; or what is wrong with the first that does not fit, and its number. */
const replaceAll = (bytes: Buffer, edits: ReadonlyArray<Edit>) => {
  let content = bytes
  let count = 0
  let line = Number.POSITIVE_INFINITY
  for (const [index, edit] of edits.entries()) {
    const replaced = replaceText(content, edit.oldText, edit.newText, edit.all)
    if ("reason" in replaced) return { problem: replaced, number: index + 1, content }
    content = replaced.content
    count += replaced.count
    line = Math.min(line, replaced.line)
  }
  return { content, count, line }
}

export const editTool = (directory: string, files: FileState) =>
  tool({
    description:
      "Replaces exact text in a file. Everything else stays as it is, byte for byte; line ends follow those of the place. " +
      "Give enough surrounding lines to make oldText occur once. Several changes of one file belong in one call, as edits.",
    input: Input,
    permission: ({ path }) => ({ access: "edit", subjects: [resolvePath(directory, path)] }),
    execute: Effect.fn("tools.edit")(function*(input, call) {
      yield* checkPath(input.path)
      const path = resolvePath(directory, input.path)
      const shown = showPath(directory, path)
      const edits = yield* editsOf(input)
      return yield* files.exclusive(
        path,
        Effect.gen(function*() {
          const before = yield* existing(path, shown)
          if (before === null) {
            return yield* new ToolFailure({ message: `There is no file ${shown}. To create it use write.` })
          }
          if (before.size > BigInt(MAX_FILE_BYTES)) {
            const size = sizeOf(Number(before.size))
            return yield* new ToolFailure({
              message: `${shown} is too large to edit (${size}); change it with a command instead.`
            })
          }
          const bytes = yield* attempt("Cannot read", shown, () => FileSystem.readFile(path))
          const replaced = replaceAll(bytes, edits)
          if ("problem" in replaced) {
            const changed = files.compare(call.sessionID, path, before) === "changed"
            const which = edits.length === 1 ? "" : `Edit ${replaced.number} of ${edits.length}, so none was made: `
            return yield* new ToolFailure({
              message: which + explain(shown, replaced.problem, changed, replaced.content)
            })
          }
          const after = yield* attempt("Cannot write", shown, () => replaceFile(path, replaced.content, before))
          files.saw(call.sessionID, path, after)
          const oldText = diffText(bytes)
          const newText = diffText(replaced.content)
          const details: EditDetails = {
            path,
            replacements: replaced.count,
            firstLine: replaced.line,
            diff: oldText === null || newText === null ? null : unifiedDiff(shown, oldText, newText)
          }
          const places = replaced.count === 1
            ? `line ${replaced.line}`
            : `${replaced.count} places, first at line ${replaced.line}`
          return toolResult({ content: `Edited ${shown} (${places}).`, details })
        })
      )
    })
  })

const explain = (shown: string, problem: NotReplaced, changed: boolean, bytes: Buffer): string => {
  if (problem.reason === "identical") return `Nothing changed: oldText and newText are the same for ${shown}.`
  if (problem.reason === "several") {
    const lines = problem.lines.join(", ") + (problem.count > problem.lines.length ? ", …" : "")
    return `oldText occurs ${problem.count} times in ${shown} (lines ${lines}). Add surrounding lines until it occurs once, or set all to true.`
  }
  if (changed) {
    return `${shown} has changed since it was read, and oldText is no longer in it. Read it again, then edit.`
  }
  const near = problem.near === null ? "" : ` Line ${problem.near} differs from it only in white space.`
  const odd = isUtf8(bytes) ? "" : " The file has bytes that are not UTF-8; leave those out of oldText."
  return `oldText is not in ${shown}.${near}${odd} Read the file and copy the text exactly, without line numbers.`
}

const isUtf8 = (bytes: Buffer): boolean => {
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(bytes)
    return true
  } catch {
    return false
  }
}
