/**
 * The process of a server that speaks on its standard streams: started with a small environment, and ended as a whole with
 * the scope, whatever it has started in turn.
 *
 * Its error output is handed on line by line, bounded; nothing of it reaches the terminal.
 */
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import type { ChildProcessWithoutNullStreams } from "node:child_process"
import { spawn } from "node:child_process"
import { randomUUID } from "node:crypto"
import { existsSync } from "node:fs"
import * as path from "node:path"
import { killProcesses, MARK, markValue } from "../tools/process-tree.ts"
import { OWNER, ownerValue } from "../tools/survivors.ts"
import { McpFailure } from "./failure.ts"
import { lineSplitter } from "./lines.ts"
import { oneLine } from "./text.ts"

export interface ServerCommand {
  readonly command: readonly [string, ...ReadonlyArray<string>]
  readonly env?: { readonly [name: string]: Redacted.Redacted<string> }
  readonly cwd?: string
}

export interface ServerProcess {
  readonly child: ChildProcessWithoutNullStreams
  /** The newest line of its error output, for people; empty if there was none. */
  readonly lastWords: () => string
}

/** What a program needs to find its way around. Keys of providers are not among it. */
const inherited = [
  "HOME",
  "LANG",
  "LC_ALL",
  "LC_CTYPE",
  "LOGNAME",
  "PATH",
  "SHELL",
  "TMPDIR",
  "TZ",
  "USER",
  "XDG_CACHE_HOME",
  "XDG_CONFIG_HOME",
  "XDG_DATA_HOME"
]

const environmentOf = (server: ServerCommand): NodeJS.ProcessEnv => ({
  ...Object.fromEntries(inherited.flatMap((name) => {
    const value = process.env[name]
    return value === undefined ? [] : [[name, value]]
  })),
  ...Object.fromEntries(Object.entries(server.env ?? {}).map(([name, value]) => [name, Redacted.value(value)]))
})

/** How long a server may take to end by itself once nobody speaks to it any more. */
const GRACE_MS = 300
const MAX_ERROR_LINE = 4_096

const exitedWithin = (child: ChildProcessWithoutNullStreams, ms: number): Effect.Effect<void> =>
  Effect.callback((resume) => {
    if (child.exitCode !== null || child.signalCode !== null) return resume(Effect.void)
    const done = () => {
      clearTimeout(timer)
      child.off("exit", done)
      resume(Effect.void)
    }
    const timer = setTimeout(done, ms)
    child.once("exit", done)
    return Effect.sync(() => {
      clearTimeout(timer)
      child.off("exit", done)
    })
  })

const startFailure = (program: string, directory: string, cause: unknown): string => {
  const code = typeof cause === "object" && cause !== null && "code" in cause ? cause.code : null
  if (code === "ENOENT") {
    return `its command could not be started: there is no ${existsSync(directory) ? `program ${program}` : directory}`
  }
  if (code === "EACCES") return `its command could not be started: ${program} may not be run`
  return `its command could not be started: ${cause instanceof Error ? cause.message : String(cause)}`
}

/** Starts the process; `onErrorLine` gets what it writes to its error output. */
export const startProcess = (
  server: ServerCommand,
  location: string,
  onErrorLine: (line: string) => void
): Effect.Effect<ServerProcess, McpFailure, Scope.Scope> =>
  Effect.gen(function*() {
    const mark = randomUUID()
    const [program, ...args] = server.command
    const directory = path.resolve(location, server.cwd ?? ".")
    const child = yield* Effect.acquireRelease(
      Effect.callback<ChildProcessWithoutNullStreams, McpFailure>((resume) => {
        const failed = (cause: unknown) =>
          resume(Effect.fail(new McpFailure({ message: startFailure(program, directory, cause) })))
        try {
          const started = spawn(program, args, {
            cwd: directory,
            // A group of its own, so that what it starts can be ended with it, and the terminal's signals do not reach it.
            detached: true,
            stdio: ["pipe", "pipe", "pipe"],
            env: { ...environmentOf(server), [MARK]: markValue(mark, process.env[MARK]), [OWNER]: ownerValue() }
          })
          started.once("error", failed)
          started.once("spawn", () => resume(Effect.succeed(started)))
        } catch (cause) {
          failed(cause)
        }
      }),
      (started) =>
        Effect.gen(function*() {
          started.stdin.end()
          yield* exitedWithin(started, GRACE_MS)
          const gone = started.exitCode !== null || started.signalCode !== null
          yield* killProcesses({ leader: gone ? null : started.pid ?? null, mark, known: [] })
          started.stdout.destroy()
          started.stderr.destroy()
        })
    )
    // Somebody listens for as long as it lives: an error that nobody handles would end this process.
    for (const stream of [child, child.stdin, child.stdout, child.stderr]) stream.on("error", () => {})
    let last = ""
    const said = (line: string) => {
      const text = oneLine(line, 300)
      if (text === "") return
      last = text
      onErrorLine(text)
    }
    const lines = lineSplitter({ maxBytes: MAX_ERROR_LINE, onLine: said, onLong: ({ head }) => said(head) })
    child.stderr.on("data", (chunk: Buffer) => lines.push(chunk))
    return { child, lastWords: () => last }
  })
