/**
 * Search with ripgrep, where it is on PATH: the same rule and the same result as `search-files`, only faster. What
 * ripgrep does by the user's own settings (config file, global ignores, `.ignore` files) is switched off for that.
 */
import { ToolFailure } from "@bezel/core/tool"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { spawn } from "node:child_process"
import { accessSync, constants } from "node:fs"
import * as NodePath from "node:path"
import { createInterface } from "node:readline"
import type { Found, SearchOutcome, SearchRequest } from "./search-files.ts"
import { MAX_SECONDS, nothingLeftOut } from "./search-files.ts"
import type { LeftOut } from "./walk.ts"
import { startRules, walk } from "./walk.ts"

/** Path of ripgrep, or `null`. */
export const findRipgrep = (path: string | undefined): string | null => {
  for (const directory of (path ?? "").split(NodePath.delimiter)) {
    // A relative entry would run whatever a work tree brings along.
    if (!NodePath.isAbsolute(directory)) continue
    const file = NodePath.join(directory, process.platform === "win32" ? "rg.exe" : "rg")
    try {
      accessSync(file, constants.X_OK)
      return file
    } catch {
      continue
    }
  }
  return null
}

const MAX_FILE = "16M"
const MAX_COUNTING_MS = 5_000

const TextOrBytes = Schema.Union([Schema.Struct({ text: Schema.String }), Schema.Struct({ bytes: Schema.String })])
const Match = Schema.Struct({
  type: Schema.Literal("match"),
  data: Schema.Struct({ path: TextOrBytes, lines: TextOrBytes, line_number: Schema.Int })
})
const decodeMatch = Schema.decodeUnknownOption(Schema.fromJsonString(Match))

export const searchRipgrep = (program: string, request: SearchRequest): Effect.Effect<SearchOutcome, ToolFailure> =>
  Effect.map(
    Effect.all([run(program, request), leftOutOf(request)], { concurrency: 2 }),
    ([{ found, incomplete, more }, leftOut]) => ({ found, more, leftOut, tooLarge: [], incomplete })
  )

/** ripgrep does not say what it left out, so the tree is walked for that beside it. */
const leftOutOf = (request: SearchRequest): Effect.Effect<LeftOut> => {
  if (request.isFile) return Effect.succeed(nothingLeftOut)
  const until = performance.now() + MAX_COUNTING_MS
  return walk({
    directory: request.path,
    workspace: request.workspace,
    depth: Number.POSITIVE_INFINITY,
    visit: () => Effect.sync(() => performance.now() < until)
  })
}

interface Matches {
  readonly found: ReadonlyArray<Found>
  readonly more: boolean
  readonly incomplete: boolean
}

const run = (program: string, request: SearchRequest) =>
  Effect.callback<Matches, ToolFailure>((resume) => {
    const found: Array<Found> = []
    let incomplete = false
    let complaint = ""
    const directory = request.isFile ? NodePath.dirname(request.path) : request.path
    const child = spawn(program, argumentsOf(request), { cwd: directory, stdio: ["ignore", "pipe", "pipe"] })
    const lines = createInterface({ input: child.stdout })
    lines.on("line", (line) => {
      const match = decodeMatch(line)
      if (match._tag === "None" || found.length > request.limit) return
      const { data } = match.value
      const path = NodePath.join(directory, textOf(data.path))
      // Given to ripgrep, a glob would bring back files that git ignores.
      if (
        request.glob !== null && !request.isFile &&
        !request.glob(NodePath.relative(directory, path).split(NodePath.sep))
      ) return
      found.push({ path, line: data.line_number, text: textOf(data.lines).replace(/\r?\n$/, "") })
      if (found.length > request.limit) child.kill()
    })
    child.stderr.on("data", (chunk: Buffer) => {
      if (complaint.length < 2_000) complaint += chunk.toString()
    })
    const timer = setTimeout(() => {
      incomplete = true
      child.kill("SIGKILL")
    }, MAX_SECONDS * 1_000)
    child.once(
      "error",
      (cause) => resume(Effect.fail(new ToolFailure({ message: `ripgrep could not be started: ${cause.message}.` })))
    )
    child.once("close", (code) => {
      clearTimeout(timer)
      // 2 is also what it says when one file could not be read.
      if (code === 2 && found.length === 0 && complaint.includes("regex")) {
        resume(
          Effect.fail(
            new ToolFailure({
              message: `The pattern is not a regular expression: ${
                lastLine(complaint)
              }. To look for plain text, escape its special characters with \\.`
            })
          )
        )
      } else {resume(
          Effect.succeed({ found: found.slice(0, request.limit), more: found.length > request.limit, incomplete })
        )}
    })
    return Effect.sync(() => {
      clearTimeout(timer)
      child.kill("SIGKILL")
    })
  })

const argumentsOf = (request: SearchRequest): ReadonlyArray<string> => [
  "--no-config",
  "--json",
  "--sort=path",
  "--hidden",
  ...(startRules(request.isFile ? NodePath.dirname(request.path) : request.path, request.workspace) === null
    ? ["--no-ignore"]
    : []),
  "--no-ignore-dot",
  "--no-ignore-global",
  `--max-filesize=${MAX_FILE}`,
  "--glob=!.git",
  "--crlf",
  `--regexp=${request.pattern}`,
  "--",
  request.isFile ? `./${NodePath.basename(request.path)}` : "."
]

const textOf = (value: typeof TextOrBytes.Type): string =>
  "text" in value ? value.text : Buffer.from(value.bytes, "base64").toString("utf8")

const lastLine = (text: string): string =>
  text.trim().split("\n").at(-1)?.replace(/^error:\s*/, "").replace(/\.$/, "") ?? ""
