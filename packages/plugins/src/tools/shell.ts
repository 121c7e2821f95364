/**
 * Running one shell command: no standard input, no controlling terminal, one merged output, and an end that always
 * comes.
 *
 * ```
 *  running ──shell exits──▶ grace ──output closed, or 150 ms silent, or 300 ms─▶ ended
 *     │                       │
 *     └───── time limit ──────┴──▶ killing the whole tree ──▶ ended (timedOut)
 *     └───── interruption ────────▶ killing the whole tree ──▶ interrupted
 * ```
 *
 * Output is pulled, so a command that prints faster than it can be taken waits in its pipe. What the command left
 * running in the background goes on: its later output is thrown away, slowly, so that it neither dies of a closed pipe
 * nor spins.
 */
import { ToolFailure } from "@bezel/core/tool"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { ChildProcess } from "node:child_process"
import { spawn } from "node:child_process"
import { randomUUID } from "node:crypto"
import { Socket } from "node:net"
import type { Readable } from "node:stream"
import type { CommandProcesses, FoundProcess } from "./process-tree.ts"
import { findProcesses, killProcesses, MARK, markValue } from "./process-tree.ts"
import { OWNER, ownerValue } from "./survivors.ts"

/** A command line as words for a process: run as `runShell` runs it, but for where its output goes. */
export const shellWords = (command: string): readonly [string, ...ReadonlyArray<string>] => [
  "/bin/sh",
  "-c",
  'command -v bash >/dev/null 2>&1 && exec bash -c "$0"; exec sh -c "$0"',
  command
]

export interface ShellCommand {
  readonly command: string
  readonly directory: string
  readonly timeoutMs: number
  /** Added to the environment of the command. */
  readonly environment: { readonly [name: string]: string }
  readonly onOutput: (chunk: Uint8Array) => Effect.Effect<void>
  /** What the shell is run by; default: nobody but us. */
  readonly confine?: Confine
}

/** Gives the words that run these ones in a sandbox, or the same words. */
export type Confine = (
  words: readonly [string, ...ReadonlyArray<string>]
) => Effect.Effect<readonly [string, ...ReadonlyArray<string>], ToolFailure>

export interface ShellOutcome {
  readonly exitCode: number | null
  readonly signal: string | null
  readonly timedOut: boolean
  readonly processes: CommandProcesses
  /** What was left running. */
  readonly background: ReadonlyArray<FoundProcess>
  /** The directory that the shell was in when it ended; `null` if it could not say. */
  readonly directory: string | null
}

const SILENCE_MS = 150
const GRACE_MS = 300
const AFTER_KILL_MS = 2_000

/** Runs the command to its end. Interrupting it kills everything that it started, in about a second. */
export const runShell = (options: ShellCommand): Effect.Effect<ShellOutcome, ToolFailure> =>
  Effect.acquireUseRelease(
    Effect.flatMap(
      (options.confine ?? Effect.succeed)(["/bin/sh", "-c", launch, options.command]),
      (words) => start(options, words)
    ),
    (running) =>
      Effect.gen(function*() {
        const ended = yield* Effect.timeoutOption(takeOutput(running, options.onOutput), options.timeoutMs)
        const timedOut = Option.isNone(ended)
        if (timedOut) {
          yield* killProcesses(running.processes)
          yield* Effect.timeoutOption(takeOutput(running, options.onOutput), AFTER_KILL_MS)
        }
        // What the shell wrote last is in its pipe by now, and is read in the next round of the event loop.
        yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
        const { leader, mark } = running.processes
        const background = findProcesses(running.processes).filter(({ pid }) => pid !== leader)
        running.processes = { leader: null, mark, known: background }
        running.settled = true
        return {
          exitCode: running.exitCode,
          signal: running.signal,
          timedOut,
          processes: running.processes,
          background: background.map(named),
          directory: timedOut ? null : running.directory()
        }
      }),
    (running) =>
      Effect.gen(function*() {
        if (!running.settled) yield* killProcesses(running.processes)
        letGo(running)
      })
  )

interface Running {
  readonly child: ChildProcess
  readonly output: Readable
  processes: CommandProcesses
  exitedAt: number | null
  exitCode: number | null
  signal: string | null
  settled: boolean
  /** Where the shell has ended, once it has. */
  readonly directory: () => string | null
  /** Whether something has happened that nobody has waited for yet, and whom to tell. */
  happened: boolean
  wake: (() => void) | null
}

const start = (
  options: ShellCommand,
  [program, ...words]: readonly [string, ...ReadonlyArray<string>]
): Effect.Effect<Running, ToolFailure> =>
  Effect.callback((resume) => {
    const mark = randomUUID()
    const failed = (cause: unknown) => resume(Effect.fail(new ToolFailure({ message: startFailure(options, cause) })))
    try {
      // One pipe for both outputs keeps their order; `exec` leaves one process, the shell itself. `detached` is setsid.
      const child = spawn(program, words, {
        cwd: options.directory,
        detached: true,
        stdio: ["ignore", "pipe", "ignore", "pipe"],
        env: {
          ...process.env,
          ...quiet,
          ...options.environment,
          [MARK]: markValue(mark, process.env[MARK]),
          [OWNER]: ownerValue()
        }
      })
      // Node's pipe is a socket. Full-screen programs that have no terminal read keys from stderr, and would wait for ever
      // for what nobody writes; now they see the end at once, as on a pipe.
      const { stdout } = child
      if (stdout === null) throw new Error("there is no pipe for its output")
      if (stdout instanceof Socket) stdout.end()
      const running: Running = {
        child,
        output: stdout,
        processes: { leader: child.pid ?? null, mark, known: [] },
        exitedAt: null,
        exitCode: null,
        signal: null,
        settled: false,
        directory: directoryFrom(child),
        happened: false,
        wake: null
      }
      const tell = () => {
        running.happened = true
        running.wake?.()
      }
      child.on("exit", (code, signal) => {
        running.exitedAt = performance.now()
        running.exitCode = code
        running.signal = signal
        tell()
      })
      // A listener for `readable` has to be there all the time: without one Node throws output away when the process
      // exits.
      for (const event of ["readable", "end", "close", "error"] as const) stdout.on(event, tell)
      child.once("error", failed)
      child.once("spawn", () => resume(Effect.succeed(running)))
    } catch (cause) {
      failed(cause)
    }
  })

