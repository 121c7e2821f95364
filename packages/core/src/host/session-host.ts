/**
 * The session host: the layers of one location, from its registries up to the endpoint that clients connect to.
 *
 *     ToolRegistry ← SessionRuntime ← SessionHost ← PluginKernel ← Endpoint
 *
 * Arrows point at what is needed, and only this way. The endpoint is built last: nobody connects to a host that is not ready.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Equal from "effect/Equal"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import type { KernelOptions, KernelShape, PluginSource, ReloadFailed } from "../kernel/index.ts"
import { Kernel } from "../kernel/index.ts"
import type { LocationRef } from "../location/index.ts"
import { Location } from "../location/index.ts"
import { missingModel, ProviderRegistry } from "../model/index.ts"
import { Endpoint, Mismatch } from "../rpc/index.ts"
import type { EndpointOptions, PluginVersion } from "../rpc/index.ts"
import type { ClientIdentity } from "../service/index.ts"
import { InteractionBroker, MutableRemoteState, ServiceDirectory, ServiceError } from "../service/index.ts"
import type { OpenError } from "../session/index.ts"
import { declareSession, makeSessionApi, ProcessHost, SessionRuntime, SessionStore } from "../session/index.ts"
import type { SettingsError, SettingsReader } from "../settings/index.ts"
import { Settings } from "../settings/index.ts"
import { ToolRegistry } from "../tool/index.ts"
import { makeJobKind } from "../turn/index.ts"
import { makeClientRoster } from "./clients.ts"
import type { SessionContext } from "./context.ts"
import { provideConversations } from "./conversation-provider.ts"
import { Conversation } from "./conversation.ts"
import { makeDefinitions } from "./definitions.ts"
import { makeGenerations } from "./generation.ts"
import { type CurrentSettings, makeCurrentSettings } from "./location-settings.ts"
import { Plugins, versionsOf } from "./plugins.ts"
import { powers } from "./powers.ts"
import type { SessionRegistration } from "./registrations.ts"
import { makeBinding } from "./registrations.ts"
import { Registries } from "./registries.ts"
import type { SessionHostParts } from "./session-context.ts"
import { makeSessionContext } from "./session-context.ts"
import { makeUpstream } from "./upstream.ts"

/** Which plugins a location has, in manifest order, and how each loads its session facet. Global. */
export class SessionPlugins extends Context.Service<SessionPlugins, {
  readonly forLocation: (
    location: LocationRef,
    settings: SettingsReader
  ) => Effect.Effect<ReadonlyArray<PluginSource<SessionContext>>>
  readonly limits?: KernelOptions<never, never>["limits"]
}>()("@bezel/core/host/SessionPlugins") {
  /** The same plugins everywhere. */
  static readonly layer = (
    sources: ReadonlyArray<PluginSource<SessionContext>>,
    options?: Pick<KernelOptions<never, never>, "limits">
  ): Layer.Layer<SessionPlugins> =>
    Layer.succeed(SessionPlugins, SessionPlugins.of({ forLocation: () => Effect.succeed(sources), ...options }))
}

export interface SessionHostShape extends SessionHostParts {
  /** Holds a session open for a client until it detaches; refuses sessions of other places. */
  readonly attach: (
    sessionID: string,
    client: ClientIdentity,
    options: { readonly resume: boolean }
  ) => Effect.Effect<void, ServiceError>
  readonly detach: (sessionID: string, client: ClientIdentity) => Effect.Effect<void>
  readonly currentSettings: CurrentSettings
  /** The plugins of this host, as others compare them with theirs. */
  readonly manifest: Effect.Effect<ReadonlyArray<PluginVersion>>
  /** Says what its plugins are. */
  readonly loads: (plugins: Effect.Effect<ReadonlyArray<PluginVersion>>) => void
}

const refusal = (error: OpenError): ServiceError => {
  switch (error._tag) {
    case "UnknownSession":
    case "SessionLocationMismatch":
      return new ServiceError({ code: "invalid_arguments", message: error.message })
    case "SessionInUse":
      return new ServiceError({
        code: "unavailable",
        message: `The session ${error.sessionID} is in use by process ${error.holder.pid} (${error.holder.command}).`
      })
    default:
      return new ServiceError({ code: "unavailable", message: `The session could not be opened: ${error.message}` })
  }
}

