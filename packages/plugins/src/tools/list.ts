/** The `list` tool: what is in a directory, as a tree (see `walk` for what is left out). */
import { tool, toolResult } from "@bezel/core/tool"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as FileSystem from "node:fs/promises"
import type { ListDetails } from "./contract.ts"
import { attempt, checkPath, resolvePath, showPath } from "./paths.ts"
import type { WalkEntry } from "./walk.ts"
import { leftOutNotice, unnamableNotice, walk, walkRule } from "./walk.ts"

const DEFAULT_DEPTH = 2
const MAX_ENTRIES = 1_000

const Input = Schema.Struct({
  path: Schema.optionalKey(Schema.String.annotate({ description: "Directory to list. Default the workspace." })),
  depth: Schema.optionalKey(
    Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 20 })).annotate({
      description: `How many levels deep. Default ${DEFAULT_DEPTH}.`
    })
  )
})

export const listTool = (directory: string) =>
  tool({
    description: `Lists a directory as a tree; directories end in "/". ${walkRule}`,
    input: Input,
    replay: "safe",
    permission: ({ path }) => ({ access: "list", subjects: [resolvePath(directory, path ?? ".")] }),
    execute: Effect.fn("tools.list")(function*(input) {
      yield* checkPath(input.path ?? ".")
      const path = resolvePath(directory, input.path ?? ".")
      const shown = showPath(directory, path)
      const stats = yield* attempt("Cannot list", shown, () => FileSystem.stat(path))
      if (!stats.isDirectory()) {
        const details: ListDetails = { path, entries: 1, more: false, ignored: 0 }
        return toolResult({ content: `${shown} is a file. Use read to see its content.`, details })
      }
      yield* attempt("Cannot list", shown, () => FileSystem.opendir(path).then((opened) => opened.close()))
      const lines: Array<string> = []
      let more = false
      const leftOut = yield* walk({
        directory: path,
        workspace: directory,
        depth: input.depth ?? DEFAULT_DEPTH,
        visit: (entry) =>
          Effect.gen(function*() {
            more = lines.length >= MAX_ENTRIES
            if (more) return false
            lines.push("  ".repeat(entry.segments.length - 1) + (yield* nameOf(entry)))
            return true
          })
      })
      const notices = [
        more ? `[Only the first ${MAX_ENTRIES} entries are shown; list a directory below, or with less depth.]` : "",
        unnamableNotice(lines.join("\n")),
        leftOutNotice(leftOut)
      ]
      const body = lines.length === 0 && !more ? [`${shown === "." ? "The workspace" : shown} is empty.`] : lines
      const details: ListDetails = { path, entries: lines.length, more, ignored: leftOut.count }
      return toolResult({ content: [...body, ...notices].filter((line) => line !== "").join("\n"), details })
    })
  })

const nameOf = (entry: WalkEntry): Effect.Effect<string> => {
  const name = printable(entry.segments.at(-1) ?? "")
  if (entry.kind === "directory") return Effect.succeed(`${name}/`)
  if (entry.kind !== "link") return Effect.succeed(name)
  return Effect.promise(() =>
    FileSystem.readlink(entry.file).then((target) => `${name} -> ${printable(target)}`, () => name)
  )
}

/** A file name may hold line breaks and escape codes; one entry stays one line. */
export const printable = (name: string): string =>
  name.replaceAll(
    /\p{Cc}|\u2028|\u2029/gu,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`
  )
