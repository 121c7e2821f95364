/**
 * Runs hook chains: in order of registration, gates last, each handler within its time limit.
 *
 * A handler that has said that it waits for a person has no limit. What a failure means is the hook point's: it blocks a
 * call before it starts, and is skipped with a warning everywhere else.
 */
import * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { HarnessReport } from "../harness/index.ts"

export const defaultHookLimit: Duration.Input = "10 seconds"

/** The failure of a handler as one sentence, or `null` if it was interrupted from outside. */
export const failureText = (cause: Cause.Cause<{ readonly message: string }>): string | null => {
  if (Cause.hasInterruptsOnly(cause)) return null
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

/** Runs an observing handler: its failure is reported and otherwise ignored. */
export const skipFailure = <A>(
  handler: Effect.Effect<A, { readonly message: string }>,
  point: string,
  namespace: string,
  conversationID: string,
  report: (report: HarnessReport) => void
): Effect.Effect<A | undefined> =>
  Effect.catchCause(handler, (cause) => {
    const text = failureText(cause)
    if (text === null) return Effect.interrupt
    report({ level: "warning", message: `The ${point} hook of "${namespace}" was skipped: ${text}`, conversationID })
    return Effect.as(Effect.logWarning(`${point} hook of ${namespace} failed`, cause), undefined)
  })
