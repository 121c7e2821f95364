/**
 * Attempts at a request: whether there is another one behind a failure and when, and what a checkpoint says of it. A
 * generation and a compaction ask a model alike.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { TaskRecord } from "../storage/index.ts"
import type { RetryPolicy } from "./options.ts"

/** What counts of a failure for the next attempt. */
export interface FailedAttempt {
  readonly kind: string
  readonly message: string
  readonly retryable: boolean
  /** What the provider asked to wait, in milliseconds. */
  readonly retryAfterMs: number | null
}

export interface NextAttempt {
  readonly attempt: number
  /** Milliseconds to wait, and the time at which that is over. */
  readonly wait: number
  readonly until: number
}

/** What a process that ended in the middle of a request left: it counts as a failed attempt. */
export const stoppedWhile = (what: string): FailedAttempt => ({
  kind: "transport",
  message: `Bezel was stopped while the model was ${what}.`,
  retryable: true,
  retryAfterMs: 0
})

/** The attempt behind a failed one; `null` where repeating is no use, or was tried often enough. */
export const nextAttempt = (
  retry: RetryPolicy,
  failed: number,
  error: FailedAttempt
): Effect.Effect<NextAttempt | null> =>
  Effect.map(Clock.currentTimeMillis, (now) => {
    if (!error.retryable || failed >= retry.attempts) return null
    const asked = error.retryAfterMs ?? retry.firstWait * 2 ** (failed - 1)
    const wait = Math.max(0, Math.min(retry.longestWait, asked))
    return { attempt: failed + 1, wait, until: now + wait }
  })

/** A number that a task's checkpoint holds. */
export const checkpointNumber = (task: TaskRecord, name: "attempt" | "until", otherwise: number): number => {
  const { checkpoint } = task
  const value: unknown = checkpoint !== null && typeof checkpoint === "object" ? Reflect.get(checkpoint, name) : null
  return typeof value === "number" ? value : otherwise
}
