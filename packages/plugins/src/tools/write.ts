/** The `write` tool: the whole content of a file, in one step (see `replace-file`), with its parent directories. */
import { sizeOf, tool, ToolFailure, toolResult } from "@bezel/core/tool"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { BigIntStats } from "node:fs"
import * as FileSystem from "node:fs/promises"
import * as NodePath from "node:path"
import type { WriteDetails } from "./contract.ts"
import { unifiedDiff } from "./diff.ts"
import type { FileState } from "./file-state.ts"
import { attempt, checkPath, resolvePath, showPath } from "./paths.ts"
import { diffText } from "./read.ts"
import { replaceFile } from "./replace-file.ts"

const Input = Schema.Struct({
  path: Schema.String.annotate({
    description: "File to write, relative to the workspace or absolute. Parent directories are made."
  }),
  content: Schema.String.annotate({ description: "The whole new content." })
})

export const writeTool = (directory: string, files: FileState) =>
  tool({
    description: "Writes a file: creates it, or replaces all of its content. To change a part of a file use edit.",
    input: Input,
    permission: ({ path }) => ({ access: "write", subjects: [resolvePath(directory, path)] }),
    execute: Effect.fn("tools.write")(function*(input, call) {
      yield* checkPath(input.path)
      const path = resolvePath(directory, input.path)
      const shown = showPath(directory, path)
      if (/[/\\]$/.test(input.path)) {
        return yield* new ToolFailure({ message: `${input.path} names a directory. Name a file.` })
      }
      const content = Buffer.from(input.content, "utf8")
      return yield* files.exclusive(
        path,
        Effect.gen(function*() {
          const before = yield* existing(path, shown)
          // Somebody's work is in it that whoever replaces all of it has not seen.
          if (before !== null && files.compare(call.sessionID, path, before) === "changed") {
            return yield* new ToolFailure({
              message: `${shown} has changed since it was read, so it was not replaced. Read it again, then write it.`
            })
          }
          const old = before === null || before.size > 1024n * 1024n
            ? Buffer.alloc(0)
            : yield* Effect.orElseSucceed(
              attempt("Cannot read", shown, () => FileSystem.readFile(path)),
              () => Buffer.alloc(0)
            )
          const after = yield* attempt("Cannot write", shown, async () => {
            await FileSystem.mkdir(NodePath.dirname(path), { recursive: true })
            return replaceFile(path, content, before)
          })
          files.saw(call.sessionID, path, after)
          const oldText = before !== null && BigInt(old.length) !== before.size ? null : diffText(old)
          const newText = diffText(content)
          const details: WriteDetails = {
            path,
            created: before === null,
            bytes: content.length,
            diff: oldText === null || newText === null ? null : unifiedDiff(shown, oldText, newText)
          }
          const verb = before === null ? "Created" : "Replaced"
          return toolResult({ content: `${verb} ${shown} (${sizeOf(content.length)}).`, details })
        })
      )
    })
  })

/** The state of a regular file, `null` if there is none; anything else is refused. */
export const existing = (path: string, shown: string): Effect.Effect<BigIntStats | null, ToolFailure> =>
  Effect.gen(function*() {
    const stats = yield* attempt(
      "Cannot write",
      shown,
      () =>
        FileSystem.stat(path, { bigint: true }).catch((cause: unknown) => {
          if (typeof cause === "object" && cause !== null && "code" in cause && cause.code === "ENOENT") return null
          throw cause
        })
    )
    if (stats === null || stats.isFile()) return stats
    const what = stats.isDirectory() ? "a directory" : "not a regular file"
    return yield* new ToolFailure({ message: `${shown} is ${what} and cannot be written as a file.` })
  })