const makeSessionHost = Effect.gen(function*() {
  const location = yield* Location
  const settings = yield* Settings
  const currentSettings = makeCurrentSettings(yield* settings.forLocation(location.directory))
  const runtime = yield* SessionRuntime
  const directory = yield* ServiceDirectory
  const broker = yield* InteractionBroker
  const job = makeJobKind(yield* ProcessHost)
  const scope = yield* Effect.scope
  const attached = new Map<string, Scope.Closeable>()
  const seat = (sessionID: string, client: ClientIdentity) => `${client.id} ${sessionID}`

  // Ahead of all plugins, so that their session effects find the service there.
  yield* directory.declare(Conversation, { perSession: true })
  yield* directory.declare(Plugins, { perSession: false })
  yield* directory.declare(Registries, { perSession: false })
  yield* runtime.declare({
    remove: [],
    add: [
      declareSession(
        { plugin: "the host", order: -1 },
        (session) => provideConversations({ directory, broker, runtime }, session)
      )
    ]
  })

  const detach: SessionHostShape["detach"] = (sessionID, client) =>
    Effect.suspend(() => {
      const held = attached.get(seat(sessionID, client))
      attached.delete(seat(sessionID, client))
      return held === undefined ? Effect.void : Scope.close(held, Exit.void)
    })

  const tools = yield* ToolRegistry
  const providers = yield* ProviderRegistry
  const place = yield* Effect.cached(Scope.provide(
    Effect.flatMap(Effect.promise(() => import("./place.ts")), ({ makePlace }) => makePlace(location.directory)),
    scope
  ))
  const filesystem = Effect.map(place, ({ files }) => files)
  const process: SessionContext["process"] = {
    spawn: (command) => Effect.flatMap(place, ({ spawn }) => spawn(command))
  }
  yield* runtime.configureTurns({ job, place: { filesystem, process } })
  const roster = yield* makeClientRoster<ClientIdentity>()
  let loaded: Effect.Effect<ReadonlyArray<PluginVersion>> = Effect.succeed([])
  const manifest = Effect.suspend(() => loaded)
  return SessionHost.of({
    location,
    filesystem,
    process,
    roster,
    manifest,
    loads: (plugins) => {
      loaded = plugins
    },
    settings: currentSettings.reader,
    currentSettings,
    runtime,
    directory,
    broker,
    job,
    tools,
    providers,
    definitions: yield* makeDefinitions,
    generations: makeGenerations({ code: runtime.code, tools, providers }),
    upstream: yield* makeUpstream(location, manifest),
    session: makeSessionApi(location, yield* SessionStore, runtime),
    attach: (sessionID, client, options) =>
      Effect.uninterruptibleMask((restore) =>
        Effect.gen(function*() {
          yield* detach(sessionID, client)
          const held = yield* Scope.fork(scope)
          yield* restore(runtime.open(sessionID, options)).pipe(
            Scope.provide(held),
            Effect.onError(() => Scope.close(held, Exit.void)),
            Effect.mapError(refusal)
          )
          attached.set(seat(sessionID, client), held)
        })
      ),
    detach
  })
})

/** What the facets of one location are given, and who is attached to its sessions. */
export class SessionHost extends Context.Service<SessionHost, SessionHostShape>()("@bezel/core/host/SessionHost") {
  static readonly layer = Layer.effect(SessionHost, makeSessionHost)
}

