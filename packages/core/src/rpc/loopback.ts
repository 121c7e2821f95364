/**
 * A connection to a host in the same process. The boundary stays: the same text frames, the same encoding and decoding,
 * fresh fibers on the far side.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { EndpointShape } from "./endpoint.ts"
import { makeMemoryPair } from "./framed.ts"
import type { Transport } from "./transport.ts"

/** For `ConnectionOptions.connect`. The host's side is served until the scope or the connection ends. */
export const loopback = (endpoint: EndpointShape): Effect.Effect<Transport, never, Scope.Scope> =>
  Effect.gen(function*() {
    const [client, server] = makeMemoryPair()
    yield* Effect.forkScoped(endpoint.serve(server))
    yield* Effect.addFinalizer(() => client.close)
    return client
  })
