/**
 * Observing the keyed instances of a service in the process that provides them.
 *
 * One scoped effect runs for each live instance, those already there included, with the implementation itself; it is
 * interrupted when that instance closes. A key that is used again is another instance. One that fails is told in the log and
 * ends none of the others.
 */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"
import type { Implementation, RemoteService } from "./contract.ts"
import type { Instance, ServiceDirectoryShape } from "./directory.ts"

/** For the length of the scope. */
export const observeInstances = <S extends RemoteService.Any>(
  directory: Pick<ServiceDirectoryShape, "everyKeyed" | "watch">,
  token: S,
  effect: (instance: Implementation<S>, key: string) => Effect.Effect<void, unknown, Scope.Scope>
): Effect.Effect<void, never, Scope.Scope> =>
  Effect.gen(function*() {
    const scope = yield* Effect.scope
    const running = new Map<Instance, Fiber.Fiber<unknown>>()
    const changed = yield* Queue.sliding<void>(1)
    yield* Effect.acquireRelease(
      Effect.sync(() => directory.watch(() => Queue.offerUnsafe(changed, undefined))),
      (unwatch) => Effect.sync(unwatch)
    )

    const start = (instance: Instance) =>
      Effect.map(
        // The erasure point of observers: what was registered under a token has the token's type.
        Effect.suspend(() => effect(instance.implementation as Implementation<S>, instance.key ?? "")).pipe(
          Effect.scoped,
          Effect.catchCause((cause) =>
            Effect.logWarning(`An observer of service "${token.id}" failed for "${instance.key}".`, cause)
          ),
          Effect.forkIn(scope)
        ),
        (fiber) => running.set(instance, fiber)
      )

    const settle = Effect.suspend(() => {
      const live = new Set(directory.everyKeyed(token.id))
      const gone = [...running].filter(([instance]) => !live.has(instance))
      for (const [instance] of gone) running.delete(instance)
      return Effect.andThen(
        Fiber.interruptAll(gone.map(([, fiber]) => fiber)),
        Effect.forEach([...live].filter((instance) => !running.has(instance)), start, { discard: true })
      )
    })
    yield* Effect.forkIn(Effect.andThen(settle, Effect.forever(Effect.andThen(Queue.take(changed), settle))), scope)
  })
