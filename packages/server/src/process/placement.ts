/**
 * Session hosts in processes of their own, under a coordinator in this one.
 *
 * Each host listens on a socket in `run` of the state folder that only this user can open, and is a client of the
 * coordinator over another. A crash, or a plugin that eats all memory, stays in its own process. Clients of a host that died
 * come back to its successor by themselves; until then their calls fail.
 */
import {
  Coordinator,
  type FleetProcesses,
  fleetRecords,
  type HostIdentity,
  type LocationError,
  Plugins
} from "@bezel/core/host"
import type { JsonValue } from "@bezel/core/json"
import { HostFailed } from "@bezel/core/kernel"
import { type LocationRef, makeKeyed, resolveLocation } from "@bezel/core/location"
import { connectUnix, type ListenError, listenUnix, type Transport } from "@bezel/core/rpc"
import { ServiceError } from "@bezel/core/service"
import { SessionStore } from "@bezel/core/session"
import { Settings, type SettingsError } from "@bezel/core/settings"
import { SessionStorage } from "@bezel/core/storage"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { createHash, randomBytes } from "node:crypto"
import * as fs from "node:fs"
import { tmpdir } from "node:os"
import * as path from "node:path"
import { type ConnectOptions, connectTo } from "../connect.ts"
import { HostProcesses, sharingClients } from "../host-processes.ts"
import type { CoordinatorPlugins } from "../inline.ts"
import { type PlacedHost, Placement } from "../placement.ts"
import { relay } from "../relay.ts"
import { type Admission, makeAdmission } from "./admission.ts"
import { lastLines, type ProcessTimes, startProcess } from "./host-process.ts"
import { introducing } from "./introduction.ts"
import { makeLedger, sweep } from "./ledger.ts"
import { makeRemoteSession } from "./remote-session.ts"
import { rootOf } from "./root-session.ts"
import { type HostSpec, makeSupervisor, type SupervisorOptions } from "./supervisor.ts"

export interface ProcessPlacementOptions {
  /** Program and arguments of a session host's process: one that runs `serveSessionHost`. */
  readonly command: ReadonlyArray<string>
  /** The state folder: sockets, logs and records of running processes are below it. */
  readonly state: string
  /** The coordinator facets, in manifest order, by the user's settings. Asked when the coordinator boots. */
  readonly plugins: CoordinatorPlugins
  /** One process for all sessions of a location, or one for each session with its sub-agents; default `location`. */
  readonly isolation?: "location" | "session"
  /** For the program: what it finds in its order. */
  readonly options?: JsonValue
  /** Default: that of this process. */
  readonly environment?: NodeJS.ProcessEnv
  /** How long a host stays up without clients and work; default 10 minutes. */
  readonly idleTime?: Duration.Input
  readonly times?: Partial<ProcessTimes>
  readonly supervision?: SupervisorOptions
}

const defaultTimes: ProcessTimes = { bootMillis: 30_000, stopMillis: 5_000, pingMillis: 5_000, silenceMillis: 30_000 }

/** The longest path of a socket that every system takes, less the name of the file. */
const longestFolder = 103 - "/0123456789ab.sock".length

const unavailable = (error: { readonly message: string }) =>
  error instanceof ServiceError ? error : new ServiceError({ code: "unavailable", message: error.message })

interface Folders {
  readonly sockets: string
  readonly hosts: string
  readonly logs: string
}

/** Makes the folders, for this user only. Sockets go elsewhere where their paths would be too long. */
const makeFolders = (state: string): Effect.Effect<Folders, ServiceError, Scope.Scope> =>
  Effect.gen(function*() {
    const run = path.join(state, "run")
    const folders = { sockets: run, hosts: path.join(run, "hosts"), logs: path.join(state, "log", "hosts") }
    yield* Effect.try({
      try: () => {
        for (const folder of Object.values(folders)) fs.mkdirSync(folder, { recursive: true, mode: 0o700 })
        fs.chmodSync(run, 0o700)
      },
      catch: (error) => unavailable({ message: `The folder ${run} cannot be made: ${String(error)}` })
    })
    if (Buffer.byteLength(run) <= longestFolder) return folders
    const sockets = yield* Effect.acquireRelease(
      Effect.sync(() => fs.mkdtempSync(path.join(tmpdir(), "bezel-"))),
      (folder) => Effect.sync(() => fs.rmSync(folder, { recursive: true, force: true }))
    )
    return { ...folders, sockets }
  })

const nameOf = (location: LocationRef, sessionID: string | null): string =>
  [
    location.directory,
    ...(location.workspaceID === null ? [] : [location.workspaceID]),
    ...(sessionID === null ? [] : [sessionID])
  ].join(" ")

