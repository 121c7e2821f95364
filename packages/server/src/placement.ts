/**
 * Placement: where a location's session host runs, and how to reach it.
 *
 * Whoever asks gets a connection and does not see the difference. `inline` is a host in this process, reached over loopback:
 * the boundary is the same, only the socket is missing. A host stays up while it is held or has work.
 */
import { type LocationError, LocationMap, PluginKernel, SessionHost } from "@bezel/core/host"
import type { PluginStatus } from "@bezel/core/kernel"
import type { LocationRef } from "@bezel/core/location"
import { type ConnectionShape, Endpoint, loopback, type Transport } from "@bezel/core/rpc"
import type { ServiceError } from "@bezel/core/service"
import type { SessionApi } from "@bezel/core/session"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { type ConnectOptions, connectTo } from "./connect.ts"

/** A client from outside that the server has authenticated. */
export interface RelayedClient {
  /** The session whose host serves it. */
  readonly sessionID: string
  /** Who it is; services of the host find it in the client's identity. */
  readonly user: string
}

/** The session host of one location, for as long as it is held. */
export interface PlacedHost {
  readonly location: LocationRef
  /** The session API of the location. */
  readonly session: SessionApi
  readonly plugins: Effect.Effect<ReadonlyArray<PluginStatus>>
  /** A client of its own, connected; it lives as long as the scope. */
  readonly connect: (options: ConnectOptions) => Effect.Effect<ConnectionShape, ServiceError, Scope.Scope>
  /** Serves a client that is connected to this process, until either side closes. What keeps it from that, the client is told. */
  readonly serve: (transport: Transport, client: RelayedClient) => Effect.Effect<void>
}

export interface PlacementShape {
  /** The session host of a directory, started if need be. */
  readonly place: (
    directory: string,
    workspaceID?: string | null
  ) => Effect.Effect<PlacedHost, LocationError, Scope.Scope>
}

const makeInline = Effect.gen(function*() {
  const locations = yield* LocationMap
  return Placement.of({
    place: (directory, workspaceID) =>
      Effect.map(locations.get(directory, workspaceID), (services): PlacedHost => {
        const { location, session } = Context.get(services, SessionHost)
        return {
          location,
          session,
          plugins: Context.get(services, PluginKernel).plugins,
          connect: (options) => connectTo(loopback(Context.get(services, Endpoint)), options),
          serve: (transport, { user }) => Context.get(services, Endpoint).serve(transport, { user })
        }
      })
  })
})

/** A kind of placement whose name is reserved. */
export class NotBuilt extends Schema.TaggedError<NotBuilt>()("NotBuilt", { message: Schema.String }) {}

/** Finds or starts session hosts. Global. Those in processes of their own are `processPlacement` of `@bezel/server/process`. */
export class Placement extends Context.Service<Placement, PlacementShape>()("@bezel/server/Placement") {
  /** Session hosts in this process. */
  static readonly inline: Layer.Layer<Placement, never, LocationMap> = Layer.effect(Placement, makeInline)

  /** Session hosts on many machines. */
  static readonly cluster: Layer.Layer<Placement, NotBuilt> = Layer.effect(
    Placement,
    Effect.fail(new NotBuilt({ message: "Placing session hosts on many machines is not built yet." }))
  )
}
