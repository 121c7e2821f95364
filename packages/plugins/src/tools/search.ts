/** The `search` tool: lines that match a regular expression; quicker where there is ripgrep, with the same results. */
import { tool, ToolFailure, toolResult } from "@bezel/core/tool"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as FileSystem from "node:fs/promises"
import { trustedPath } from "../git/process.ts"
import type { SearchDetails } from "./contract.ts"
import { fileGlob } from "./glob.ts"
import { printable } from "./list.ts"
import { attempt, checkPath, resolvePath, showPath } from "./paths.ts"
import { requiredText } from "./required-text.ts"
import type { SearchOutcome } from "./search-files.ts"
import { searchFiles } from "./search-files.ts"
import { findRipgrep, ripgrepCandidates } from "./search-ripgrep.ts"
import { leftOutNotice, unnamableNotice, walkRule } from "./walk.ts"

const MAX_MATCHES = 200
const MAX_SHOWN_UNITS = 400

const Input = Schema.Struct({
  pattern: Schema.String.annotate({
    description: "Regular expression, matched line by line, case-sensitive; start it with (?i) to ignore case."
  }),
  path: Schema.optionalKey(
    Schema.String.annotate({ description: "Directory or file to search. Default the workspace." })
  ),
  glob: Schema.optionalKey(
    Schema.String.annotate({ description: "Only files whose name or path matches, such as *.ts or src/**/*.{js,ts}." })
  )
})

/**
 * `ripgrep` is the path of the program, or `null` to do without; by default it is looked for on PATH at each call, and not in
 * the directory, which may bring one of its own.
 */
export const searchTool = (
  directory: string,
  ripgrep: () => string | null = () => findRipgrep(trustedPath(process.env.PATH, directory))
) =>
  tool({
    description:
      `Searches files for lines that match a regular expression. ${walkRule} At most ${MAX_MATCHES} matches, by path and line.`,
    input: Input,
    replay: "safe",
    permission: ({ path }) => ({ access: "search", subjects: [resolvePath(directory, path ?? ".")] }),
    execute: Effect.fn("tools.search")(function*(input) {
      yield* checkPath(input.path ?? ".")
      if (input.pattern === "") {
        return yield* new ToolFailure({ message: "The pattern is empty. Give a regular expression to look for." })
      }
      const path = resolvePath(directory, input.path ?? ".")
      const shown = showPath(directory, path)
      const stats = yield* attempt("Cannot search", shown, () => FileSystem.stat(path))
      if (!stats.isFile() && !stats.isDirectory()) {
        return yield* new ToolFailure({ message: `${shown} is neither a file nor a directory and is not searched.` })
      }
      const program = stats.isFile() ? null : ripgrep()
      const required = requiredText(input.pattern)
      const candidates = program === null || required === null ? null : ripgrepCandidates(program, required)
      const request = {
        pattern: input.pattern,
        path,
        isFile: stats.isFile(),
        workspace: directory,
        glob: input.glob === undefined ? null : fileGlob(input.glob),
        limit: MAX_MATCHES
      }
      const outcome = yield* searchFiles(request, required, candidates)
      const details: SearchDetails = {
        pattern: input.pattern,
        path,
        matches: outcome.found.length,
        files: new Set(outcome.found.map((one) => one.path)).size,
        more: outcome.more,
        ignored: outcome.leftOut.count,
        engine: candidates === null ? "built-in" : "ripgrep"
      }
      return toolResult({ content: textOf(directory, shown, input.pattern, outcome), details })
    })
  })

const textOf = (directory: string, shown: string, pattern: string, outcome: SearchOutcome): string => {
  const lines = outcome.found.map(({ line, path, text }) =>
    `${printable(showPath(directory, path))}:${line}: ${shorten(text)}`
  )
  const notices = [
    lines.length === 0
      ? `No line matches ${JSON.stringify(pattern)} in ${shown === "." ? "the workspace" : shown}.`
      : "",
    outcome.more
      ? `[Only the first ${outcome.found.length} matches are shown; narrow the pattern, the path or the glob.]`
      : "",
    outcome.incomplete ? "[Time ran out before everything was searched; narrow the path or the glob.]" : "",
    outcome.tooLarge.length === 0
      ? ""
      : `[Too large to search: ${outcome.tooLarge.slice(0, 5).map((path) => showPath(directory, path)).join(", ")}.]`,
    unnamableNotice(outcome.found.map(({ path }) => showPath(directory, path)).join("\n")),
    leftOutNotice(outcome.leftOut)
  ]
  return [...lines, ...notices].filter((line) => line !== "").join("\n")
}

const shorten = (text: string): string =>
  text.length <= MAX_SHOWN_UNITS
    ? text
    : `${text.slice(0, MAX_SHOWN_UNITS).replace(/[\ud800-\udbff]$/, "")} [… ${
      (text.length - MAX_SHOWN_UNITS).toLocaleString("en-US")
    } more characters]`
