/**
 * Runs hook chains: in order of registration, gates last, each handler within its time limit.
 *
 * A handler that has said that it waits for a person has no limit. What a failure means is the hook point's: it blocks a
 * call before it starts, and is skipped with a warning everywhere else.
 */
import * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { Session } from "../harness/index.ts"

export const defaultHookLimit: Duration.Input = "10 seconds"

/**
 * The failure of a handler as one sentence. One that was interrupted from outside never gets here: its invocation ends
 * with it; so an interrupt that does is the handler's own, and a failure like any other.
 */
export const failureText = (cause: Cause.Cause<{ readonly message: string }>): string => {
  if (Cause.hasInterruptsOnly(cause)) return "it interrupted itself"
  const error = Cause.squash(cause)
  return error instanceof Error || typeof error === "object" && error !== null && "message" in error
    ? String(error.message)
    : String(error)
}

/** Fails with a sentence when the handler takes too long and `isWaiting` is not true by then. */
export const withLimit = <A, E extends { readonly message: string }>(
  handler: Effect.Effect<A, E>,
  limit: Duration.Input,
  namespace: string,
  isWaiting: () => boolean
): Effect.Effect<A, E | { readonly message: string }> =>
  Effect.raceFirst(
    handler,
    Effect.andThen(
      Effect.sleep(limit),
      Effect.suspend(() =>
        isWaiting()
          ? Effect.never
          : Effect.fail({
            message: `the hook of "${namespace}" did not answer within ${
              Duration.format(Duration.fromInputUnsafe(limit))
            }`
          })
      )
    )
  )

/**
 * Runs one handler of a point that only observes or adds: within its limit, and with its failure reported and otherwise
 * ignored. `who` is the namespace, or the section, that it belongs to.
 */
export const runHandler = <A>(
  session: Pick<Session, "report">,
  options: { readonly hookLimit?: Duration.Input },
  at: {
    readonly point: string
    readonly who: string
    readonly conversationID: string
    readonly limit?: Duration.Input | undefined
  },
  handler: () => Effect.Effect<A, { readonly message: string }>
): Effect.Effect<A | undefined> =>
  Effect.catchCause(
    withLimit(Effect.suspend(handler), at.limit ?? options.hookLimit ?? defaultHookLimit, at.who, () => false),
    (cause) => {
      const message = `The ${at.point} hook of "${at.who}" was skipped: ${failureText(cause)}`
      session.report({ level: "warning", message, conversationID: at.conversationID })
      return Effect.as(Effect.logWarning(`${at.point} hook of ${at.who} failed`, cause), undefined)
    }
  )