const makePluginKernel = Effect.gen(function*() {
  const host = yield* SessionHost
  const plugins = yield* SessionPlugins
  const sources = yield* plugins.forLocation(host.location, host.settings)
  host.loads(Effect.succeed(sources.map(({ entry }) => entry)))
  const boot = Kernel.make<SessionContext, SessionRegistration>({
    host: "session",
    powers,
    plugins: sources,
    makeContext: (facet, running) => makeSessionContext(facet, running, host),
    bind: makeBinding(host),
    ...(plugins.limits === undefined ? {} : { limits: plugins.limits })
  })
  // What a facet prompts while others are still set up or activated is accepted, and begins when all of them are there.
  const kernel = yield* host.runtime.exchanging([], Scope.provide(boot, yield* Effect.scope))
  host.loads(Effect.map(kernel.plugins, versionsOf))
  const { agent, command, skill } = host.definitions
  const faults = (yield* Effect.all([
    host.tools.faults,
    host.providers.contributions.faults,
    agent.faults,
    command.faults,
    skill.faults
  ])).flat()
  yield* Effect.forEach(faults, (fault) => Effect.logWarning(fault.message), { discard: true })
  const settings = yield* Settings
  const reading = yield* Semaphore.make(1)
  const reloadSettings = Effect.gen(function*() {
    const next = yield* settings.forLocation(host.location.directory)
    const previous = host.currentSettings.replace(next)
    const concerned = host.generations.all().filter((generation) =>
      [...generation.settings.values()].some((key) => !Equal.equals(previous.get(key), next.get(key)))
    ).map(({ plugin }) => plugin)
    // One that failed may have failed because of a setting. It has nothing to lose, and its failing again is no news.
    for (const { id, phase, state } of yield* kernel.plugins) {
      if (state === "failed" && phase !== "load") yield* Effect.ignore(kernel.reload({ plugins: [id], keepCode: true }))
    }
    if (concerned.length === 0) return []
    const restoring = Effect.sync(() => {
      host.currentSettings.replace(previous)
    })
    return yield* Effect.onError(kernel.reload({ plugins: concerned, keepCode: true, restoring }), () => restoring)
  }).pipe(reading.withPermit, Effect.withSpan("PluginKernel.reloadSettings"))
  return PluginKernel.of({ ...kernel, reloadSettings })
})

export interface PluginKernelShape extends KernelShape {
  /**
   * Reads the settings anew. Plugins that have read a key whose value has changed are set up again with the new value, and
   * only they; gives their ids. If one of them refuses its new value, the old settings hold.
   */
  readonly reloadSettings: Effect.Effect<ReadonlyArray<string>, SettingsError | ReloadFailed>
}

/** The session facets of one location, booted. */
export class PluginKernel extends Context.Service<PluginKernel, PluginKernelShape>()("@bezel/core/host/PluginKernel") {
  static readonly layer = Layer.effect(PluginKernel, makePluginKernel)
}

/** What an endpoint over a session host does for each client. */
export const endpointOptions = (host: SessionHostShape): EndpointOptions => ({
  attach: host.attach,
  detach: host.detach,
  manifest: host.manifest,
  connected: (client) => host.roster.connected(client.id, client),
  disconnected: (client) => host.roster.disconnected(client.id)
})

/** Where the clients of one location connect, once its plugins are up. */
export const endpointLayer = Layer.effect(
  Endpoint,
  Effect.gen(function*() {
    const { plugins, reload, reloadable, reloadSettings } = yield* PluginKernel
    const host = yield* SessionHost
    const { directory, providers, tools } = host
    const told = Effect.map((ids: ReadonlyArray<string>) => ({ plugins: ids }))
    const mismatches = yield* MutableRemoteState.make(Schema.Array(Mismatch), [])
    yield* Effect.forkScoped(
      Stream.runForEach(host.upstream.state.changes, ({ mismatches: found = [] }) => mismatches.set(found))
    )
    yield* Effect.orDie(directory.provide(Plugins, {
      upstream: mismatches,
      list: () => plugins,
      reload: (options) =>
        told(Effect.flatMap(
          options.plugins === undefined ? reloadable : Effect.succeed(options.plugins),
          (wanted) => wanted.length === 0 ? Effect.succeed([]) : reload({ plugins: wanted })
        )),
      reloadSettings: () => told(reloadSettings)
    }))
    yield* Effect.orDie(directory.provide(Registries, {
      tools: () => tools.list,
      models: () => providers.list,
      missingModel: (ref) => Effect.map(providers.table, (table) => missingModel(table, ref))
    }))
    return Endpoint.of(yield* Endpoint.make(endpointOptions(host)))
  })
)

/** Everything of one location, from the global services up. */
export const locationLayer = (location: LocationRef) =>
  endpointLayer.pipe(
    Layer.provideMerge(PluginKernel.layer),
    Layer.provideMerge(SessionHost.layer),
    Layer.provideMerge(SessionRuntime.layer),
    Layer.provideMerge(
      Layer.mergeAll(
        ToolRegistry.layer,
        ProviderRegistry.layer,
        ServiceDirectory.layer,
        InteractionBroker.layer,
        ProcessHost.layer
      )
    ),
    Layer.provideMerge(Layer.succeed(Location, location))
  )
