/**
 * Observing the keyed instances of a service across a connection: one scoped effect per live instance, with a facade of it.
 *
 * What is live comes as a list whenever it changes. An instance that is gone has its effect interrupted; a key that is used
 * again, or a host that has started again, gives another instance. While the connection is down nothing is decided. However
 * many observe, there is one list, and one facade of an instance with one subscription behind it.
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

/** The live instances of one service, for all who observe them. */
class Instances {
  private readonly takers = new Set<(live: Live) => void>()
  private readonly entries = new Map<string, { readonly entry: FacadeEntry; users: number }>()
  private live: Live | null = null
  private watching: Fiber.Fiber<unknown> | null = null
  private readonly host: Host
  private readonly token: RemoteService.Any

  constructor(host: Host, token: RemoteService.Any) {
    this.host = host
    this.token = token
  }

  get isObserved(): boolean {
    return this.takers.size > 0
  }

  /** Gives the list, as it is and whenever it changes, until the function that this returns is called. */
  follow(taker: (live: Live) => void): () => void {
    this.takers.add(taker)
    if (this.live !== null) taker(this.live)
    this.watching ??= this.host.fork(Effect.forever(this.watch))
    return () => {
      this.takers.delete(taker)
      if (this.isObserved) return
      this.watching?.interruptUnsafe()
      this.watching = null
      this.live = null
    }
  }

  private readonly watch: Effect.Effect<void> = Effect.suspend(() =>
    Effect.flatMap(this.host.connected, (link) =>
      Effect.catch(
        link.watch({ type: "instances", service: this.token.id }, (item) => {
          if (item.type !== "instances") return null
          this.live = item.live
          for (const taker of this.takers) taker(item.live)
          return null
        }),
        (error) => error.code === "disconnected" ? Effect.void : Effect.sleep(1_000)
      ).pipe(Effect.ensuring(Effect.sync(() => this.live = null))))
  )

  /** The facade of one instance for the length of the scope; `id` tells it from all that had its key before. */
  acquire(id: string, { generation, key }: Live[number]): Effect.Effect<FacadeEntry, never, Scope.Scope> {
    return Effect.map(
      Effect.acquireRelease(
        Effect.sync(() => {
          const known = this.entries.get(id) ??
            { entry: new FacadeEntry(this.token, { service: this.token.id, key, generation }, this.host), users: 0 }
          known.users++
          this.entries.set(id, known)
          return known
        }),
        (held) =>
          Effect.sync(() => {
            if (--held.users === 0) this.entries.delete(id)
          })
      ),
      ({ entry }) => entry
    )
  }
}

/** What is observed over one connection. */
export class Observing {
  /** Code that was loaded anew brings a token of its own. */
  private readonly services = new Map<RemoteService.Any, Instances>()
  private readonly host: Host
  private readonly epoch: () => string | null

  /** `epoch` is the one of the host that the connection leads to now. */
  constructor(host: Host, epoch: () => string | null) {
    this.host = host
    this.epoch = epoch
  }

  /** For the length of the scope. */
  observe<S extends RemoteService.Any>(
    token: S,
    effect: (instance: Facade<S>, key: string) => Effect.Effect<void, unknown, Scope.Scope>
  ): Effect.Effect<void, never, Scope.Scope> {
    return Effect.gen({ self: this }, function*() {
      const scope = yield* Effect.scope
      const lists = yield* Queue.sliding<Live>(1)
      const running = new Map<string, Fiber.Fiber<unknown>>()
      const instances = this.services.get(token) ?? new Instances(this.host, token)
      this.services.set(token, instances)
      yield* Effect.acquireRelease(
        Effect.sync(() => instances.follow((live) => Queue.offerUnsafe(lists, live))),
        (leave) =>
          Effect.sync(() => {
            leave()
            if (!instances.isObserved && this.services.get(token) === instances) this.services.delete(token)
          })
      )

      const start = (id: string, instance: Live[number]) =>
        Effect.map(
          Effect.flatMap(instances.acquire(id, instance), (entry) =>
            Effect.andThen(
              entry.hasStates ? entry.demand : Effect.void,
              // The erasure point of observed facades: an entry was made for this token.
              effect(entry.facade as Facade<S>, instance.key)
            )).pipe(
              Effect.scoped,
              Effect.catchCause((cause) =>
                Effect.logWarning(`An observer of service "${token.id}" failed for "${instance.key}".`, cause)
              ),
              Effect.forkIn(scope)
            ),
          (fiber) => running.set(id, fiber)
        )

      const settle = Effect.flatMap(Queue.take(lists), (live) =>
        Effect.suspend(() => {
          const wanted = new Map(live.map((one) => [`${this.epoch()} ${one.generation} ${one.key}`, one]))
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
  }
}
