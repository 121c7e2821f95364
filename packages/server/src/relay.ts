/**
 * The relay: the frames of a client that is connected here go to its session's host and back, unread.
 *
 * Promised: whatever either side sends reaches the other one in order, and when one leaves, so does the other. Both keep the
 * limits of their own transports: a side that does not read is given up, and nothing grows without end here.
 */
import type { Transport } from "@bezel/core/rpc"
import { ServiceError } from "@bezel/core/service"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"

const passOn = (from: Transport, to: Transport) =>
  from.run((frame) => {
    to.post(frame)
    return null
  })

const gone = new ServiceError({ code: "disconnected", message: "The client has left." })

/** Until either side closes. A host that cannot be had is told to the client. */
export const relay = (
  client: Transport,
  connect: Effect.Effect<Transport, ServiceError, Scope.Scope>
): Effect.Effect<void> =>
  Effect.gen(function*() {
    // Nobody waits for a host on behalf of a client that has left meanwhile.
    const host = yield* Effect.raceFirst(connect, Effect.andThen(client.closed, Effect.fail(gone)))
    yield* Effect.raceFirst(passOn(client, host), passOn(host, client))
    yield* host.close
  }).pipe(
    Effect.scoped,
    Effect.catch((error) => client.dismiss(error)),
    Effect.ensuring(client.close)
  )
