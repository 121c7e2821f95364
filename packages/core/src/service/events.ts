/**
 * Events: projections of host-local happenings, in order, with the span of their cause. They are not state: one that
 * happened while nobody listened, or while the connection was down, is gone, and the consumer re-reads state. So is the
 * oldest that waits for a consumer that falls far behind.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Queue from "effect/Queue"
import type * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type * as Stream from "effect/Stream"
import { currentCarrier } from "./cause.ts"
import { explain, jsonCodec } from "./codec.ts"
import { Feed, forEachOf, streamOf, subscription } from "./feed.ts"
import type { Delivery } from "./feed.ts"

/** A stream of every event from the moment of subscribing. */
export interface RemoteEvents<A> extends Stream.Stream<A> {
  /** Runs `effect` for each event, one after another, under a span linked to what caused the event. */
  readonly forEach: <E, R>(effect: (event: A) => Effect.Effect<void, E, R>) => Effect.Effect<never, E, R>
}

export interface MutableRemoteEvents<A> extends RemoteEvents<A> {
  /** One that the schema refuses is a bug of the source and dies. */
  readonly emit: (event: A) => Effect.Effect<void>
}

export interface EventDelivery<A> extends Delivery<A> {
  readonly sequence: number
}

/** The feed behind an event source, for the endpoint. */
const feeds = new WeakMap<object, Feed<EventDelivery<unknown>>>()

export const eventFeed = (events: unknown): Feed<EventDelivery<unknown>> | undefined =>
  typeof events === "object" && events !== null ? feeds.get(events) : undefined

export const registerFeed = (events: object, feed: Feed<EventDelivery<unknown>>): void => {
  feeds.set(events, feed)
}

/** A stream that can also run an effect per delivery in the trace of its cause. */
export const eventsOver = <A>(
  subscribe: Effect.Effect<Queue.Queue<Delivery<A>>, never, Scope.Scope>
): RemoteEvents<A> => Object.assign(streamOf(subscribe), { forEach: forEachOf("event.delivery", subscribe) })

export const MutableRemoteEvents = {
  make: <A>(schema: Schema.ConstraintCodec<A, unknown>): Effect.Effect<MutableRemoteEvents<A>> =>
    Effect.sync(() => MutableRemoteEvents.makeUnsafe(schema)),

  makeUnsafe: <A>(schema: Schema.ConstraintCodec<A, unknown>): MutableRemoteEvents<A> => {
    const feed = new Feed<EventDelivery<A>>()
    const codec = jsonCodec(schema)
    let sequence = 0
    const source: MutableRemoteEvents<A> = Object.assign(eventsOver(subscription<Delivery<A>>(feed, () => [])), {
      emit: (event: A) =>
        Effect.map(currentCarrier, (cause) => {
          const exit = codec.encode(event)
          if (Exit.isFailure(exit)) {
            throw new Error(`An event source was given an event that its schema refuses: ${explain(exit)}.`)
          }
          feed.publish({ value: event, sequence: ++sequence, cause })
        })
    })
    // Erasure: the endpoint encodes what it reads here with the token's own codec.
    registerFeed(source, feed as Feed<EventDelivery<unknown>>)
    return source
  }
}