/** How one host is started, again and again. */
const specMaker = (options: ProcessPlacementOptions, folders: Folders, coordinator: string, admission: Admission) => {
  const ledger = makeLedger(folders.hosts)
  return (location: LocationRef, sessionID: string | null): HostSpec => {
    const id = nameOf(location, sessionID)
    const log = path.join(folders.logs, `${createHash("sha256").update(id).digest("hex").slice(0, 12)}.log`)
    return {
      id,
      location,
      sessionID,
      lastLines: () => lastLines(log, 8),
      start: Effect.gen(function*() {
        // One for each process: what was given to one that has ended ends with it.
        const identity: HostIdentity = { host: id, location, leases: sessionID === null ? "all" : [sessionID] }
        const socket = path.join(folders.sockets, `${randomBytes(6).toString("hex")}.sock`)
        const process = yield* startProcess({
          order: {
            host: id,
            location,
            sessionID,
            socket,
            coordinator,
            idleMillis: Duration.toMillis(options.idleTime ?? "10 minutes"),
            options: options.options ?? null
          },
          issue: () => admission.issue(identity),
          command: options.command,
          environment: options.environment ?? globalThis.process.env,
          log,
          ledger,
          times: { ...defaultTimes, ...options.times }
        })
        yield* Effect.forkDetach(Effect.andThen(process.ended, Effect.sync(() => admission.revoke(identity))))
        return { ...process, socket }
      })
    }
  }
}

type ProcessServices = Coordinator | HostProcesses | Placement

export const makeProcessPlacement = (
  options: ProcessPlacementOptions
): Effect.Effect<
  Context.Context<ProcessServices>,
  HostFailed | ListenError | ServiceError | SettingsError,
  Scope.Scope | SessionStorage | SessionStore | Settings
> =>
  Effect.gen(function*() {
    const store = yield* SessionStore
    const files = yield* SessionStorage
    const folders = yield* makeFolders(options.state)
    yield* sweep(folders.hosts)

    // The listener first, so that hosts are stopped before it is closed.
    const address = path.join(folders.sockets, `${randomBytes(6).toString("hex")}.sock`)
    let serve: (transport: Transport, identity: HostIdentity) => Effect.Effect<void> = () => Effect.void
    const admission = makeAdmission((transport, identity) => serve(transport, identity))
    yield* listenUnix({ path: address, serve: admission.serve })
    yield* Effect.addFinalizer(() => Effect.sync(() => fs.rmSync(address, { force: true })))
    const supervisor = yield* makeSupervisor(options.supervision)
    const specOf = specMaker(options, folders, address, admission)

    const isolated = options.isolation === "session"
    const hostOf = (sessionID: string) =>
      // A sub-agent's session is open where the one is that it works for.
      Effect.mapBoth(isolated ? rootOf(store, sessionID) : store.get(sessionID), {
        onFailure: unavailable,
        onSuccess: ({ id, location }) => specOf(location, isolated ? id : null)
      })
    const reach = (spec: HostSpec, user: string | null) =>
      introducing(Effect.flatMap(supervisor.demand(spec), ({ socket }) => connectUnix(socket)), user)
    const connect = (spec: HostSpec, wanted: ConnectOptions) =>
      // Why it cannot be had is told at once; what is lost later is demanded again with each attempt.
      Effect.andThen(supervisor.demand(spec), connectTo(reach(spec, null), wanted))
    const attach: FleetProcesses["attach"] = (sessionID, label, wanted) =>
      Effect.flatMap(hostOf(sessionID), (spec) => connect(spec, { label, sessionID, ...wanted }))

    const processes: FleetProcesses = {
      start: (sessionID) => Effect.flatMap(hostOf(sessionID), supervisor.start),
      attach,
      stop: (sessionID) => isolated ? Effect.flatMap(hostOf(sessionID), ({ id }) => supervisor.stop(id)) : Effect.void,
      status: supervisor.status,
      changes: supervisor.changes
    }
    const shared = yield* sharingClients(processes)
    const reached = yield* makeKeyed({
      make: (sessionID: string) => Effect.flatMap(hostOf(sessionID), (spec) => connect(spec, { label: "session API" })),
      idleTime: "1 second"
    })
    const user = yield* Effect.flatMap(Settings, (settings) => settings.user)
    const coordinator = yield* Coordinator.make({
      plugins: yield* Effect.mapError(options.plugins(user), unavailable),
      settings: user,
      fleet: { records: fleetRecords(store), processes }
    })
    serve = coordinator.serve

    const place = (directory: string, workspaceID: string | null = null): Effect.Effect<PlacedHost, LocationError> =>
      Effect.gen(function*() {
        const location = yield* resolveLocation(directory, workspaceID)
        const whole = specOf(location, null)
        if (!isolated) {
          yield* Effect.mapError(
            supervisor.demand(whole),
            ({ message }) => new HostFailed({ host: "session", message, failures: [] })
          )
        }
        return {
          location,
          session: makeRemoteSession({
            location,
            store,
            files,
            attach: shared.working,
            reach: reached.get
          }),
          plugins: Effect.scoped(Effect.gen(function*() {
            const connection = yield* connect(whole, { label: "plugins" })
            return yield* (yield* connection.use(Plugins)).list()
          })).pipe(Effect.orElseSucceed(() => [])),
          connect: (wanted) =>
            wanted.sessionID === undefined
              ? connect(whole, wanted)
              : Effect.flatMap(hostOf(wanted.sessionID), (spec) => connect(spec, wanted)),
          serve: (transport, { sessionID, user }) =>
            relay(transport, Effect.flatMap(hostOf(sessionID), (spec) => reach(spec, user)))
        }
      })
    return Context.make(Coordinator, Coordinator.of(coordinator)).pipe(
      Context.add(Placement, Placement.of({ place })),
      Context.add(HostProcesses, HostProcesses.of(shared))
    )
  })

/** Session hosts in processes of their own; also gives their coordinator. */
export const processPlacement = (options: ProcessPlacementOptions) => Layer.effectContext(makeProcessPlacement(options))
