/**
 * One process of a session host, from its start until all that it has started is gone.
 *
 *     spawned ──order──▶ booting ──ready──▶ serving ──▶ ended: asked to, idle, died, or killed because it did not answer
 *
 * What it writes goes to a log file of the host. It has a process group of its own, so that a signal to this terminal is not
 * one to it.
 */
import { ServiceError } from "@bezel/core/service"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import { type ChildProcess, spawn } from "node:child_process"
import { randomBytes } from "node:crypto"
import * as fs from "node:fs"
import { Duplex } from "node:stream"
import type { Ledger } from "./ledger.ts"
import { type HostOrder, lineReader, readFromHost, writeLine } from "./order.ts"
import { endProcesses, hostMark, type ProcessName, startOf } from "./process-table.ts"

export interface ProcessTimes {
  /** For booting. */
  readonly bootMillis: number
  /** For ending in order, before it is killed. */
  readonly stopMillis: number
  /** Between two questions whether it still answers. */
  readonly pingMillis: number
  /** Without an answer for so long it is killed. */
  readonly silenceMillis: number
}

export interface HostProcessOptions {
  readonly order: Omit<HostOrder, "secret">
  /** A secret that admits it to its coordinator, once. */
  readonly issue: () => string
  /** Program and arguments. */
  readonly command: ReadonlyArray<string>
  readonly environment: NodeJS.ProcessEnv
  readonly log: string
  readonly ledger: Ledger
  readonly times: ProcessTimes
}

/** How a process ended. */
export interface HostEnd {
  /** It ended because it was asked to or because nobody needed it. */
  readonly inOrder: boolean
  /** Why, for people. */
  readonly reason: string
}

export interface HostProcess {
  readonly pid: number
  /** Completes when it serves; fails, with why, if it has ended instead. */
  readonly ready: Effect.Effect<void, ServiceError>
  /** Completes when nothing of it is left. */
  readonly ended: Effect.Effect<HostEnd>
  /** Asks it to end, and completes when nothing of it is left. */
  readonly stop: Effect.Effect<void>
}

const rotateBytes = 1_048_576

const openLog = (path: string): number => {
  if ((fs.statSync(path, { throwIfNoEntry: false })?.size ?? 0) > rotateBytes) fs.renameSync(path, `${path}.1`)
  return fs.openSync(path, "a", 0o600)
}

/** The last lines of a host's log. */
export const lastLines = (path: string, count: number): string => {
  try {
    const size = fs.statSync(path).size
    const bytes = Buffer.alloc(Math.min(size, 8_192))
    const file = fs.openSync(path, "r")
    try {
      fs.readSync(file, bytes, 0, bytes.length, size - bytes.length)
    } finally {
      fs.closeSync(file)
    }
    return bytes.toString("utf8").trimEnd().split("\n").slice(-count).join("\n")
  } catch {
    return ""
  }
}

const unavailable = (message: string) => new ServiceError({ code: "unavailable", message })