// The shell says at its end where it is; a command that replaces it or has a trap of its own for that leaves nobody to say it.
// Low descriptors are the command's: what it opens as 3 must not be written to.
const aroundFor = (descriptor: number) =>
  `exec ${descriptor}>&3 3>&-; __bezel=$1; shift; trap "pwd -P >&${descriptor} 2>/dev/null" EXIT; eval "$__bezel"`

const inBash = aroundFor(99)
/** A POSIX shell has descriptors of one digit. */
const inSh = aroundFor(9)

/** A shell that was left running is named by the command that was given, not by what we put around it. */
const named = (found: FoundProcess): FoundProcess => ({
  ...found,
  command: found.command.replace(`${inBash} bash `, "").replace(`${inSh} sh `, "")
})

// bash is what models write for; a POSIX shell where there is none.
const launch =
  `command -v bash >/dev/null 2>&1 && exec bash -c '${inBash}' bash "$0" 2>&1; exec sh -c '${inSh}' sh "$0" 2>&1`

const MAX_PATH_BYTES = 8_192

/** What is written to the third pipe, as far as it is a path. */
const directoryFrom = (child: ChildProcess): () => string | null => {
  const pipe = child.stdio[3]
  if (!(pipe instanceof Socket)) return () => null
  let text = ""
  pipe.setEncoding("utf8")
  pipe.on("data", (chunk: string) => {
    if (text.length < MAX_PATH_BYTES) text += chunk
  })
  pipe.on("error", () => {})
  pipe.unref()
  return () => {
    pipe.destroy()
    const path = text.replace(/\n$/, "")
    return path.startsWith("/") && !path.includes("\n") && !path.includes("\ufffd") ? path : null
  }
}

/** Nothing may wait for a person: no pager, no editor, no prompt. */
export const quiet = {
  TERM: "dumb",
  NO_COLOR: "1",
  PAGER: "cat",
  GIT_PAGER: "cat",
  MANPAGER: "cat",
  SYSTEMD_PAGER: "cat",
  AWS_PAGER: "",
  GIT_TERMINAL_PROMPT: "0",
  GIT_EDITOR: "false",
  EDITOR: "false",
  VISUAL: "false",
  SSH_ASKPASS_REQUIRE: "never",
  DEBIAN_FRONTEND: "noninteractive"
}

const startFailure = (options: ShellCommand, cause: unknown): string => {
  const code = typeof cause === "object" && cause !== null && "code" in cause ? cause.code : null
  if (code === "E2BIG") return "The command is too long for one process. Write it to a file with write and run that."
  if (code === "ENOENT") {
    return `The command could not be started in ${options.directory}: the directory is gone, or there is no /bin/sh.`
  }
  if (code === "ENOTDIR") {
    return `The command could not be started in ${options.directory}: that is a file, not a directory.`
  }
  if (code === "ERR_INVALID_ARG_VALUE") return "The command contains a NUL character, which no command line can."
  return `The command could not be started: ${cause instanceof Error ? cause.message : String(cause)}.`
}

/** Passes output on until it closes, or until the shell has exited and a short grace is over. */
const takeOutput = (running: Running, onOutput: ShellCommand["onOutput"]): Effect.Effect<void> =>
  Effect.gen(function*() {
    for (;;) {
      const chunk: unknown = running.output.read()
      if (chunk instanceof Uint8Array) {
        yield* onOutput(chunk)
        if (running.exitedAt !== null && performance.now() - running.exitedAt > GRACE_MS) return
        continue
      }
      if ((running.output.readableEnded || running.output.destroyed) && running.exitedAt !== null) return
      if (running.exitedAt === null) yield* nextEvent(running, null)
      else if (yield* nextEvent(running, SILENCE_MS)) return
    }
  })

/** Waits until something has happened since the last wait; `true` if `silenceMs` passed without. */
const nextEvent = (running: Running, silenceMs: number | null): Effect.Effect<boolean> =>
  Effect.callback((resume) => {
    if (running.happened) {
      running.happened = false
      return resume(Effect.succeed(false))
    }
    const done = (silent: boolean) => {
      stop()
      running.happened = false
      resume(Effect.succeed(silent))
    }
    const timer = silenceMs === null ? null : setTimeout(() => done(true), silenceMs)
    const stop = () => {
      if (timer !== null) clearTimeout(timer)
      running.wake = null
    }
    running.wake = () => done(false)
    return Effect.sync(stop)
  })

/** At most a pipe's worth, 64 KiB, is thrown away per interval. */
const DRAIN_INTERVAL_MS = 250

/** Keeps nothing of what comes later, and does not keep the program alive for it. */
const letGo = (running: Running): void => {
  const { child, output } = running
  child.unref()
  output.removeAllListeners("readable")
  if (output.readableEnded || output.destroyed) return
  if (!running.settled || findProcesses(running.processes).length === 0) {
    output.destroy()
    return
  }
  output.on("data", () => {
    output.pause()
    setTimeout(() => output.resume(), DRAIN_INTERVAL_MS).unref()
  })
  if ("unref" in output && typeof output.unref === "function") output.unref()
  output.resume()
}
