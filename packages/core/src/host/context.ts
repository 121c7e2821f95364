/**
 * Host contexts: what a facet may do is exactly what its context offers.
 *
 * Everything handed out here is owned by the facet's scope without the author's help: a registration made during setup is
 * staged and becomes visible, with all others, at bind; one made later is visible at once; all end with the scope.
 */
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import type { FileSystem } from "effect/FileSystem"
import type { PlatformError } from "effect/PlatformError"
import type { Command } from "effect/process/ChildProcess"
import type { ChildProcessHandle } from "effect/process/ChildProcessSpawner"
import type * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type * as Stream from "effect/Stream"
import type { HarnessExtensions, JobSpec, Registration, TaskExtensions, TaskKind } from "../harness/index.ts"
import type { PluginStatus, ReloadFailed } from "../kernel/index.ts"
import type { LocationRef } from "../location/index.ts"
import type { Availability, ModelSource, Provider, ProviderDraft } from "../model/index.ts"
import type { Mismatch } from "../rpc/index.ts"
import type {
  ClientIdentity,
  Facade,
  Implementation,
  Interaction,
  InteractionOutcome,
  LocalService,
  MutableRemoteEvents,
  MutableRemoteState,
  RegistrationError,
  RemoteService,
  RemoteState,
  ServiceError,
  Unattended
} from "../service/index.ts"
import type { OpenSession, PromptIntake, SessionApi, SessionIdentity, SessionRevert } from "../session/index.ts"
import type { SettingsReader } from "../settings/index.ts"
import type { ToolDraft } from "../tool/index.ts"
import type { TurnOptions } from "../turn/index.ts"
import type { Clients } from "./clients.ts"
import type { CoordinatorContext } from "./coordinator-context.ts"
import type { AgentDefinition, CommandDefinition, Defined, DefinitionDraft, SkillDefinition } from "./definitions.ts"
import type { PluginLog } from "./log.ts"

/** What every context has. */
export interface PluginContext {
  /** Id of the plugin that this facet belongs to. */
  readonly plugin: string
  /** Options of the plugin from the manifest, strict JSON; decode them with a Schema of your own. */
  readonly options: unknown
  readonly onActivate: (effect: Effect.Effect<void, unknown, Scope.Scope>) => Effect.Effect<void>
  readonly onDispose: (effect: Effect.Effect<void>) => Effect.Effect<void>
  /** Acquires something into this facet's scope, also from a fiber whose own scope ends earlier. */
  readonly own: <A, E, R>(resource: Effect.Effect<A, E, R>) => Effect.Effect<A, E, Exclude<R, Scope.Scope>>
  /** Who is loaded, and the state of each. */
  readonly plugins: Effect.Effect<ReadonlyArray<PluginStatus>>
  /** The host's log; each line names the plugin. */
  readonly log: PluginLog
}

/** What contexts of hosts that provide services have. */
export interface ServiceProviding {
  readonly provide: {
    <S extends RemoteService.Any>(token: S, implementation: Implementation<S>): Effect.Effect<void>
    <A>(token: LocalService<A>, implementation: A): Effect.Effect<void>
  }
  /** The implementation itself, from activation on; during setup it only declares the need. */
  readonly use: {
    <S extends RemoteService.Any>(token: S): Effect.Effect<Implementation<S>>
    <A>(token: LocalService<A>): Effect.Effect<A>
  }
  /** What another facet of this host provides at this moment, if any does; it declares no need and orders nothing. */
  readonly find: <A>(token: LocalService<A>) => Effect.Effect<A | null>
  /** For a service with many instances: gives what publishes them. Only one plugin has instances of a service. */
  readonly provideMany: <S extends RemoteService.Any>(token: S) => Effect.Effect<Spawn<S>>
  /**
   * Runs one scoped effect per live instance of a service, those already open included, with the implementation itself; it is
   * interrupted when that instance closes. A key that is used again is another instance.
   */
  readonly observe: <S extends RemoteService.Any>(
    token: S,
    effect: (instance: Implementation<S>, key: string) => Effect.Effect<void, unknown, Scope.Scope>
  ) => Effect.Effect<void>
  readonly state: <A, I>(schema: Schema.Codec<A, I>, initial: A) => Effect.Effect<MutableRemoteState<A>>
  readonly events: <A, I>(schema: Schema.Codec<A, I>) => Effect.Effect<MutableRemoteEvents<A>>
}

