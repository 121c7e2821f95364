/**
 * One consumer's own place in a durable event source, over one connection after another.
 *
 * A consumer that falls behind is waited for: its subscription ends and begins again from where it is, so nothing is lost
 * and nothing piles up here; what it misses meanwhile is the host's to keep, or to call a gap.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Latch from "effect/Latch"
import * as Stream from "effect/Stream"
import { ServiceError } from "../service/index.ts"
import type { DurableEvent, JsonCodec } from "../service/index.ts"
import type { Item } from "./wire.ts"

/** Events that may wait for the consumer. */
const capacity = 1_024

/** Ends a subscription whose consumer is behind. */
export const enough = new ServiceError({ code: "overloaded", message: "The consumer of these events is behind." })

export const eventsAfter = (
  after: string | null,
  codec: JsonCodec,
  watch: (place: () => string | null, take: (item: Item) => ServiceError | null) => Effect.Effect<void>
): Stream.Stream<DurableEvent<unknown>> =>
  Stream.unwrap(Effect.gen(function*() {
    let place = after
    let waiting: Array<DurableEvent<unknown>> = []
    const filled = Latch.makeUnsafe(false)
    const room = Latch.makeUnsafe(true)
    const push = (event: DurableEvent<unknown>): ServiceError | null => {
      place = event.id
      waiting.push(event)
      filled.openUnsafe()
      if (waiting.length < capacity) return null
      room.closeUnsafe()
      return enough
    }
    const take = (item: Item): ServiceError | null => {
      if (item.type === "from") place = item.id
      if (item.type === "gap") return push({ type: "gap", id: item.id })
      if (item.type !== "event" || item.id === undefined) return null
      const decoded = codec.decode(item.value)
      // One that this side's contract cannot read is missing here.
      return push(
        Exit.isSuccess(decoded) ? { type: "event", id: item.id, value: decoded.value } : { type: "gap", id: item.id }
      )
    }
    yield* Effect.forkScoped(Effect.forever(Effect.andThen(room.await, watch(() => place, take))))
    return Stream.flattenIterable(Stream.fromEffectRepeat(Effect.map(filled.await, () => {
      const taken = waiting
      waiting = []
      filled.closeUnsafe()
      room.openUnsafe()
      return taken
    })))
  }))
