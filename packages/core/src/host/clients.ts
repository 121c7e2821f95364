/** Who is connected to a host, as its facets see it. */
import * as Effect from "effect/Effect"
import * as PubSub from "effect/PubSub"
import * as Stream from "effect/Stream"

export interface ClientChange<Client> {
  readonly type: "connected" | "disconnected"
  readonly client: Client
}

export interface Clients<Client> {
  readonly list: Effect.Effect<ReadonlyArray<Client>>
  /** Every change from the moment of subscribing. */
  readonly changes: Stream.Stream<ClientChange<Client>>
}

/** The list, and who keeps it: a connection is `connected` until it is told to be gone, under a key of its own. */
export interface ClientRoster<Client> {
  readonly clients: Clients<Client>
  readonly connected: (key: unknown, client: Client) => void
  readonly disconnected: (key: unknown) => void
}

export const makeClientRoster = <Client>(): Effect.Effect<ClientRoster<Client>> =>
  Effect.map(
    PubSub.unbounded<ClientChange<Client>>(),
    (changes): ClientRoster<Client> => {
      const here = new Map<unknown, Client>()
      return {
        clients: { list: Effect.sync(() => [...here.values()]), changes: Stream.fromPubSub(changes) },
        connected: (key, client) => {
          here.set(key, client)
          PubSub.publishUnsafe<ClientChange<Client>>(changes, { type: "connected", client })
        },
        disconnected: (key) => {
          const client = here.get(key)
          if (client === undefined) return
          here.delete(key)
          PubSub.publishUnsafe<ClientChange<Client>>(changes, { type: "disconnected", client })
        }
      }
    }
  )
