/**
 * Both directions over one transport: each side is client and host to the other, so a host can call what its client
 * provides without a second connection. Requests, and what belongs to them, go to the endpoint of a side; answers go to
 * its connection.
 */
import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import type { Transport } from "./transport.ts"

/** The frames of one side's requests, by how they begin; ours always begin with their tag. */
const toHost = /^\{"_tag":"(?:Request|Ack|Interrupt|Eof|Ping|Tally)"/

export interface Duplex {
  /** For the endpoint of this side: what the far side asks for. */
  readonly host: Transport
  /** For the connection of this side: what the far side answers. */
  readonly client: Transport
}

/** Splits a transport. Closing either half closes both. */
export const duplex = (transport: Transport): Duplex => {
  const requests = Effect.runSync(Queue.unbounded<string, Cause.Done>())
  const half = (run: Transport["run"]): Transport => ({ ...transport, run })
  return {
    client: half((onFrame) =>
      transport.run((frame) => {
        if (!toHost.test(frame)) return onFrame(frame)
        Queue.offerUnsafe(requests, frame)
        return null
      }).pipe(Effect.ensuring(Effect.sync(() => Queue.endUnsafe(requests))))
    ),
    host: half((onFrame) =>
      Effect.forever(Effect.flatMap(Queue.take(requests), (frame) => onFrame(frame) ?? Effect.void), {
        disableYield: true
      }).pipe(
        Effect.catch(() => Effect.void)
      )
    )
  }
}

/** For the connection of a side that did not open the transport: it is there once and is not made again. */
export const once = (transport: Transport): Effect.Effect<Transport> => {
  let taken = false
  return Effect.suspend(() => {
    if (taken) return Effect.never
    taken = true
    return Effect.succeed(transport)
  })
}