/**
 * Publishes an instance for the length of the scope. With a session it is that session's, and only clients attached to it see
 * it. Fails where an instance of that key is there.
 */
export type Spawn<S extends RemoteService.Any> = (
  key: string,
  implementation: Implementation<S>,
  options?: { readonly sessionID?: string }
) => Effect.Effect<void, RegistrationError, Scope.Scope>

/** A contribution registry: many contributors, one result, rebuilt by replaying transforms in manifest order. */
export interface Contribution<Draft, Item> {
  /** Replayed over a fresh draft whenever a transform comes or goes, or its owner calls `reload`. */
  readonly transform: (change: (draft: Draft) => void) => Effect.Effect<Registration>
  readonly reload: Effect.Effect<void>
  readonly list: Effect.Effect<ReadonlyArray<Item>>
}

/** Definitions of one kind, by name. */
export interface DefinitionContribution<D> extends Contribution<DefinitionDraft<D>, Defined<D>> {
  /** What they are now, then after each change. */
  readonly changes: Stream.Stream<ReadonlyArray<Defined<D>>>
}

/** A provider of models, as the registry lists it. */
export interface ListedProvider {
  readonly id: string
  /** Which plugin it is from. */
  readonly plugin: string
  readonly name: string
  readonly availability: Availability
  readonly takesKey: boolean
  /** Where its key is from, for people; `null`: it has none. */
  readonly keySource: string | null
  /** Asks it which models it has; `null` where it cannot be asked. */
  readonly discover: Provider["discover"] | null
}

export interface SessionContext extends PluginContext, ServiceProviding, HarnessExtensions, TaskExtensions {
  readonly location: LocationRef
  readonly settings: SettingsReader
  /** Effect's own; what is not an absolute path is below the location's directory. */
  readonly filesystem: Effect.Effect<FileSystem>
  readonly process: {
    /**
     * Starts a command of `effect/process`, by default in the location's directory. It ends with the scope, and with it
     * whatever it has started that stayed in its process group.
     */
    readonly spawn: (command: Command) => Effect.Effect<ChildProcessHandle, PlatformError, Scope.Scope>
  }
  /** Who is connected to this host. */
  readonly clients: Clients<ClientIdentity>
  /** A client attached to a session sees that session's instance through plain `use`. */
  readonly providePerSession: <S extends RemoteService.Any>(
    token: S,
    make: (session: OpenSession) => Effect.Effect<Implementation<S>, unknown, Scope.Scope>
  ) => Effect.Effect<void>
  /** Runs once per open session, those already open included, in that session's scope. */
  readonly onSession: (
    effect: (session: OpenSession) => Effect.Effect<void, unknown, Scope.Scope>
  ) => Effect.Effect<void>
  /** The coordinator, as a service host of which this host is a client. */
  readonly upstream: {
    /**
     * A facade over the one connection of this host, stable across reconnects; using it is a demand for its states. Fails
     * with `unavailable` where there is no coordinator.
     */
    readonly use: <S extends RemoteService.Any>(token: S) => Effect.Effect<Facade<S>, ServiceError>
    /** `disconnected` also where there is no coordinator, and until a facet has used something of it. */
    readonly connection: RemoteState<ConnectionState>
  }
  readonly session: SessionApi
  /** What turns need beyond models and tools: agents, and when a conversation is summarized. The last one to say it holds. */
  readonly turns: {
    readonly configure: (options: Partial<Pick<TurnOptions, "agent" | "compaction">>) => Effect.Effect<void>
  }
  /** Sees prompts that people wrote before they are accepted, and may add files to them. */
  readonly intake: (intake: PromptIntake) => Effect.Effect<void>
  /** Makes this plugin the one that takes back what sessions have done, behind `ctx.session.revert`. */
  readonly reverting: (by: SessionRevert) => Effect.Effect<void>
  /** The kind of OS processes owned by tasks, for `commit((tx) => tx.createTask(ctx.job, …))`. */
  readonly job: TaskKind<JobSpec>
  readonly tool: Contribution<
    ToolDraft,
    { readonly name: string; readonly plugin: string; readonly description: string; readonly namesAccess: boolean }
  >
  readonly provider: Contribution<ProviderDraft, ListedProvider>
  /** What is contributed here stands below what the user and the project have of the same name. */
  readonly agent: DefinitionContribution<AgentDefinition>
  readonly command: DefinitionContribution<CommandDefinition>
  readonly skill: DefinitionContribution<SkillDefinition>
  /** For what a plugin asks a model itself; `null` is the default one. What it costs is in no session's totals. */
  readonly models: Pick<ModelSource, "resolve">
  readonly interactions: {
    readonly request: <Q, R>(
      interaction: Interaction<Q, R>,
      request: Q,
      /** Without a time limit it stays open until it is answered or its policy settles it. */
      options: { readonly sessionID: string; readonly timeLimit?: Duration.Input }
    ) => Effect.Effect<InteractionOutcome<R>>
    /**
     * For the length of the scope, what one session asks is asked where another one's people are too, and the other's policy
     * holds where nobody is: for a session that works on behalf of another.
     */
    readonly relay: (
      sessions: { readonly from: string; readonly to: string }
    ) => Effect.Effect<void, never, Scope.Scope>
    /** For the length of the scope, what becomes of what a session asks while nobody is there, whatever an interaction would like. */
    readonly unattended: (sessionID: string, policy: Unattended) => Effect.Effect<void, never, Scope.Scope>
  }
}

