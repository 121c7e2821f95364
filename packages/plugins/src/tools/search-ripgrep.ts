/**
 * ripgrep, where it is on PATH, says quickly which of many files may have a match: those that contain a text that every match
 * contains. What matches, and which files are looked at, is decided without it, so results are the same on every machine.
 */
import * as Effect from "effect/Effect"
import { spawn } from "node:child_process"
import { accessSync, constants } from "node:fs"
import * as NodePath from "node:path"
import type { RequiredText } from "./required-text.ts"

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

/** Which of these files, given by absolute path, may have a match. All of them where ripgrep cannot say. */
export type Candidates = (files: ReadonlyArray<string>) => Effect.Effect<ReadonlySet<string>>

const maxMillis = 20_000

export const ripgrepCandidates = (program: string, required: RequiredText): Candidates => (files) =>
  files.length === 0 ? Effect.succeed(new Set()) : Effect.callback((resume) => {
    const child = spawn(program, [...argumentsOf(required), ...files], { stdio: ["ignore", "pipe", "ignore"] })
    const chunks: Array<Buffer> = []
    child.stdout.on("data", (chunk: Buffer) => chunks.push(chunk))
    const end = (said: ReadonlySet<string>) => {
      clearTimeout(timer)
      resume(Effect.succeed(said))
    }
    const timer = setTimeout(() => child.kill("SIGKILL"), maxMillis)
    child.once("error", () => end(new Set(files)))
    child.once("close", (code) => {
      // 1 is that there is none; with 2 something could not be read, and what was left out is not known.
      const isWhole = code === 0 || code === 1
      end(new Set(isWhole ? Buffer.concat(chunks).toString().split("\0") : files))
    })
    return Effect.sync(() => {
      clearTimeout(timer)
      child.kill("SIGKILL")
    })
  })

/** Every byte of every file counts, whatever the user's own settings for ripgrep, marks of encodings or binary content say. */
const argumentsOf = ({ ignoreCase, texts }: RequiredText): ReadonlyArray<string> => [
  "--no-config",
  "--files-with-matches",
  "--null",
  "--fixed-strings",
  "--text",
  "--encoding=none",
  "--no-messages",
  "--no-ignore",
  ignoreCase ? "--ignore-case" : "--case-sensitive",
  ...texts.map((text) => `--regexp=${text}`),
  "--"
]
