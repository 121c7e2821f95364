/**
 * Replicated state: the latest value of something, owned by one authority and readable on every host.
 *
 * Promised: one authority and no remote writes; snapshot and place in the stream in one step, so no gap and no duplicate;
 * contiguous sequence numbers; values are immutable and detached; an unchanged value is not delivered; a slow consumer
 * never slows the authority (its queue is bounded, and what it lost is covered by the newer values).
 * Not promised: history, storage, merging of concurrent writers.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Schema from "effect/Schema"
import type * as Stream from "effect/Stream"
import { apply, copyJson, track } from "../json/index.ts"
import type { Draft, JsonValue, Operation } from "../json/index.ts"
import { currentCarrier } from "./cause.ts"
import { explain, jsonCodec } from "./codec.ts"
import type { JsonCodec } from "./codec.ts"
import type { AnyCodec } from "./contract.ts"
import { Feed, forEachOf, streamOf, subscription } from "./feed.ts"
import type { Delivery } from "./feed.ts"
import { jsonEqual } from "./json-equal.ts"

/** Latest value with its authority in this process. */
export interface RemoteState<A> {
  readonly value: A
  /** Number of the newest delivery. */
  readonly sequence: number
  /** The current value first, then every later one; a consumer that falls far behind loses the oldest of them. */
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
  /** Replaces the value. One that the schema refuses is a bug of the authority and dies. */
  readonly set: (value: A) => Effect.Effect<void>
  /**
   * Change a draft in place; the draft is dead after the callback. What did not change keeps its identity. A callback
   * that throws changes nothing. For a value that is no object or array, use `set`.
   */
  readonly update: (change: (draft: Draft<A>) => void) => Effect.Effect<void>
  /**
   * Apply operations that were made elsewhere, as one delivery with one sequence number, also when there are none.
   * Only for a state whose decoded form is its JSON form.
   */
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
  /** Number of the delivery that the value is of; the authority counts. */
  readonly sequence: number
  readonly status: ReplicaStatus
  /** The current status first. */
  readonly statuses: Stream.Stream<ReplicaStatus>
  /** The current value first, as soon as there is one, then every later one, also across reconnects. */
  readonly changes: Stream.Stream<A>
  /** As of {@link RemoteState}; a value that a snapshot brought runs under the hydration's span. */
  readonly forEach: <E, R>(effect: (value: A) => Effect.Effect<void, E, R>) => Effect.Effect<never, E, R>
}

/** One write, as the wire needs it. */
export interface StateDelivery<A> extends Delivery<A> {
  readonly sequence: number
  /** What led here, on the JSON form; null when only the whole value says it. */
  readonly operations: ReadonlyArray<Operation> | null
}

/** The authority's cell. Its feed is for the endpoint, which needs sequence and operations. */
export class StateCell<A> implements MutableRemoteState<A> {
  readonly feed = new Feed<StateDelivery<A>>()
  readonly codec: JsonCodec
  readonly changes: Stream.Stream<A>
  readonly forEach: RemoteState<A>["forEach"]
  readonly get: Effect.Effect<A>
  private current: A
  private encoded: JsonValue
  private count: number

  constructor(schema: Schema.ConstraintCodec<A, unknown>, initial: A, sequence: number) {
    this.codec = jsonCodec(schema)
    this.encoded = this.encode(initial)
    this.current = this.detach(initial)
    this.count = sequence
    this.get = Effect.sync(() => this.current)
    const subscribe = subscription<Delivery<A>>(this.feed, () => [{ value: this.current, cause: null }])
    this.changes = streamOf(subscribe)
    this.forEach = forEachOf("state.delivery", subscribe)
  }

  get value(): A {
    return this.current
  }

  get sequence(): number {
    return this.count
  }

  /** The value in its JSON form, which is kept. */
  get json(): JsonValue {
    return this.encoded
  }

  set(value: A): Effect.Effect<void> {
    return this.write(() => {
      const encoded = this.encode(value)
      if (jsonEqual(encoded, this.encoded)) return null
      this.encoded = encoded
      this.current = this.detach(value)
      return this.codec.plain ? [["replace", encoded]] : []
    })
  }

