/**
 * The locations of this process: each is booted on the first demand and kept while it is needed.
 *
 *     demand ──▶ booting ──▶ up ──last holder gone, no work running──▶ idle ──idle time──▶ closed
 *                   │ fails: told to everybody who waits; the next demand boots again
 *
 * Concurrent demand boots a location once. It is booted for itself, not for whoever asks first: nothing of that caller's
 * fiber (identity, span) lives on in it. One directory has one location, whatever path or link leads there. Global: a location
 * layer is built fresh for each place over the global services, which it can use; the other way round does not compile.
 */
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import type { HostFailed } from "../kernel/index.ts"
import type { LocationRef, LocationUnavailable } from "../location/index.ts"
import { type Location, makeKeyed, resolveLocation } from "../location/index.ts"
import type { ProviderRegistry } from "../model/index.ts"
import type { Endpoint } from "../rpc/index.ts"
import type { InteractionBroker, ServiceDirectory } from "../service/index.ts"
import type { SessionStore } from "../session/index.ts"
import { SessionRuntime } from "../session/index.ts"
import type { Settings, SettingsError } from "../settings/index.ts"
import type { SessionStorage } from "../storage/index.ts"
import type { ToolRegistry } from "../tool/index.ts"
import type { PluginKernel, SessionHost, SessionPlugins } from "./session-host.ts"
import { locationLayer } from "./session-host.ts"

/** What lives once per process and what every location is built over. */
export type GlobalServices = SessionPlugins | SessionStorage | SessionStore | Settings

/** What lives once per location. */
export type LocationServices =
  | Endpoint
  | InteractionBroker
  | Location
  | PluginKernel
  | ProviderRegistry
  | ServiceDirectory
  | SessionHost
  | SessionRuntime
  | ToolRegistry

/** A layer of the global tier. One that needs anything of a location is not of this type. */
export type GlobalLayer<A, E = never> = Layer.Layer<A, E, GlobalServices>

/** Why a location is not there. */
export type LocationError = HostFailed | LocationUnavailable | SettingsError

export interface LocationMapShape {
  /** The services of a directory's location, booted if need be, for the life of the scope. */
  readonly get: (
    directory: string,
    workspaceID?: string | null
  ) => Effect.Effect<Context.Context<LocationServices>, LocationError, Scope.Scope>
}

export interface LocationMapOptions {
  /** How long a location stays up after its last holder and its last work; default 30 seconds. */
  readonly idleTime?: Duration.Input
}

const make = (options: LocationMapOptions) =>
  Effect.gen(function*() {
    const scope = yield* Effect.scope
    const locations = yield* makeKeyed({
      make: (location: LocationRef) =>
        Effect.gen(function*() {
          // A memo map of its own: a layer that does not depend on the place is still built once for each place.
          const memo = yield* Layer.makeMemoMap
          return yield* Layer.buildWithMemoMap(locationLayer(location), memo, yield* Effect.scope)
        }),
      idleTime: options.idleTime ?? "30 seconds"
    })

    /** Takes over from a holder that leaves, for as long as work runs. */
    const outlive = (location: LocationRef) =>
      Effect.flatMap(locations.get(location), (context) => Context.get(context, SessionRuntime).atRest).pipe(
        Effect.scoped,
        Effect.ignore,
        Effect.forkIn(scope, { startImmediately: true })
      )

    return LocationMap.of({
      get: (directory, workspaceID = null) =>
        Effect.gen(function*() {
          const location = yield* resolveLocation(directory, workspaceID)
          const context = yield* locations.get(location)
          yield* Effect.addFinalizer(() => outlive(location))
          return context
        }).pipe(Effect.withSpan("LocationMap.get", { attributes: { directory } }))
    })
  })

/** Gives the location of a directory. Only entry points ask it: a route, a command, a connection. */
export class LocationMap extends Context.Service<LocationMap, LocationMapShape>()("@bezel/core/host/LocationMap") {
  static readonly layerWith = (options: LocationMapOptions): GlobalLayer<LocationMap> =>
    Layer.effect(LocationMap, make(options))
  static readonly layer = LocationMap.layerWith({})
}
