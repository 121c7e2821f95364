/**
 * What waits for one consumer of a watch. Pushing never waits, so a slow consumer never slows the authority; when more
 * waits than the limit, all of it is dropped and the consumer starts again from what `restart` gives; without `restart` the
 * oldest is dropped. Everything that waits leaves as one batch. A hot path, so plain TypeScript behind a Stream.
 */
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Stream from "effect/Stream"

export class Outbox<A> {
  private items: Array<A> = []
  private overflowed = false
  private readonly filled = Latch.makeUnsafe(false)
  private readonly limit: number
  private readonly restart: (() => ReadonlyArray<A>) | null

  /** `restart` is called in the same step in which the batch leaves, so nothing can come between. */
  constructor(limit: number, restart: (() => ReadonlyArray<A>) | null) {
    this.limit = limit
    this.restart = restart
  }

  push(item: A): void {
    if (this.overflowed) return
    if (this.items.length >= this.limit) {
      if (this.restart !== null) return this.reset()
      this.items.shift()
    }
    this.items.push(item)
    this.filled.openUnsafe()
  }

  /** Drops what waits and starts again. */
  reset(): void {
    this.items = []
    this.overflowed = true
    this.filled.openUnsafe()
  }

  private take(): ReadonlyArray<A> {
    const batch = this.overflowed && this.restart !== null ? this.restart() : this.items
    this.items = []
    this.overflowed = false
    this.filled.closeUnsafe()
    return batch
  }

  readonly batch: Effect.Effect<Arr.NonEmptyReadonlyArray<A>> = Effect.suspend(() =>
    Effect.flatMap(this.filled.await, () => {
      const batch = this.take()
      return Arr.isReadonlyArrayNonEmpty(batch) ? Effect.succeed(batch) : this.batch
    })
  )

  get stream(): Stream.Stream<A> {
    return Stream.fromPull(Effect.succeed(this.batch))
  }
}
