/**
 * Calls that run at a server, and for which of them it asks a person something.
 *
 *     on the answer's own stream (an address) ──────────▶ that call
 *     elsewhere, calls of one session running ──────────▶ that session
 *     elsewhere, calls of sessions with one common root ▶ the root, whose people look after all of them
 *     elsewhere, calls of strangers, or none ───────────▶ nobody: what one person is asked is not another one's to answer
 */
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Semaphore from "effect/Semaphore"

export interface RunningCall {
  readonly sessionID: string
  readonly ended: Latch.Latch
  /** How many questions that may be for it are open: a person may take their time. */
  questions: number
  /** Something was to be asked for it while nobody was there. */
  unattended: boolean
}

/** Where a question is put, and when there is no use in an answer any more. */
export interface Asked {
  readonly sessionID: string
  readonly over: Effect.Effect<void>
  /** The calls that it may be for. */
  readonly calls: ReadonlyArray<RunningCall>
}

export interface Calls {
  /** Runs a call of a session, which is known as running meanwhile. */
  readonly run: <A, E>(sessionID: string, call: (running: RunningCall) => Effect.Effect<A, E>) => Effect.Effect<A, E>
  /** `null` in place of the call: the server did not say for which one it asks. */
  readonly askedFor: (call: RunningCall | null) => Effect.Effect<Asked | "nobody" | "several">
  /** One form after the other at a session: questions of two in turn would be understood by nobody. */
  readonly oneForm: <A>(sessionID: string, form: Effect.Effect<A>) => Effect.Effect<A>
}

/** `rootOf` gives the session that a session works for in the end. */
export const makeCalls = (rootOf: (sessionID: string) => Effect.Effect<string>): Calls => {
  const running = new Set<RunningCall>()
  const forms = new Map<string, { readonly line: Semaphore.Semaphore; users: number }>()
  return {
    run: (sessionID, call) =>
      Effect.acquireUseRelease(
        Effect.map(Latch.make(false), (ended) => {
          const one: RunningCall = { sessionID, ended, questions: 0, unattended: false }
          running.add(one)
          return one
        }),
        call,
        (one) => {
          running.delete(one)
          return one.ended.open
        }
      ),
    askedFor: (call) =>
      Effect.gen(function*() {
        if (call !== null && !running.has(call)) return "nobody"
        const calls = call === null ? [...running] : [call]
        const over = Effect.forEach(calls, ({ ended }) => ended.await, { discard: true })
        const sessions = [...new Set(calls.map(({ sessionID }) => sessionID))]
        const [first] = sessions
        if (first === undefined) return "nobody"
        if (sessions.length === 1) return { sessionID: first, over, calls }
        const [root = first, ...others] = new Set(yield* Effect.forEach(sessions, rootOf))
        return others.length === 0 ? { sessionID: root, over, calls } : "several"
      }),
    oneForm: (sessionID, form) =>
      Effect.suspend(() => {
        const queue = forms.get(sessionID) ?? { line: Semaphore.makeUnsafe(1), users: 0 }
        forms.set(sessionID, queue)
        queue.users++
        return Effect.ensuring(
          queue.line.withPermits(1)(form),
          Effect.sync(() => {
            queue.users--
            if (queue.users === 0) forms.delete(sessionID)
          })
        )
      })
  }
}
