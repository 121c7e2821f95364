/**
 * What waits for one consumer of a watch. Pushing never waits, so a slow consumer never slows the authority; when more
 * waits than the limits, all of it is dropped and the consumer starts again from what `restart` gives; without `restart` the
 * oldest is dropped. What waits leaves as one batch. A hot path, so plain TypeScript behind a Stream.
 */
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Stream from "effect/Stream"
import { EncodedItem } from "./waiting.ts"
import type { Waiting } from "./waiting.ts"
import type { WireError } from "./wire.ts"

export interface OutboxLimits {
  /** Items that may wait. */
  readonly items: number
  /** Characters of JSON that may wait. */
  readonly characters: number
}

export const unlimited: OutboxLimits = { items: Number.POSITIVE_INFINITY, characters: Number.POSITIVE_INFINITY }

/** Items of one batch, so that a batch never holds up what comes behind it at the far side. */
const batchItems = 1_024

export class Outbox {
  private items: Array<Waiting> = []
  private characters = 0
  private overflowed = false
  private failure: WireError | null = null
  private readonly filled = Latch.makeUnsafe(false)
  private readonly limits: OutboxLimits
  private readonly restart: (() => ReadonlyArray<Waiting>) | null

  /** `restart` is called in the same step in which the batch leaves, so nothing can come between. */
  constructor(limits: OutboxLimits, restart: (() => ReadonlyArray<Waiting>) | null) {
    this.limits = limits
    this.restart = restart
  }

  /** How many wait. */
  get size(): number {
    return this.items.length
  }

  push(item: Waiting): void {
    if (this.overflowed) return
    const last = this.items.at(-1)
    // Joining may be into the last one itself.
    const before = last?.size ?? 0
    const joined = last?.join(item) ?? null
    if (joined === null) {
      this.items.push(item)
      this.characters += item.size
    } else {
      this.items[this.items.length - 1] = joined
      this.characters += joined.size - before
    }
    const { characters, items } = this.limits
    if (this.items.length > items || this.characters > characters) {
      if (this.restart !== null) return this.reset()
      while (this.items.length > 1 && (this.items.length > items || this.characters > characters)) {
        this.characters -= this.items.shift()?.size ?? 0
      }
    }
    this.filled.openUnsafe()
  }

  /** Drops what waits and starts again. */
  reset(): void {
    this.items = []
    this.characters = 0
    this.overflowed = true
    this.filled.openUnsafe()
  }

  /** Ends it, in place of all that waits. */
  fail(error: WireError): void {
    this.failure = error
    this.filled.openUnsafe()
  }

  private take(): ReadonlyArray<Waiting> {
    if (this.overflowed && this.restart !== null) {
      this.overflowed = false
      this.filled.closeUnsafe()
      return this.restart()
    }
    const batch = this.items.length > batchItems ? this.items.splice(0, batchItems) : this.items
    if (batch === this.items) {
      this.items = []
      this.characters = 0
      this.filled.closeUnsafe()
    } else for (const item of batch) this.characters -= item.size
    return batch
  }

  readonly batch: Effect.Effect<Arr.NonEmptyReadonlyArray<EncodedItem>, WireError> = Effect.suspend(() =>
    Effect.flatMap(this.filled.await, () => {
      if (this.failure !== null) return Effect.fail(this.failure)
      const batch = this.take().map((item) => new EncodedItem(item.text))
      return Arr.isReadonlyArrayNonEmpty(batch) ? Effect.succeed(batch) : this.batch
    })
  )

  get stream(): Stream.Stream<EncodedItem, WireError> {
    return Stream.fromPull(Effect.succeed(this.batch))
  }
}
