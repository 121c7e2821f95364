/**
 * The fleet as a server sees it: all sessions of this user, and for each of them the host where it runs, wherever placement
 * has put that.
 *
 * What only reads records goes to `records` and starts nothing. Everything else starts the session's host if need be. Whoever
 * asks sees no difference between a host in this process and one in another.
 */
import type { FleetProcesses, LocationError } from "@bezel/core/host"
import type { PluginStatus } from "@bezel/core/kernel"
import type { LocationRef } from "@bezel/core/location"
import type { ListedModel, ModelRef } from "@bezel/core/model"
import type { ConnectionShape, Transport } from "@bezel/core/rpc"
import type { ServiceError } from "@bezel/core/service"
import type { SessionApi, SessionStoreShape, UnknownSession } from "@bezel/core/session"
import type { SessionFiles, StorageError } from "@bezel/core/storage"
import type { ToolListing } from "@bezel/core/tool"
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Caller } from "./caller.ts"

/** Something that a location offers by name. */
export interface Offered {
  readonly name: string
  readonly description: string
  /** Where it is from: `built-in`, `settings`, or a file. */
  readonly source: string
}

/** A place with its host running, for as long as it is held. */
export interface FleetLocation {
  readonly location: LocationRef
  /** Sessions that are created through it belong to this place. */
  readonly session: SessionApi
  readonly tools: Effect.Effect<ReadonlyArray<ToolListing>, ServiceError>
  readonly models: Effect.Effect<ReadonlyArray<ListedModel>, ServiceError>
  readonly plugins: Effect.Effect<ReadonlyArray<PluginStatus>, ServiceError>
  readonly agents: Effect.Effect<ReadonlyArray<Offered>, ServiceError>
  readonly commands: Effect.Effect<ReadonlyArray<Offered>, ServiceError>
  readonly skills: Effect.Effect<ReadonlyArray<Offered>, ServiceError>
  /** Why a session here cannot name an agent or a model, as a sentence; `null` where it can. */
  readonly missingAgent: (name: string) => Effect.Effect<string | null, ServiceError>
  readonly missingModel: (ref: ModelRef) => Effect.Effect<string | null, ServiceError>
}

/** Why a session's API cannot be had. */
export type FleetError = UnknownSession | StorageError | LocationError

export interface FleetShape {
  /** Records and contents of all sessions, wherever they run. */
  readonly records: SessionStoreShape
  /** Their files: for export and import. */
  readonly files: SessionFiles
  readonly processes: FleetProcesses
  /** The API of the place that a session belongs to. */
  readonly session: (sessionID: string) => Effect.Effect<SessionApi, FleetError, Scope.Scope>
  readonly location: (
    directory: string,
    workspaceID?: string | null
  ) => Effect.Effect<FleetLocation, LocationError, Scope.Scope>
  /**
   * A client of the session's host, attached to the session: views, events and services of it. All callers share one, which
   * closes some time after the last has gone; do not select or drop it. That alone does not start the session's work.
   */
  readonly attached: (sessionID: string) => Effect.Effect<ConnectionShape, ServiceError, Scope.Scope>
  /** The same, and the session's work runs from now on. */
  readonly working: (sessionID: string) => Effect.Effect<ConnectionShape, ServiceError, Scope.Scope>
  /** Has the session's host serve a client that connected here, until either closes. The caller has authenticated it. */
  readonly relay: (sessionID: string, transport: Transport, caller: Caller) => Effect.Effect<void>
}

/** Global, in a server. */
export class Fleet extends Context.Service<Fleet, FleetShape>()("@bezel/server/Fleet") {}
