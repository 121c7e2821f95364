/**
 * Replicated state: the latest value of something, owned by one authority and readable on every host.
 *
 * Promised: one authority and no remote writes; snapshot and place in the stream in one step, so no gap and no duplicate;
 * contiguous sequence numbers; values are immutable and detached; an unchanged value is not delivered; a slow consumer
 * never slows the authority (its queue is bounded; what it missed is replaced by the current value).
 * Not promised: history, storage, merging of concurrent writers.
 */
import type * as Effect from "effect/Effect"
import type * as Stream from "effect/Stream"
import type { Operation } from "../json/index.ts"

/** The value deeply writable, for the length of one `update` callback. */
export type Draft<A> = A extends (...args: ReadonlyArray<never>) => unknown ? A
  : A extends ReadonlyArray<unknown> ? { -readonly [K in keyof A]: Draft<A[K]> }
  : A extends object ? { -readonly [K in keyof A]: Draft<A[K]> }
  : A

/** Latest value with its authority in this process. */
export interface RemoteState<A> {
  readonly value: A
  /** Number of the newest delivery. */
  readonly sequence: number
  /** The current value first, then every later one; a consumer that falls far behind skips to the newest ones. */
  readonly changes: Stream.Stream<A>
  /**
   * Runs `effect` for the current value and each later one, one after another, under a span linked to the write that
   * caused the delivery; the first runs under the subscriber's own span.
   */
  readonly forEach: <E, R>(effect: (value: A) => Effect.Effect<void, E, R>) => Effect.Effect<never, E, R>
}

/** The authority's side. Every write is one delivery, at once visible to local readers. */
export interface MutableRemoteState<A> extends RemoteState<A> {
  readonly get: Effect.Effect<A>
  readonly set: (value: A) => Effect.Effect<void>
  /** Change a draft in place; the draft is dead after the callback. What did not change keeps its identity. */
  readonly update: (change: (draft: Draft<A>) => void) => Effect.Effect<void>
  /** Apply operations made elsewhere, as one delivery with one sequence number, also when there are none. */
  readonly publish: (operations: ReadonlyArray<Operation>) => Effect.Effect<void>
}

/**
 * - `detached`: it belongs to a session and none is attached, or nobody has provided it yet
 * - `hydrating`: waiting for the first snapshot, or for the one of a newly selected session
 * - `live`: as the authority has it
 * - `stale`: the last known value, the authority cannot be reached
 */
export type ReplicaStatus = "detached" | "hydrating" | "live" | "stale"

/** A state seen across a connection. */
export interface Replica<A> {
  /** The last known value, or `undefined` for "not yet". Never another session's. */
  readonly value: A | undefined
  readonly status: ReplicaStatus
  /** The current status first. */
  readonly statuses: Stream.Stream<ReplicaStatus>
  /** The current value first, as soon as there is one, then every later one, also across reconnects. */
  readonly changes: Stream.Stream<A>
  /** As of {@link RemoteState}; a value that a snapshot brought runs under the hydration's span. */
  readonly forEach: <E, R>(effect: (value: A) => Effect.Effect<void, E, R>) => Effect.Effect<never, E, R>
}
