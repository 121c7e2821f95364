/**
 * Work that runs while anybody needs it: started at the first demand, stopped some time after the last.
 */
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"

/** Forks into the connection: its scope, its context, never the caller's identity or span. */
export type Fork = <A, E>(effect: Effect.Effect<A, E>) => Fiber.Fiber<A, E>

export class Demand {
  private holders = 0
  private running: Fiber.Fiber<unknown> | undefined
  private stopping: Fiber.Fiber<unknown> | undefined
  /** Counts as one holder for the length of the scope. */
  readonly acquire: Effect.Effect<void, never, Scope.Scope>

  /** `idleMillis` is how long the work goes on after the last holder left. */
  constructor(fork: Fork, work: Effect.Effect<unknown>, stopped: () => void, idleMillis: number) {
    this.acquire = Effect.acquireRelease(
      Effect.sync(() => {
        this.holders++
        this.stopping?.interruptUnsafe()
        this.stopping = undefined
        this.running ??= fork(work)
      }),
      () =>
        Effect.sync(() => {
          if (--this.holders > 0) return
          this.stopping = fork(Effect.andThen(
            Effect.sleep(idleMillis),
            Effect.sync(() => {
              this.stopping = undefined
              this.running?.interruptUnsafe()
              this.running = undefined
              stopped()
            })
          ))
        })
    )
  }
}