  update(change: (draft: Draft<A>) => void): Effect.Effect<void> {
    return this.write(() => {
      const before: unknown = this.current
      if (typeof before !== "object" || before === null) {
        throw new Error("A state that is no object has no draft, use `set`.")
      }
      if (!this.codec.plain) {
        const copy = cloneContainers(this.current)
        change(copy as Draft<A>)
        const encoded = this.encode(copy)
        if (jsonEqual(encoded, this.encoded)) return null
        this.encoded = encoded
        this.current = copy
        return []
      }
      const tracked = track(before)
      try {
        // The draft of the JSON form is the draft of the value, because the codec is plain.
        change(tracked.draft as Draft<A>)
        const { operations, value } = tracked.flush()
        if (operations.length === 0) return null
        this.adopt(value as A)
        return operations
      } finally {
        tracked.revoke()
      }
    })
  }

  publish(operations: ReadonlyArray<Operation>): Effect.Effect<void> {
    return this.write(() => {
      if (!this.codec.plain) {
        throw new Error("Operations apply to the JSON form, and this state's values have another one.")
      }
      this.adopt(apply(this.current, operations))
      return operations
    })
  }

  /** One synchronous step, so that concurrent writers cannot interleave: change, count, deliver. */
  private write(change: () => ReadonlyArray<Operation> | null): Effect.Effect<void> {
    return Effect.flatMap(currentCarrier, (cause) =>
      Effect.sync(() => {
        const operations = change()
        if (operations === null) return
        this.count++
        this.feed.publish({
          value: this.current,
          sequence: this.count,
          operations: this.codec.plain ? operations : null,
          cause
        })
      }))
  }

  private adopt(value: A): void {
    this.current = value
    // Decoded and encoded form are the same for a plain codec.
    this.encoded = value as JsonValue
  }

  private detach(value: A): A {
    // For a plain codec the encoded form, which nobody else holds, is the value.
    return this.codec.plain ? this.encoded as A : value
  }

  private encode(value: A): JsonValue {
    const exit = this.codec.encode(value)
    if (Exit.isFailure(exit)) {
      throw new Error(`A replicated state was given a value that its schema refuses: ${explain(exit)}.`)
    }
    return this.codec.plain ? copyJson(exit.value) : exit.value
  }
}

/** Arrays and plain objects copied, everything else as it is. */
const cloneContainers = <A>(value: A): A => {
  const copy = (part: unknown): unknown => {
    if (Array.isArray(part)) return part.map(copy)
    if (typeof part !== "object" || part === null || Object.getPrototypeOf(part) !== Object.prototype) return part
    return Object.fromEntries(Object.entries(part).map(([key, inner]) => [key, copy(inner)]))
  }
  return copy(value) as A
}

/** Whether this is a state whose deliveries the endpoint can follow. */
export const isStateCell = (value: unknown): value is StateCell<unknown> => value instanceof StateCell

export const MutableRemoteState = {
  /**
   * A state whose authority is this process. `sequence` is the number of the initial value, for one that mirrors
   * something already numbered; 0 if left out.
   */
  make: <A>(
    schema: Schema.ConstraintCodec<A, unknown>,
    initial: NoInfer<A>,
    options?: { readonly sequence?: number }
  ): Effect.Effect<MutableRemoteState<A>> => Effect.sync(() => MutableRemoteState.makeUnsafe(schema, initial, options)),

  makeUnsafe: <A>(
    schema: Schema.ConstraintCodec<A, unknown>,
    initial: NoInfer<A>,
    options?: { readonly sequence?: number }
  ): MutableRemoteState<A> => new StateCell(schema, initial, options?.sequence ?? 0)
}

/** The JSON form of the value under the token's own schema, which is made again only if that is another one. */
export const wireValue = (member: AnyCodec, cell: StateCell<unknown>): Exit.Exit<JsonValue, unknown> => {
  const codec = jsonCodec(member)
  return codec === cell.codec ? Exit.succeed(cell.json) : codec.encode(cell.value)
}

/** The JSON form of a delivery under the token's own schema; `null` when the value is not what the token says. */
export const wireOperations = (
  member: AnyCodec,
  cell: StateCell<unknown>,
  delivery: StateDelivery<unknown>
): ReadonlyArray<Operation> | null => {
  if (delivery.operations !== null && cell.codec.plain && jsonCodec(member).plain) return delivery.operations
  const exit = jsonCodec(member).encode(delivery.value)
  return Exit.isSuccess(exit) ? [["replace", exit.value]] : null
}
