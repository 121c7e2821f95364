/**
 * Durable event sources: each event has an id, and a consumer that names the last one it saw gets exactly what came after,
 * or is told of one gap. The newest events are kept in memory, as many as the source says; a source that continues one of
 * an earlier process names its epoch and gives what it still has.
 *
 * Not promised: storage. Ids are opaque to consumers; those of another epoch, and those that are too old, mean a gap.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Latch from "effect/Latch"
import type * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { currentCarrier } from "./cause.ts"
import type { SpanCarrier } from "./cause.ts"
import { explain, jsonCodec } from "./codec.ts"
import { eventsOver, registerFeed } from "./events.ts"
import type { EventDelivery, MutableRemoteEvents, RemoteEvents } from "./events.ts"
import { Feed, subscription } from "./feed.ts"
import type { Delivery } from "./feed.ts"

export type DurableEvent<A> =
  | { readonly type: "event"; readonly id: string; readonly value: A }
  /** Some are missing: read the state, and go on from `id`. */
  | { readonly type: "gap"; readonly id: string }

export interface DurableEvents<A> extends RemoteEvents<A> {
  /** Everything after the event of that id, also across reconnects, then what comes; null for what comes from now on. */
  readonly after: (id: string | null) => Stream.Stream<DurableEvent<A>>
}

export interface MutableDurableEvents<A> extends DurableEvents<A>, MutableRemoteEvents<A> {}

export interface DurableOptions<A> {
  /** How many events are kept for those who come back: 1,000 if left out. */
  readonly keep?: number
  /** Continues a source of before, so that its ids stay good. `sequence` is the number of the last of `events`. */
  readonly resume?: { readonly epoch: string; readonly sequence: number; readonly events: ReadonlyArray<A> }
}

interface Kept {
  readonly sequence: number
  readonly value: unknown
  readonly cause: SpanCarrier | null
}

/** Events that one reader gets at once. */
const batchItems = 256

/** What happened, in order, and from where on it is known. A hot path, so plain TypeScript. */
export class DurableLog {
  readonly feed: Feed<EventDelivery<unknown>>
  private readonly epoch: string
  private readonly keep: number
  private kept: Array<Kept> = []
  private last: number

  constructor(feed: Feed<EventDelivery<unknown>>, options: DurableOptions<unknown>) {
    this.feed = feed
    this.epoch = options.resume?.epoch ?? crypto.randomUUID()
    this.keep = options.keep ?? 1_000
    this.last = options.resume?.sequence ?? 0
    const events = options.resume?.events ?? []
    this.kept = events.map((value, index) => ({ value, sequence: this.last - events.length + 1 + index, cause: null }))
    this.trim()
  }

  append(value: unknown, cause: SpanCarrier | null): void {
    this.kept.push({ value, sequence: ++this.last, cause })
    this.trim()
    this.feed.publish({ value, sequence: this.last, cause })
  }

  /** The place after the newest event. */
  get end(): string {
    return this.id(this.last)
  }

  id(sequence: number): string {
    return `${this.epoch}.${sequence}`
  }

  /** Some of what follows a place; null when that is not known any more. */
  after(id: string): ReadonlyArray<Kept> | null {
    const at = id.lastIndexOf(".")
    const sequence = Number(id.slice(at + 1))
    if (at < 0 || id.slice(0, at) !== this.epoch || !Number.isInteger(sequence) || sequence > this.last) return null
    const first = this.last - this.kept.length + 1
    if (sequence + 1 < first) return null
    const from = sequence + 1 - first
    return this.kept.slice(from, from + batchItems)
  }

  private trim(): void {
    // Not at every event: that would move all of them each time.
    if (this.kept.length > this.keep * 2 || (this.keep < 64 && this.kept.length > this.keep)) {
      this.kept = this.kept.slice(this.kept.length - this.keep)
    }
  }
}

/** One reader's place. */
export class DurableReader {
  private readonly log: DurableLog
  private place: string

  constructor(log: DurableLog, after: string | null) {
    this.log = log
    this.place = after ?? log.end
  }

  /** The id of the last event that was taken. */
  get id(): string {
    return this.place
  }

  get isBehind(): boolean {
    return this.place !== this.log.end
  }

  /** What comes next; empty when there is nothing new. */
  take(): ReadonlyArray<DurableEvent<unknown> & { readonly cause: SpanCarrier | null }> {
    const found = this.log.after(this.place)
    if (found === null) {
      this.place = this.log.end
      return [{ type: "gap", id: this.place, cause: null }]
    }
    return found.map(({ cause, sequence, value }) => {
      this.place = this.log.id(sequence)
      return { type: "event", id: this.place, value, cause }
    })
  }
}

const logs = new WeakMap<object, DurableLog>()

/** The log behind a durable source, for the endpoint. */
export const durableLog = (events: unknown): DurableLog | undefined =>
  typeof events === "object" && events !== null ? logs.get(events) : undefined

export const MutableDurableEvents = {
  make: <A>(
    schema: Schema.ConstraintCodec<A, unknown>,
    options: DurableOptions<NoInfer<A>> = {}
  ): Effect.Effect<MutableDurableEvents<A>> =>
    Effect.sync(() => {
      const feed = new Feed<EventDelivery<A>>()
      const codec = jsonCodec(schema)
      // Erasure: what is read is encoded with the token's own codec, or was emitted as an `A`.
      const log = new DurableLog(feed as Feed<EventDelivery<unknown>>, options)
      const source: MutableDurableEvents<A> = Object.assign(eventsOver(subscription<Delivery<A>>(feed, () => [])), {
        emit: (event: A) =>
          Effect.map(currentCarrier, (cause) => {
            const exit = codec.encode(event)
            if (Exit.isFailure(exit)) {
              throw new Error(`An event source was given an event that its schema refuses: ${explain(exit)}.`)
            }
            log.append(event, cause)
          }),
        after: (id: string | null) => readingFrom<A>(log, id)
      })
      registerFeed(source, log.feed)
      logs.set(source, log)
      return source
    })
}

const readingFrom = <A>(log: DurableLog, after: string | null): Stream.Stream<DurableEvent<A>> =>
  Stream.unwrap(Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => {
        const reader = new DurableReader(log, after)
        const more = Latch.makeUnsafe(true)
        return { reader, more, unsubscribe: log.feed.subscribe(() => more.openUnsafe()) }
      }),
      ({ unsubscribe }) => Effect.sync(unsubscribe)
    ),
    ({ more, reader }) =>
      Stream.flattenIterable(Stream.fromEffectRepeat(Effect.map(more.await, () => {
        const taken = reader.take()
        if (!reader.isBehind) more.closeUnsafe()
        // Erasure: this log holds what was emitted as an `A`.
        return taken as ReadonlyArray<DurableEvent<A>>
      })))
  ))
