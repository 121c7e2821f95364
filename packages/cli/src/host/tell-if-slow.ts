/** Says what is waited for, when it is waited for long enough that somebody wonders. */
import * as Effect from "effect/Effect"

/** Warns once, if the work takes longer than a second. */
export const tellIfSlow = <A, E>(what: string, work: Effect.Effect<A, E>): Effect.Effect<A, E> =>
  Effect.scoped(
    Effect.andThen(
      Effect.forkScoped(Effect.andThen(Effect.sleep("1 second"), Effect.logWarning(`Waiting for ${what}.`))),
      work
    )
  )
