/**
 * Who calls: installed by the transport after authentication, for the length of one call. Nothing in a payload can set it.
 */
import * as Context from "effect/Context"

export interface ClientIdentity {
  /** Unique per connection and never reused; what interactions and logs name a client by. */
  readonly id: string
  /** What the client says it is, for people: `"terminal"`, `"editor"`. Grants nothing. */
  readonly label: string
  /** The user that authentication found, or null on a transport that has none, like loopback. */
  readonly user: string | null
}

/**
 * The client whose call this fiber serves, or null in the host's own fibers. A service reads it with
 * `const client = yield* ClientIdentity`.
 */
export const ClientIdentity = Context.Reference<ClientIdentity | null>("bezel/service/ClientIdentity", {
  defaultValue: () => null
})
