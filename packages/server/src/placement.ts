/**
 * Placement: where a location's session host runs, and how to reach it.
 *
 * Whoever asks gets a connection and does not see the difference. `inline` is a host in this process, reached over loopback:
 * the boundary is the same, only the socket is missing. A host stays up while it is held or has work.
 */
import { type LocationError, LocationMap, PluginKernel, SessionHost } from "@bezel/core/host"
import type { PluginStatus } from "@bezel/core/kernel"
import type { LocationRef } from "@bezel/core/location"
import { Connection, type ConnectionShape, Endpoint, loopback } from "@bezel/core/rpc"
import { ServiceError } from "@bezel/core/service"
import type { SessionApi } from "@bezel/core/session"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"

export interface ConnectOptions {
  /** What this client is, for people: `terminal`. */
  readonly label: string
  /** Attaches to this session before the connection is handed out. */
  readonly sessionID?: string
  /** How long to wait for the host; default 10 seconds. */
  readonly timeLimit?: Duration.Input
}

/** The session host of one location, for as long as it is held. */
export interface PlacedHost {
  readonly location: LocationRef
  /** The session API of the location. */
  readonly session: SessionApi
  readonly plugins: Effect.Effect<ReadonlyArray<PluginStatus>>
  /** A client of its own, connected; it lives as long as the scope. */
  readonly connect: (options: ConnectOptions) => Effect.Effect<ConnectionShape, ServiceError, Scope.Scope>
}

export interface PlacementShape {
  /** The session host of a directory, started if need be. */
  readonly place: (
    directory: string,
    workspaceID?: string | null
  ) => Effect.Effect<PlacedHost, LocationError, Scope.Scope>
}

const connect = (endpoint: Context.Service.Shape<typeof Endpoint>) => (options: ConnectOptions) =>
  Effect.gen(function*() {
    const connection = yield* Connection.make({ connect: loopback(endpoint), label: options.label })
    yield* connection.state.changes.pipe(
      Stream.filter(({ status }) => status === "connected"),
      Stream.runHead,
      Effect.timeoutOrElse({
        duration: options.timeLimit ?? "10 seconds",
        orElse: () =>
          Effect.fail(new ServiceError({ code: "timeout", message: "The session host did not answer in time." }))
      })
    )
    if (options.sessionID !== undefined) yield* connection.select(options.sessionID)
    return connection
  })

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
          connect: connect(Context.get(services, Endpoint))
        }
      })
  })
})

/** Finds or starts session hosts. Global. */
export class Placement extends Context.Service<Placement, PlacementShape>()("@bezel/server/Placement") {
  /** Session hosts in this process. */
  static readonly inline: Layer.Layer<Placement, never, LocationMap> = Layer.effect(Placement, makeInline)
}
