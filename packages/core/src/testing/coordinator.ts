/**
 * A coordinator for tests, in memory and in this process: the real kernel, services and boundary, over a store in memory and a
 * fleet that only keeps its books. Session hosts of tests can be put under it.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as PubSub from "effect/PubSub"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { CoordinatorShape, FleetProcesses, HostIdentity, HostStatus, UpstreamShape } from "../host/index.ts"
import { Coordinator, fleetRecords, Plugin } from "../host/index.ts"
import type { HostFailed, KernelOptions, ManifestEntry } from "../kernel/index.ts"
import type { LocationRef } from "../location/index.ts"
import { Connection, type ConnectionShape, makeMemoryPair, type Transport } from "../rpc/index.ts"
import { ServiceError } from "../service/index.ts"
import { SessionStore, type SessionStoreShape } from "../session/index.ts"
import type { SettingsReader } from "../settings/index.ts"
import type { SessionStorage } from "../storage/index.ts"
import { emptySettings, testSessions } from "./sessions.ts"

export interface TestCoordinatorOptions {
  /** The records of the fleet; default none. The same for the session hosts under it. */
  readonly sessions?: Context.Context<SessionStore | SessionStorage>
  readonly settings?: SettingsReader
  /** Manifest entries by plugin id. */
  readonly entries?: { readonly [id: string]: Partial<Omit<ManifestEntry, "id">> }
  readonly limits?: KernelOptions<never, never>["limits"]
  /** Reaches a session's host for `fleet.processes.attach`; without it that is `unavailable`. */
  readonly attach?: FleetProcesses["attach"]
}

export interface TestCoordinator extends Pick<CoordinatorShape, "plugins" | "reload" | "clients" | "serve"> {
  readonly store: SessionStoreShape
  readonly sessions: Context.Context<SessionStore | SessionStorage>
  /** What facets have started and stopped, as the fleet has it. */
  readonly hosts: Effect.Effect<ReadonlyArray<HostStatus>>
  /** A transport to it as this session host: what a connection is made of. */
  readonly transport: (identity: HostIdentity) => Effect.Effect<Transport, never, Scope.Scope>
  /** A client that is this session host. */
  readonly connect: (identity: HostIdentity) => Effect.Effect<ConnectionShape, never, Scope.Scope>
  /** For `TestHostOptions.coordinator`: the way of a session host to it. */
  readonly upstream: UpstreamShape
}

/** The identity of the session host of a place, with all its sessions. */
export const hostIdentity = (location: LocationRef, leases: HostIdentity["leases"] = "all"): HostIdentity => ({
  host: location.directory,
  location,
  leases
})

/** A fleet whose hosts are only names: starting one makes it running. */
const makeProcesses = (store: SessionStoreShape, attach: FleetProcesses["attach"] | undefined) =>
  Effect.gen(function*() {
    const hosts = new Map<string, HostStatus>()
    const changes = yield* PubSub.unbounded<HostStatus>()
    const become = (sessionID: string, state: HostStatus["state"]) =>
      Effect.map(store.get(sessionID), ({ location }): HostStatus => {
        const id = `${location.directory} ${sessionID}`
        const status: HostStatus = { id, location, sessionID, state, pid: null, error: null }
        hosts.set(id, status)
        PubSub.publishUnsafe(changes, status)
        return status
      }).pipe(Effect.mapError(({ message }) => new ServiceError({ code: "unavailable", message })))
    const unreachable = new ServiceError({
      code: "unavailable",
      message: "The session hosts of this test are only names."
    })
    const processes: FleetProcesses = {
      start: (sessionID) => become(sessionID, "running"),
      stop: (sessionID) => Effect.asVoid(become(sessionID, "stopped")),
      attach: attach ?? (() => Effect.fail(unreachable)),
      status: Effect.sync(() => [...hosts.values()]),
      changes: Stream.fromPubSub(changes)
    }
    return processes
  })

/** Boots a coordinator with the coordinator facets of these plugins. */
export const testCoordinator = (
  plugins: ReadonlyArray<Plugin>,
  options: TestCoordinatorOptions = {}
): Effect.Effect<TestCoordinator, HostFailed, Scope.Scope> =>
  Effect.gen(function*() {
    const sessions = options.sessions ?? (yield* testSessions)
    const store = Context.get(sessions, SessionStore)
    const processes = yield* makeProcesses(store, options.attach)
    const coordinator = yield* Coordinator.make({
      plugins: Plugin.sources("coordinator", plugins, options.entries),
      fleet: { records: fleetRecords(store), processes },
      settings: options.settings ?? emptySettings,
      ...(options.limits === undefined ? {} : { limits: options.limits })
    })
    const transport: TestCoordinator["transport"] = (identity) =>
      Effect.gen(function*() {
        const [client, server] = makeMemoryPair()
        yield* Effect.forkScoped(coordinator.serve(server, identity))
        yield* Effect.addFinalizer(() => client.close)
        return client
      })
    return {
      plugins: coordinator.plugins,
      reload: coordinator.reload,
      clients: coordinator.clients,
      serve: coordinator.serve,
      store,
      sessions,
      hosts: processes.status,
      transport,
      connect: (identity) =>
        Effect.gen(function*() {
          const connection = yield* Connection.make({ label: identity.host, connect: transport(identity) })
          yield* Stream.runHead(Stream.filter(connection.state.changes, ({ status }) => status === "connected"))
          return connection
        }),
      upstream: {
        connect: (location, manifest) =>
          Connection.make({
            label: `the session host of ${location.directory}`,
            peer: "the coordinator",
            manifest,
            connect: transport(hostIdentity(location))
          })
      }
    }
  })