/** Starts it. What cannot even be started ends at once. */
export const startProcess = (options: HostProcessOptions): Effect.Effect<HostProcess, ServiceError> =>
  Effect.gen(function*() {
    const { command, environment, issue, ledger, order, times } = options
    const mark = randomBytes(9).toString("base64url")
    const ready = Deferred.makeUnsafe<void, ServiceError>()
    const exited = Deferred.makeUnsafe<string>()
    const ended = Deferred.makeUnsafe<HostEnd>()
    const [program = "", ...parameters] = command

    const { child, entry, name } = yield* Effect.try({
      try: () => {
        const log = openLog(options.log)
        try {
          const entry = ledger.open(mark, order.socket)
          const child = spawn(program, parameters, {
            cwd: order.location.directory,
            env: { ...environment, [hostMark]: mark },
            stdio: ["ignore", log, log, "pipe"],
            detached: true
          })
          const pid = child.pid ?? 0
          const name: ProcessName | null = pid === 0 ? null : { pid, start: startOf(pid) ?? "" }
          try {
            if (name !== null) entry.started(name)
          } catch (error) {
            // Where the disk is full: one that nobody knows of would never be ended.
            child.kill("SIGKILL")
            entry.close()
            throw error
          }
          return { child, entry, name }
        } finally {
          fs.closeSync(log)
        }
      },
      catch: (error) =>
        unavailable(`The session host could not be started: ${error instanceof Error ? error.message : String(error)}.`)
    })

    let answeredAt = performance.now()
    let inOrder = false
    let said: string | null = null
    const line = lifelineOf(child)
    line?.on(
      "data",
      lineReader((text) => {
        answeredAt = performance.now()
        const message = readFromHost(text)
        if (message?.type === "ready") Deferred.doneUnsafe(ready, Effect.void)
        if (message?.type === "spent") line.write(writeLine({ type: "secret", secret: issue() }))
        if (message?.type === "idle") inOrder = true
        if (message?.type === "failed") said = message.message
      })
    )
    // What goes wrong with the lifeline is followed by the end of the process.
    line?.on("error", () => {})
    child.once(
      "error",
      (error) => Deferred.doneUnsafe(exited, Effect.succeed(`it could not be started: ${error.message}`))
    )
    child.once("exit", (code, signal) => {
      Deferred.doneUnsafe(
        exited,
        Effect.succeed(signal === null ? `it ended with code ${code}` : `it was killed by ${signal}`)
      )
    })
    line?.write(writeLine({ type: "order", order: { ...order, secret: issue() } }))

    const kill = (why: string) => {
      said ??= why
      child.kill("SIGKILL")
    }
    let askedAt = performance.now()
    const pinging = setInterval(() => {
      const now = performance.now()
      // Answers may wait here unread where this process itself was held up. While the host boots, the limit of that holds.
      if (now - askedAt > 2 * times.pingMillis) answeredAt = now
      askedAt = now
      const silence = Deferred.isDoneUnsafe(ready) ? now - answeredAt : 0
      if (silence > times.silenceMillis) return kill("it did not answer any more and was killed")
      line?.write(writeLine({ type: "ping" }))
    }, times.pingMillis)
    const booting = setTimeout(() => {
      if (!Deferred.isDoneUnsafe(ready)) kill(`it was not ready after ${times.bootMillis / 1_000} s and was killed`)
    }, times.bootMillis)

    yield* Effect.gen(function*() {
      const how = yield* Deferred.await(exited)
      clearInterval(pinging)
      clearTimeout(booting)
      line?.destroy()
      yield* endProcesses(mark, name)
      fs.rmSync(order.socket, { force: true })
      entry.close()
      const reason = said ?? how
      if (!Deferred.isDoneUnsafe(ready)) {
        const lines = said === null ? lastLines(options.log, 8) : ""
        const end = lines === "" ? "" : ` The end of its log:\n${lines}`
        const message = `The session host of ${order.host} did not start: ${reason}.${end}`
        Deferred.doneUnsafe(ready, Effect.fail(unavailable(message)))
      }
      Deferred.doneUnsafe(ended, Effect.succeed({ inOrder, reason }))
    }).pipe(Effect.forkDetach({ startImmediately: true }))

    return {
      pid: name?.pid ?? 0,
      ready: Deferred.await(ready),
      ended: Deferred.await(ended),
      stop: Effect.suspend(() => {
        inOrder = true
        line?.write(writeLine({ type: "stop" }))
        const killing = setTimeout(() => child.kill("SIGKILL"), times.stopMillis)
        return Effect.andThen(Deferred.await(ended), Effect.sync(() => clearTimeout(killing)))
      })
    }
  })

const lifelineOf = (child: ChildProcess): Duplex | null => {
  const pipe = child.stdio[3]
  return pipe instanceof Duplex ? pipe : null
}
