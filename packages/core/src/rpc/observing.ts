/**
 * Observing the keyed instances of a service across a connection: one scoped effect per live instance, with a facade of it.
 *
 * What is live comes as a list whenever it changes. An instance that is gone has its effect interrupted; a key that is used
 * again, or a host that has started again, gives another instance. While the connection is down nothing is decided.
 */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"
import type { Facade, RemoteService } from "../service/index.ts"
import { FacadeEntry } from "./facade.ts"
import type { Host } from "./facade.ts"
import type { Item } from "./wire.ts"

type Live = Extract<Item, { readonly type: "instances" }>["live"]

/** For the length of the scope. `epoch` is the one of the host that the connection leads to now. */
export const observeOver = <S extends RemoteService.Any>(
  host: Host,
  epoch: () => string | null,
  token: S,
  effect: (instance: Facade<S>, key: string) => Effect.Effect<void, unknown, Scope.Scope>
): Effect.Effect<void, never, Scope.Scope> =>
  Effect.gen(function*() {
    const scope = yield* Effect.scope
    const lists = yield* Queue.sliding<Live>(1)
    const running = new Map<string, Fiber.Fiber<unknown>>()
    const follow = Effect.flatMap(host.connected, (link) =>
      Effect.catch(
        link.watch({ type: "instances", service: token.id }, (item) => {
          if (item.type === "instances") Queue.offerUnsafe(lists, item.live)
          return null
        }),
        (error) => error.code === "disconnected" ? Effect.void : Effect.sleep(1_000)
      ))
    yield* Effect.forkIn(Effect.forever(follow), scope)

    const start = (id: string, { generation, key }: Live[number]) => {
      const entry = new FacadeEntry(token, { service: token.id, key, generation }, host)
      return Effect.map(
        Effect.andThen(
          entry.hasStates ? entry.demand : Effect.void,
          // The erasure point of observed facades: an entry was made for this token.
          effect(entry.facade as Facade<S>, key)
        ).pipe(
          Effect.scoped,
          Effect.catchCause((cause) =>
            Effect.logWarning(`An observer of service "${token.id}" failed for "${key}".`, cause)
          ),
          Effect.forkIn(scope)
        ),
        (fiber) => running.set(id, fiber)
      )
    }

    const settle = Effect.flatMap(Queue.take(lists), (live) =>
      Effect.suspend(() => {
        const wanted = new Map(live.map((one) => [`${epoch()} ${one.generation} ${one.key}`, one]))
        const gone = [...running].filter(([id]) => !wanted.has(id))
        for (const [id] of gone) running.delete(id)
        return Effect.andThen(
          Fiber.interruptAll(gone.map(([, fiber]) => fiber)),
          Effect.forEach([...wanted].filter(([id]) => !running.has(id)), ([id, one]) => start(id, one), {
            discard: true
          })
        )
      }))
    yield* Effect.forkIn(Effect.forever(settle), scope)
  })
