/**
 * The relay: the frames of a client that is connected here go to its session's host and back, unread.
 *
 * Promised: whatever either side sends reaches the other one in order, and when one leaves, so does the other. Both keep the
 * limits of their own transports: a side that does not read is given up, and nothing grows without end here.
 */
import type { Transport } from "@bezel/core/rpc"
import type { ServiceError } from "@bezel/core/service"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"

const passOn = (from: Transport, to: Transport) =>
  from.run((frame) => {
    to.post(frame)
    return null
  })

/** Until either side closes. A host that cannot be had is told to the client. */
export const relay = (
  client: Transport,
  connect: Effect.Effect<Transport, ServiceError, Scope.Scope>
): Effect.Effect<void> =>
  Effect.gen(function*() {
    const host = yield* connect
    yield* Effect.raceFirst(passOn(client, host), passOn(host, client))
    yield* Effect.all([host.close, client.close], { discard: true })
  }).pipe(
    Effect.raceFirst(client.closed),
    Effect.scoped,
    Effect.catch((error) => client.dismiss(error))
  )
