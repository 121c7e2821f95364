/**
 * The client's copy of one replicated state. Applying a delivery is synchronous and keeps the identity of what did not
 * change. It never waits for a reader: each reader has a bounded queue of its own.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Scope from "effect/Scope"
import type * as Stream from "effect/Stream"
import { apply } from "../json/index.ts"
import type { JsonValue, Operation } from "../json/index.ts"
import { Feed, forEachOf, jsonCodec, streamOf, subscription } from "../service/index.ts"
import type { AnyCodec, Delivery, JsonCodec, Replica, ReplicaStatus, SpanCarrier } from "../service/index.ts"

/** One or more deliveries of the authority in one. */
export interface Delta {
  readonly sequence: number
  readonly count?: number
  readonly operations: ReadonlyArray<Operation>
  readonly cause?: SpanCarrier
}

export class ReplicaCell implements Replica<unknown> {
  readonly changes: Stream.Stream<unknown>
  readonly statuses: Stream.Stream<ReplicaStatus>
  readonly forEach: Replica<unknown>["forEach"]
  private readonly codec: JsonCodec
  private readonly refuseEarly: () => void
  private readonly values = new Feed<Delivery<unknown>>()
  private readonly statusFeed = new Feed<Delivery<ReplicaStatus>>()
  private json: JsonValue = null
  private current: unknown = undefined
  private known = false
  private count = 0
  private now: ReplicaStatus = "detached"

  /**
   * `demand` keeps the subscription behind this replica open for the length of a scope; `refuseEarly` throws where its value
   * may not be read yet.
   */
  constructor(schema: AnyCodec, demand: Effect.Effect<void, never, Scope.Scope>, refuseEarly: () => void) {
    this.refuseEarly = refuseEarly
    this.codec = jsonCodec(schema)
    const values = Effect.andThen(
      demand,
      subscription(this.values, () => this.known ? [{ value: this.current, cause: null }] : [])
    )
    this.changes = streamOf(values)
    this.forEach = forEachOf("state.delivery", values)
    this.statuses = streamOf(
      Effect.andThen(demand, subscription(this.statusFeed, () => [{ value: this.now, cause: null }]))
    )
  }

  get value(): unknown {
    this.refuseEarly()
    return this.current
  }

  get sequence(): number {
    return this.count
  }

  get status(): ReplicaStatus {
    return this.now
  }

  become(status: ReplicaStatus): void {
    if (this.now === status) return
    this.now = status
    this.statusFeed.publish({ value: status, cause: null })
  }

  /** The value is another session's, or nobody's: forget it. */
  clear(status: ReplicaStatus): void {
    this.known = false
    this.current = undefined
    this.json = null
    this.become(status)
  }

  /** What a whole value decodes to, so that the states of a service can be taken or refused as one. */
  decode(json: JsonValue): Exit.Exit<unknown, unknown> {
    const decoded = this.codec.decode(json)
    return Exit.isSuccess(decoded) && this.codec.plain ? Exit.succeed(json) : decoded
  }

  /** Takes a whole value without telling anybody yet. */
  install(sequence: number, json: JsonValue, decoded: unknown): void {
    this.json = json
    this.current = decoded
    this.known = true
    this.count = sequence
  }

  announce(cause: SpanCarrier | null): void {
    this.become("live")
    this.values.publish({ value: this.current, cause })
  }

  /** The next delivery. False for a gap, or for one that does not apply: hydrate again. */
  advance(delta: Delta): boolean {
    const { cause = null, count = 1, operations, sequence } = delta
    if (sequence !== this.count + count) return false
    let json: JsonValue
    try {
      json = apply(this.json, operations)
    } catch {
      return false
    }
    // What operations leave is the authority's business to keep valid: checking a whole document per delivery would make
    // a token of text cost as much as the transcript.
    const unchecked = this.codec.plain && operations.every((operation) => operation[0] !== "replace")
    const decoded = unchecked ? Exit.succeed(json) : this.decode(json)
    if (Exit.isFailure(decoded)) return false
    this.install(sequence, json, decoded.value)
    this.values.publish({ value: this.current, cause })
    return true
  }

  get isKnown(): boolean {
    return this.known
  }
}
