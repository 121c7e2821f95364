/** What `git status` says, run so that it changes nothing, asks nobody and waits for nobody, and is bounded. */
import * as Effect from "effect/Effect"
import { spawn } from "node:child_process"
import type { GitStatus } from "./contract.ts"

const maxBytes = 16 * 1024 * 1024
const maxSeconds = 20

/** Output of a git command in a directory; `null` where it fails, takes too long or says too much. */
export const runGit = (directory: string, args: ReadonlyArray<string>): Effect.Effect<string | null> =>
  Effect.callback((resume) => {
    // Settings of the repository that run programs behind a status are off.
    const child = spawn("git", ["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", ...args], {
      cwd: directory,
      stdio: ["ignore", "pipe", "ignore"],
      env: { ...process.env, GIT_OPTIONAL_LOCKS: "0", GIT_TERMINAL_PROMPT: "0", LC_ALL: "C" }
    })
    const chunks: Array<Buffer> = []
    let size = 0
    const timer = setTimeout(() => child.kill("SIGKILL"), maxSeconds * 1_000)
    const done = (text: string | null) => {
      clearTimeout(timer)
      resume(Effect.succeed(text))
    }
    child.stdout.on("data", (chunk: Buffer) => {
      size += chunk.length
      if (size > maxBytes) child.kill("SIGKILL")
      else chunks.push(chunk)
    })
    child.once("error", () => done(null))
    child.once("close", (code) => done(code === 0 && size <= maxBytes ? Buffer.concat(chunks).toString() : null))
    return Effect.sync(() => {
      clearTimeout(timer)
      child.kill("SIGKILL")
    })
  })

/** Reads `git status --porcelain=v2 --branch -z`. */
export const parseStatus = (root: string, output: string): GitStatus => {
  const status = {
    root,
    branch: null as string | null,
    head: null as string | null,
    upstream: null as string | null,
    ahead: 0,
    behind: 0,
    staged: 0,
    changed: 0,
    untracked: 0,
    conflicts: 0
  }
  const records = output.split("\0")
  for (let index = 0; index < records.length; index++) {
    const record = records[index] ?? ""
    const [kind, name, ...rest] = record.split(" ")
    if (kind === "#") {
      const value = rest.join(" ")
      if (name === "branch.oid") status.head = value === "(initial)" ? null : value
      else if (name === "branch.head") status.branch = value === "(detached)" ? null : value
      else if (name === "branch.upstream") status.upstream = value
      else if (name === "branch.ab") {
        status.ahead = Math.abs(Number(rest[0] ?? 0)) || 0
        status.behind = Math.abs(Number(rest[1] ?? 0)) || 0
      }
    } else if (kind === "1" || kind === "2") {
      if (name?.[0] !== ".") status.staged++
      if (name?.[1] !== ".") status.changed++
      // A renamed file's former name is a record of its own.
      if (kind === "2") index++
    } else if (kind === "u") status.conflicts++
    else if (kind === "?") status.untracked++
  }
  return status
}

/** `null` outside of a repository, and where there is no git. */
export const readStatus = (directory: string): Effect.Effect<GitStatus | null> =>
  Effect.gen(function*() {
    const root = yield* runGit(directory, ["rev-parse", "--show-toplevel"])
    if (root === null) return null
    const output = yield* runGit(directory, [
      "status",
      "--porcelain=v2",
      "--branch",
      "-z",
      "--untracked-files=normal",
      "--ignore-submodules=all"
    ])
    return output === null ? null : parseStatus(root.replace(/\n$/, ""), output)
  })
