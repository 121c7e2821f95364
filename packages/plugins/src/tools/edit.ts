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

const Input = Schema.Struct({
  path: Schema.String.annotate({ description: "File to edit, relative to the workspace or absolute." }),
  oldText: Schema.String.annotate({
    description:
      "Text to replace, exactly as it is in the file with its indentation, without line numbers. It must occur once, unless all is true."
  }),
  newText: Schema.String.annotate({ description: "What to put in its place." }),
  all: Schema.optionalKey(Schema.Boolean.annotate({ description: "Replace every occurrence. Default false." }))
})

export const editTool = (directory: string, files: FileState) =>
  tool({
    description:
      "Replaces exact text in a file. Everything else stays as it is, byte for byte; line ends follow those of the place. " +
      "Give enough surrounding lines to make oldText occur once.",
    input: Input,
    permission: ({ path }) => ({ access: "edit", subjects: [resolvePath(directory, path)] }),
    execute: Effect.fn("tools.edit")(function*(input, call) {
      yield* checkPath(input.path)
      const path = resolvePath(directory, input.path)
      const shown = showPath(directory, path)
      if (input.oldText === "") {
        return yield* new ToolFailure({
          message: "oldText is empty. Give the text to replace; to create a file use write."
        })
      }
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
          const replaced = replaceText(bytes, input.oldText, input.newText, input.all ?? false)
          if ("reason" in replaced) {
            const changed = files.compare(call.sessionID, path, before) === "changed"
            return yield* new ToolFailure({ message: explain(shown, replaced, changed, bytes) })
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
