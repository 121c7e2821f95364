/**
 * Keyed resources: one live instance per key, made on demand, shared, and let go some time after its last holder.
 *
 * Promised: concurrent demand makes one instance; it is made in the context of the map, so nothing of whoever asks first
 * lives on in it; a failure is told to each who waits for that instance and to nobody later; a successor is not begun before
 * its predecessor has closed completely. Keys are compared by what they hold.
 */
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Latch from "effect/Latch"
import * as MutableHashMap from "effect/MutableHashMap"
import * as Option from "effect/Option"
import * as RcMap from "effect/RcMap"
import * as Scope from "effect/Scope"

export interface Keyed<in K, out A, out E> {
  /** Holds the instance of a key for the life of the scope. */
  readonly get: (key: K) => Effect.Effect<A, E, Scope.Scope>
  /** Closes the instance of a key now, without its idle time, if nobody holds it. */
  readonly closeIdle: (key: K) => Effect.Effect<void>
}

export interface KeyedOptions<K, A, E, R> {
  readonly make: (key: K) => Effect.Effect<A, E, R>
  /** From the last holder's leaving to the instance's closing. */
  readonly idleTime: Duration.Input
}

export const makeKeyed = <K, A, E, R>(
  options: KeyedOptions<K, A, E, R | Scope.Scope>
): Effect.Effect<Keyed<K, A, E>, never, Exclude<R, Scope.Scope> | Scope.Scope> =>
  Effect.gen(function*() {
    const base = yield* Effect.context<Exclude<R, Scope.Scope>>()
    /** Open once the newest instance of the key has closed. */
    const closings = MutableHashMap.empty<K, Latch.Latch>()

    const instances: RcMap.RcMap<K, A, E> = yield* RcMap.make({
      lookup: (key: K) =>
        Effect.uninterruptibleMask((restore) =>
          Effect.gen(function*() {
            const previous = MutableHashMap.get(closings, key)
            const closed = Latch.makeUnsafe(false)
            MutableHashMap.set(closings, key, closed)
            const scope = yield* Scope.make()
            const close = (exit: Exit.Exit<unknown, unknown>) =>
              Effect.ensuring(
                Scope.close(scope, exit),
                Effect.sync(() => {
                  closed.openUnsafe()
                  if (Option.contains(MutableHashMap.get(closings, key), closed)) MutableHashMap.remove(closings, key)
                })
              )
            yield* Effect.addFinalizer(close)
            // The context of the map and the scope of the instance are all that `make` may need.
            const context = Context.add(base, Scope.Scope, scope) as Context.Context<R | Scope.Scope>
            const made = Effect.setContext(options.make(key), context)
            return yield* restore(Option.isSome(previous) ? Effect.andThen(previous.value.await, made) : made).pipe(
              // At once, because those who wait hold what failed for as long as their own scopes last.
              Effect.onError((cause) => Effect.andThen(close(Exit.failCause(cause)), forget(key, cause)))
            )
          })
        ),
      idleTimeToLive: options.idleTime
    })

    // While this instance is still the key's: a failed one would stay for the idle time, and whoever took it out later could
    // hit its successor. What was interrupted is dropped by the map itself.
    const forget = (key: K, cause: Cause.Cause<unknown>) =>
      Cause.hasInterruptsOnly(cause)
        ? Effect.void
        : Effect.asVoid(Effect.forkDetach(RcMap.invalidate(instances, key), { startImmediately: true }))

    /** Counted from the asking on, so that one that is being made has holders. */
    const holders = MutableHashMap.empty<K, number>()
    const count = (key: K, change: number) =>
      Effect.sync(() => {
        const now = Option.getOrElse(MutableHashMap.get(holders, key), () => 0) + change
        if (now === 0) MutableHashMap.remove(holders, key)
        else MutableHashMap.set(holders, key, now)
      })
    return {
      get: (key) =>
        Effect.andThen(
          // Let go only behind the instance itself: scopes close in the order opposite to this one.
          Effect.acquireRelease(count(key, 1), () => count(key, -1)),
          RcMap.get(instances, key)
        ),
      closeIdle: (key) =>
        Effect.suspend(() => MutableHashMap.has(holders, key) ? Effect.void : RcMap.invalidate(instances, key))
    }
  })
