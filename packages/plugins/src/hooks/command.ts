/**
 * Runs one command of a person: JSON in, bounded output back, and an end that always comes. Its time limit, and an
 * interruption, end everything that it has started.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { ChildProcessWithoutNullStreams } from "node:child_process"
import { spawn } from "node:child_process"
import { randomUUID } from "node:crypto"
import { killProcesses, MARK, markValue } from "../tools/process-tree.ts"
import { OWNER, ownerValue } from "../tools/survivors.ts"

export interface HookCommand {
  readonly command: string | readonly [string, ...ReadonlyArray<string>]
  readonly directory: string
  readonly timeoutMs: number
  /** Written to its standard input, which is closed then. */
  readonly input: string
  readonly environment: { readonly [name: string]: string }
}

export interface HookOutcome {
  /** `null`: it did not end by itself. */
  readonly exitCode: number | null
  readonly signal: string | null
  readonly timedOut: boolean
  readonly stdout: string
  readonly stderr: string
}

/** Bytes of each output that are kept; the rest is read and thrown away. */
const MAX_OUTPUT = 64 * 1024
/** What it has left running holds its output open; that is not waited for. */
const GRACE_MS = 300

const collect = (stream: NodeJS.ReadableStream): () => string => {
  const chunks: Array<Buffer> = []
  let room = MAX_OUTPUT
  stream.on("data", (chunk: Buffer) => {
    if (room <= 0) return
    const part = chunk.subarray(0, room)
    room -= part.length
    chunks.push(part)
  })
  return () => Buffer.concat(chunks).toString("utf8").toWellFormed()
}

interface Running {
  readonly child: ChildProcessWithoutNullStreams
  readonly mark: string
  readonly stdout: () => string
  readonly stderr: () => string
}

const start = (options: HookCommand): Effect.Effect<Running, { readonly message: string }> =>
  Effect.callback((resume) => {
    const { command } = options
    const [program, ...args] = typeof command === "string" ? ["/bin/sh", "-c", command] : command
    const failed = (cause: unknown) => {
      const isMissing = cause instanceof Error && "code" in cause && cause.code === "ENOENT"
      const why = isMissing ? `there is no program ${program}` : cause instanceof Error ? cause.message : String(cause)
      resume(Effect.fail({ message: `it could not be started: ${why}` }))
    }
    try {
      const mark = randomUUID()
      const child = spawn(program ?? "", args, {
        cwd: options.directory,
        detached: true,
        stdio: ["pipe", "pipe", "pipe"],
        env: {
          ...process.env,
          ...options.environment,
          [MARK]: markValue(mark, process.env[MARK]),
          [OWNER]: ownerValue()
        }
      })
      for (const stream of [child.stdin, child.stdout, child.stderr]) stream.on("error", () => {})
      const running = { child, mark, stdout: collect(child.stdout), stderr: collect(child.stderr) }
      child.once("error", failed)
      child.once("spawn", () => resume(Effect.succeed(running)))
      // One that does not read has closed it; that is its right.
      child.stdin.end(options.input)
    } catch (cause) {
      failed(cause)
    }
  })

/** Waits until it has exited and its output is closed, or a moment longer. */
const ended = ({ child }: Running): Effect.Effect<void> =>
  Effect.callback((resume) => {
    let timer: ReturnType<typeof setTimeout> | null = null
    const done = () => {
      if (timer !== null) clearTimeout(timer)
      resume(Effect.void)
    }
    const exited = () => {
      timer = setTimeout(done, GRACE_MS)
    }
    child.once("close", done)
    if (child.exitCode !== null || child.signalCode !== null) exited()
    else child.once("exit", exited)
    return Effect.sync(() => {
      if (timer !== null) clearTimeout(timer)
      child.off("close", done)
      child.off("exit", exited)
    })
  })

/** Fails only if it cannot be started at all. */
export const runHookCommand = (options: HookCommand): Effect.Effect<HookOutcome, { readonly message: string }> =>
  Effect.acquireUseRelease(
    start(options),
    (running) =>
      Effect.map(Effect.timeoutOption(ended(running), options.timeoutMs), (inTime): HookOutcome => ({
        exitCode: running.child.exitCode,
        signal: running.child.signalCode,
        timedOut: Option.isNone(inTime),
        stdout: running.stdout(),
        stderr: running.stderr()
      })),
    ({ child, mark }) =>
      Effect.suspend(() => {
        const isOver = child.exitCode !== null || child.signalCode !== null
        child.stdout.destroy()
        child.stderr.destroy()
        // What it has put into the background on purpose goes on, as with any other command line.
        return isOver ? Effect.void : killProcesses({ leader: child.pid ?? null, mark, known: [] })
      })
  )
