/**
 * The session facet of shell lines. A line is the person's own: no rule is asked and no sandbox confines it, and only clients
 * of the session can send one, never the model. It runs without a terminal, as the tool `bash` does.
 */
import type { SessionContext } from "@bezel/core/host"
import type { OpenSession } from "@bezel/core/session"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { killProcesses } from "../tools/process-tree.ts"
import { runShell } from "../tools/shell.ts"
import { type RunningLine, Shell, shellEntry, ShellError, type ShellLine } from "./contract.ts"

type Context = Pick<SessionContext, "location" | "providePerSession" | "state">

/** A line that nobody stops ends after this. */
const limitMillis = 3_600_000
/** Characters of output that an entry keeps at each end. */
const keptEnd = 16_384
/** Characters that are shown while it runs. */
const tailLength = 2_000

/** Keeps both ends of a text that comes in pieces. */
const bothEnds = () => {
  const decoder = new TextDecoder()
  let start = ""
  let end = ""
  let omitted = 0
  return {
    add: (chunk: Uint8Array) => {
      let text = decoder.decode(chunk, { stream: true })
      const room = keptEnd - start.length
      start += text.slice(0, room)
      text = text.slice(room)
      end += text
      if (end.length > 2 * keptEnd) {
        omitted += end.length - keptEnd
        end = end.slice(-keptEnd)
      }
    },
    tail: () => (start + end).slice(-tailLength),
    result: () => {
      const over = Math.max(0, end.length - keptEnd)
      return over + omitted === 0
        ? { output: start + end, omitted: 0 }
        : { output: `${start}\n[…]\n${end.slice(over)}`, omitted: omitted + over }
    }
  }
}

/** The words by which a model learns of a line. */
const told = ({ command, exitCode, output }: ShellLine): string =>
  `I ran this command myself:\n\n${command}\n\n` +
  `It ${exitCode === null ? "was ended" : `ended with exit code ${exitCode}`} and printed${
    output === "" ? " nothing." : `:\n\n${output}`
  }`

/** The facet for session hosts. */
export const session = Effect.fn("shell/session")(function*(ctx: Context) {
  yield* ctx.providePerSession(Shell, (opened) => makeShell(ctx, opened))
})

const makeShell = Effect.fnUntraced(function*(ctx: Context, { identity, main }: OpenSession) {
  const running = yield* ctx.state(Shell.contract.state.running, null)
  // What runs belongs to the session: it ends with that, not with the client that began it.
  const scope = yield* Effect.scope
  let current: Fiber.Fiber<ShellLine, ShellError> | null = null

  const line = (command: string, isShared: boolean) =>
    Effect.gen(function*() {
      const kept = bothEnds()
      const ran = yield* Effect.exit(Effect.interruptible(Effect.mapError(
        runShell({
          command,
          directory: ctx.location.directory,
          timeoutMs: limitMillis,
          environment: { BEZEL_SESSION_ID: identity.sessionID },
          onOutput: (chunk) => {
            kept.add(chunk)
            const shown: RunningLine = { command, tail: kept.tail() }
            return running.set(shown)
          }
        }),
        ({ message }) => new ShellError({ message })
      )))
      yield* running.set(null)
      current = null
      if (ran._tag === "Failure" && ran.cause.reasons.some(({ _tag }) => _tag !== "Interrupt")) {
        return yield* Effect.failCause(ran.cause)
      }
      if (ran._tag === "Success") yield* killProcesses(ran.value.processes)
      const exitCode = ran._tag === "Success" && !ran.value.timedOut ? ran.value.exitCode : null
      const done: ShellLine = { command, exitCode, ...kept.result() }
      yield* Effect.mapError(
        main.write(shellEntry, {
          data: { ...done },
          ...(isShared ? { model: [{ role: "user", content: [{ type: "text", text: told(done) }] }] } : {})
        }),
        ({ message }) => new ShellError({ message })
      )
      return done
    })

  return {
    running,
    run: ({ command, shared = true }: { readonly command: string; readonly shared?: boolean }) =>
      Effect.gen(function*() {
        if (current !== null) {
          return yield* new ShellError({ message: "Another line runs already; it can be stopped with escape." })
        }
        yield* running.set({ command, tail: "" })
        const fiber = yield* Effect.forkIn(Effect.uninterruptible(line(command, shared)), scope)
        current = fiber
        return yield* Fiber.join(fiber)
      }),
    stop: () =>
      Effect.suspend(() => {
        const fiber = current
        return fiber === null ? Effect.void : Effect.asVoid(Effect.forkIn(Fiber.interrupt(fiber), scope))
      })
  }
})
