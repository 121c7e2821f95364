/**
 * Sleeping until a time of the wall clock that a task has stored, whatever happens to that clock: somebody sets it, a laptop
 * sleeps, a session is opened again on another machine.
 *
 * It looks at the clock again at least once a minute, so a clock that jumps ahead is noticed; and it never sleeps longer than
 * the wait was meant to be, so one that jumps back holds nothing up.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"

const lookMillis = 60_000

/** Until `until` (milliseconds since the epoch), but at most for `longest` milliseconds. */
export const sleepUntil = (until: number, longest: number): Effect.Effect<void> =>
  Effect.gen(function*() {
    let slept = 0
    while (true) {
      const left = Math.min(until - (yield* Clock.currentTimeMillis), longest - slept)
      if (left <= 0) return
      const nap = Math.min(left, lookMillis)
      yield* Effect.sleep(nap)
      slept += nap
    }
  })
