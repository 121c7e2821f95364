/**
 * One source, many consumers, all in this process. Publishing is synchronous and never waits: each consumer has a bounded
 * queue of its own, and one that falls behind loses its oldest deliveries. A hot path, so plain TypeScript.
 */
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { underCause } from "./cause.ts"
import type { SpanCarrier } from "./cause.ts"

export interface Delivery<A> {
  readonly value: A
  readonly cause: SpanCarrier | null
}

/** Deliveries that may wait for one consumer. */
const consumerCapacity = 1_024

/** What can be followed. */
export interface Source<out D> {
  readonly subscribe: (listener: (delivery: D) => void) => () => void
}

export class Feed<D> {
  private readonly listeners = new Set<(delivery: D) => void>()

  get size(): number {
    return this.listeners.size
  }

  publish(delivery: D): void {
    for (const listener of this.listeners) listener(delivery)
  }

  /** The listener must not throw and must not wait. */
  subscribe(listener: (delivery: D) => void): () => void {
    const own = (delivery: D) => listener(delivery)
    this.listeners.add(own)
    return () => {
      this.listeners.delete(own)
    }
  }
}

/** A scoped queue over a feed; `first` is taken in the same step as the place in the feed. */
export const subscription = <D>(
  feed: Source<D>,
  first: () => ReadonlyArray<D>,
  capacity: number = consumerCapacity
): Effect.Effect<Queue.Queue<D>, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.map(Queue.sliding<D>(capacity), (queue) => {
      for (const delivery of first()) Queue.offerUnsafe(queue, delivery)
      return { queue, unsubscribe: feed.subscribe((delivery) => Queue.offerUnsafe(queue, delivery)) }
    }),
    ({ queue, unsubscribe }) => {
      unsubscribe()
      return Queue.shutdown(queue)
    }
  ).pipe(Effect.map(({ queue }) => queue))

export const streamOf = <A>(
  subscribe: Effect.Effect<Queue.Queue<Delivery<A>>, never, Scope.Scope>
): Stream.Stream<A> =>
  Stream.unwrap(Effect.map(subscribe, (queue) => Stream.map(Stream.fromQueue(queue), (delivery) => delivery.value)))

/** Runs an effect per delivery, one after another, each in the trace of its cause. */
export const forEachOf = <A>(
  name: string,
  subscribe: Effect.Effect<Queue.Queue<Delivery<A>>, never, Scope.Scope>
) =>
<E, R>(effect: (value: A) => Effect.Effect<void, E, R>): Effect.Effect<never, E, R> =>
  Effect.scopedWith((scope) =>
    Effect.flatMap(Effect.provideService(subscribe, Scope.Scope, scope), (queue) =>
      Effect.forever(
        Effect.flatMap(Queue.take(queue), (delivery) =>
          underCause(Effect.suspend(() => effect(delivery.value)), name, delivery.cause)),
        { disableYield: true }
      ))
  )
