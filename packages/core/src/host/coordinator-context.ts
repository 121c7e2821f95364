/**
 * The coordinator's context: authority over the fleet, in views that are scoped to what a facet may do with it, and the
 * services that session hosts use through `upstream`.
 *
 * A coordinator owns no content of sessions. The raw store, storage and the killing of arbitrary processes stay with it.
 */
import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type * as Stream from "effect/Stream"
import type { LocationRef } from "../location/index.ts"
import type { ConnectionShape } from "../rpc/index.ts"
import type { ServiceError } from "../service/index.ts"
import type { SessionStoreShape } from "../session/index.ts"
import type { SettingsReader } from "../settings/index.ts"
import type { Clients } from "./clients.ts"
import type { PluginContext, ServiceProviding } from "./context.ts"
import type { HostIdentity } from "./coordinator-identity.ts"

/** Records of sessions; nothing of what is in them. */
export type FleetRecords = Pick<
  SessionStoreShape,
  "get" | "list" | "create" | "rename" | "archive" | "switchAgent" | "switchModel" | "remove"
>

/** One session host of the fleet, as it is now. */
export interface HostStatus {
  /** Names the host while it is known; a host that is started again keeps its name. */
  readonly id: string
  readonly location: LocationRef
  /** The one session that it is for; `null` for all of its location. */
  readonly sessionID: string | null
  /** `waiting` died and may be started again when its delay is over; `failed` died too often. */
  readonly state: "starting" | "running" | "stopping" | "stopped" | "waiting" | "failed"
  /** `null` where no process of its own runs. */
  readonly pid: number | null
  /** Why it is not running, for people. */
  readonly error: string | null
}

/** The session hosts. A facet can start and stop those of sessions, and nothing else. */
export interface FleetProcesses {
  /** Has the session's host running. One that had failed gets another chance. */
  readonly start: (sessionID: string) => Effect.Effect<HostStatus, ServiceError>
  /**
   * A client of the session's host, attached to the session, for the length of the scope. With `resume: false` that alone does
   * not start the session's work.
   */
  readonly attach: (
    sessionID: string,
    label: string,
    options?: { readonly resume?: boolean }
  ) => Effect.Effect<ConnectionShape, ServiceError, Scope.Scope>
  /** Ends the host that is for this session alone; one that serves its whole location goes on. */
  readonly stop: (sessionID: string) => Effect.Effect<void, ServiceError>
  readonly status: Effect.Effect<ReadonlyArray<HostStatus>>
  /** Every change from the moment of subscribing. */
  readonly changes: Stream.Stream<HostStatus>
}

export interface Fleet {
  readonly records: FleetRecords
  readonly processes: FleetProcesses
}

export interface CoordinatorContext extends PluginContext, ServiceProviding {
  readonly fleet: Fleet
  /** The user's settings; those of a project belong to the hosts of that place. */
  readonly settings: SettingsReader
  /** The session hosts that are connected. */
  readonly clients: Clients<HostIdentity>
}
