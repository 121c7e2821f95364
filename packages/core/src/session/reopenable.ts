/**
 * Something that its holders keep while it is closed for a while and opened again.
 *
 *     open ──suspend──▶ suspended ──reopen──▶ open
 *                           └─ opening fails: told to whoever asked; the next demand tries again
 *
 * What a holder does through `use` while it is suspended waits; what was under way when it was suspended and fails by that
 * begins again with the successor. Everything ends with the scope.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Latch from "effect/Latch"
import * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"

export interface Reopenable<A, E> {
  /** What is open now, or `null`. */
  readonly now: () => A | null
  /** It is kept closed until `reopen`. */
  readonly isSuspended: () => boolean
  /** What is open, opened if need be. */
  readonly current: Effect.Effect<A, E>
  readonly use: <B, E2, R>(use: (open: A) => Effect.Effect<B, E2, R>) => Effect.Effect<B, E | E2, R>
  /** The same, with a failure to open told in the user's own words. */
  readonly useOr: <E3>(
    refuse: (error: E) => E3
  ) => <B, E2, R>(use: (open: A) => Effect.Effect<B, E2, R>) => Effect.Effect<B, E2 | E3, R>
  /** Brings it to rest with `rest`, closes it and keeps it closed until `reopen`. */
  readonly suspend: (rest: (open: A) => Effect.Effect<void>) => Effect.Effect<void>
  readonly reopen: Effect.Effect<A, E>
  /** The same without keeping it closed: the next demand opens it again. */
  readonly close: (rest: (open: A) => Effect.Effect<void>) => Effect.Effect<void>
}

export interface ReopenableOptions<A, E> {
  readonly open: Effect.Effect<A, E, Scope.Scope>
  /** Says of a failure that it came about only because what was used had been closed. */
  readonly isClosed: (error: unknown) => boolean
}

/** Nothing is open yet; `current` opens it. */
export const makeReopenable = <A, E>(
  { isClosed, open }: ReopenableOptions<A, E>
): Effect.Effect<Reopenable<A, E>, never, Scope.Scope> =>
  Effect.gen(function*() {
    const scope = yield* Effect.scope
    const base = yield* Effect.context<never>()
    const line = yield* Semaphore.make(1)
    const awake = Latch.makeUnsafe(true)
    let held: { readonly open: A; readonly scope: Scope.Closeable } | null = null

    const opened = Effect.uninterruptibleMask((restore) =>
      Effect.gen(function*() {
        if (held !== null) return held.open
        const own = yield* Scope.fork(scope)
        // In the context of its maker, so that nothing of whoever asks lives on in it.
        const made = yield* restore(Effect.setContext(Scope.provide(open, own), base)).pipe(
          Effect.onError((cause) => Scope.close(own, Exit.failCause(cause)))
        )
        held = { open: made, scope: own }
        return made
      })
    ).pipe(line.withPermit)

    const current: Effect.Effect<A, E> = Effect.suspend(() =>
      held === null ? Effect.andThen(awake.await, opened) : Effect.succeed(held.open)
    )

    const useOr = <E3>(refuse: (error: E) => E3) => {
      const use = <B, E2, R>(used: (open: A) => Effect.Effect<B, E2, R>): Effect.Effect<B, E2 | E3, R> =>
        Effect.flatMap(Effect.mapError(current, refuse), (open) =>
          Effect.catchIf(
            used(open),
            (error) => isClosed(error) && held?.open !== open && scope.state._tag !== "Closed",
            () => use(used)
          ))
      return use
    }

    const close: Reopenable<A, E>["close"] = (rest) =>
      Effect.suspend(() => {
        const was = held
        held = null
        return was === null ? Effect.void : Effect.andThen(rest(was.open), Scope.close(was.scope, Exit.void))
      }).pipe(line.withPermit, Effect.uninterruptible)

    return {
      now: () => held?.open ?? null,
      isSuspended: () => !awake.isOpen(),
      current,
      use: useOr((error) => error),
      useOr,
      close,
      suspend: (rest) => Effect.suspend(() => Effect.andThen(awake.close, close(rest))),
      reopen: Effect.andThen(awake.open, current)
    }
  })