/** The connection that a presentation has to its session host, or a session host to its coordinator. */
export interface ConnectionState {
  readonly status: "connecting" | "connected" | "disconnected"
  /** Plugins and contracts that the two sides have in different versions. */
  readonly mismatches?: ReadonlyArray<Mismatch>
}

/** What every presentation host's context has; the terminal's and the web's extend it in their own packages. */
export interface PresentationContext extends PluginContext {
  readonly use: {
    /** A facade, the same object for every consumer in the process; stable across reload and reconnect. */
    <S extends RemoteService.Any>(token: S): Effect.Effect<Facade<S>>
    /** What another facet of this host provides: the thing itself from activation on, as in a session host. */
    <A>(token: LocalService<A>): Effect.Effect<A>
  }
  /**
   * Loads the code of this host's own plugins anew: of these, or of all whose code can be. Gives the ids of those that run new
   * code; what fails leaves the old code running.
   */
  readonly reload: (plugins?: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<string>, ReloadFailed>
  /** For the other facets of this host; it never leaves the process. */
  readonly provide: <A>(token: LocalService<A>, implementation: A) => Effect.Effect<void>
  /** One scoped effect per live instance of a keyed service, those already open included. */
  readonly observe: <S extends RemoteService.Any>(
    token: S,
    effect: (instance: Facade<S>, key: string) => Effect.Effect<void, unknown, Scope.Scope>
  ) => Effect.Effect<void>
  readonly interactions: {
    /** A failure or a defect of the handler hands the request on to another client. */
    readonly handle: <Q, R>(
      interaction: Interaction<Q, R>,
      handler: (request: Q) => Effect.Effect<R | "declined", unknown, Scope.Scope>
    ) => Effect.Effect<void>
  }
  readonly connection: RemoteState<ConnectionState>
  /** The session this presentation shows. */
  readonly session: {
    readonly current: Effect.Effect<SessionIdentity | null>
    readonly changes: Stream.Stream<SessionIdentity | null>
    readonly select: (sessionID: string) => Effect.Effect<void, ServiceError>
  }
}

/** Facets by host. A host's package adds its own by declaration merging, as the terminal does with `tui`. */
export interface HostContexts {
  readonly coordinator: CoordinatorContext
  readonly session: SessionContext
}
