/**
 * The locations of this process under a coordinator in the same process, reached over loopback.
 *
 * The coordinator has no HTTP and boots when the first location asks for it, beside whatever else happens, so that nobody
 * waits for it. Its hosts are the locations of this process; they start on demand and end by themselves when they are idle.
 */
import {
  Coordinator,
  type CoordinatorContext,
  type FleetProcesses,
  fleetRecords,
  type GlobalLayer,
  type HostIdentity,
  type HostStatus,
  LocationMap,
  type LocationMapShape,
  Upstream,
  type UpstreamShape
} from "@bezel/core/host"
import type { PluginSource } from "@bezel/core/kernel"
import type { LocationRef } from "@bezel/core/location"
import { Connection, Endpoint, loopback, makeMemoryPair } from "@bezel/core/rpc"
import { ServiceError } from "@bezel/core/service"
import { SessionStore, type SessionStoreShape } from "@bezel/core/session"
import { Settings, type SettingsReader } from "@bezel/core/settings"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as PubSub from "effect/PubSub"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { connectTo } from "./connect.ts"
import { HostProcesses, sharingClients } from "./host-processes.ts"

export type CoordinatorPlugins = (
  user: SettingsReader
) => Effect.Effect<ReadonlyArray<PluginSource<CoordinatorContext>>, { readonly message: string }>

export interface InlineOptions {
  /** The coordinator facets, in manifest order, by the user's settings. Asked when the coordinator boots. */
  readonly plugins: CoordinatorPlugins
  /** The coordinator is up before anything else is, and nothing is without it; default: it boots on demand. */
  readonly coordinatorFirst?: boolean
}

const nameOf = ({ directory, workspaceID }: LocationRef): string =>
  workspaceID === null ? directory : `${directory} (${workspaceID})`

const unavailable = (error: { readonly message: string }) =>
  new ServiceError({ code: "unavailable", message: error.message })

/** Locations as hosts of a fleet: those that are connected are running. */
const makeProcesses = (store: SessionStoreShape, locations: Effect.Effect<LocationMapShape>) =>
  Effect.gen(function*() {
    const running = new Map<string, HostStatus>()
    const changes = yield* PubSub.unbounded<HostStatus>()
    const statusOf = (location: LocationRef, state: HostStatus["state"]): HostStatus => ({
      id: nameOf(location),
      location,
      sessionID: null,
      state,
      pid: null,
      error: null
    })
    const servicesOf = (sessionID: string) =>
      Effect.gen(function*() {
        const { location } = yield* store.get(sessionID)
        const map = yield* locations
        return { location, services: yield* map.get(location.directory, location.workspaceID) }
      }).pipe(Effect.mapError(unavailable))

    const processes: FleetProcesses = {
      start: (sessionID) =>
        Effect.scoped(Effect.map(servicesOf(sessionID), ({ location }) => statusOf(location, "running"))),
      attach: (sessionID, label, options) =>
        Effect.flatMap(servicesOf(sessionID), ({ services }) =>
          connectTo(loopback(Context.get(services, Endpoint)), { label, sessionID, ...options })),
      stop: () =>
        Effect.void,
      status: Effect.sync(() => [...running.values()]),
      changes: Stream.fromPubSub(changes)
    }
    /** For as long as the scope. */
    const isRunning = (location: LocationRef) =>
      Effect.acquireRelease(
        Effect.sync(() => {
          const status = statusOf(location, "running")
          running.set(status.id, status)
          PubSub.publishUnsafe(changes, status)
        }),
        () =>
          Effect.sync(() => {
            const status = statusOf(location, "stopped")
            running.delete(status.id)
            PubSub.publishUnsafe(changes, status)
          })
      )
    return { processes, isRunning }
  })

const make = ({ coordinatorFirst = false, plugins }: InlineOptions) =>
  Effect.gen(function*() {
    const store = yield* SessionStore
    const settings = yield* Settings
    const map = yield* Deferred.make<LocationMapShape>()
    const { isRunning, processes } = yield* makeProcesses(store, Deferred.await(map))
    // Made here, so that the coordinator outlives the locations that are made after it.
    const scope = yield* Scope.fork(yield* Effect.scope)
    const boot = Effect.gen(function*() {
      const user = yield* settings.user
      return yield* Coordinator.make({
        plugins: yield* plugins(user),
        settings: user,
        fleet: { records: fleetRecords(store), processes }
      })
    }).pipe(
      Effect.mapError(unavailable),
      Effect.tapError((error) => Effect.logWarning(`There is no coordinator: ${error.message}`)),
      Scope.provide(scope)
    )
    // In a fiber of its own: whoever asks first may go away meanwhile.
    const coordinator = Effect.flatMap(yield* Effect.cached(Effect.forkIn(boot, scope)), Fiber.join)
    if (coordinatorFirst) yield* coordinator
    const shared = yield* sharingClients(processes)
    const upstream: UpstreamShape = {
      connect: (location, manifest) => {
        const identity: HostIdentity = { host: nameOf(location), location, leases: "all" }
        return Connection.make({
          label: `the session host of ${identity.host}`,
          peer: "the coordinator",
          manifest,
          connect: Effect.gen(function*() {
            const { serve } = yield* coordinator
            const [client, server] = makeMemoryPair()
            yield* isRunning(location)
            yield* Effect.forkScoped(serve(server, identity))
            yield* Effect.addFinalizer(() => client.close)
            return client
          })
        })
      }
    }
    return LocationMap.layer.pipe(
      Layer.tap((context) => Deferred.succeed(map, Context.get(context, LocationMap))),
      Layer.provide(Layer.succeed(Upstream, upstream)),
      Layer.merge(Layer.succeed(HostProcesses, HostProcesses.of(shared)))
    )
  })

/**
 * In place of `LocationMap.layer`: the same locations, each of them a client of one coordinator, and all of them as the hosts
 * of a fleet.
 */
export const inlineLocations = (options: InlineOptions): GlobalLayer<LocationMap | HostProcesses, ServiceError> =>
  Layer.unwrap(make(options))
