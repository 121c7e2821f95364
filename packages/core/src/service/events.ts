/**
 * Events: projections of host-local happenings, in order, with the span of their cause. They are not state: one that
 * happened while nobody listened, or while the connection was down, is gone, and the consumer re-reads state.
 */
import type * as Effect from "effect/Effect"
import type * as Stream from "effect/Stream"

/** A stream of every event from the moment of subscribing. */
export interface RemoteEvents<A> extends Stream.Stream<A> {
  /** Runs `effect` for each event, one after another, under a span linked to what caused the event. */
  readonly forEach: <E, R>(effect: (event: A) => Effect.Effect<void, E, R>) => Effect.Effect<never, E, R>
}

export interface MutableRemoteEvents<A> extends RemoteEvents<A> {
  readonly emit: (event: A) => Effect.Effect<void>
}
