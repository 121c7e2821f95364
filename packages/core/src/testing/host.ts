/**
 * Hosts for tests, in memory and in this process: the real kernel, registries, runtime, services and boundary, over memory
 * storage and a scripted model. What a plugin does here it does in a deployment.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as fs from "node:fs/promises"
import * as os from "node:os"
import * as path from "node:path"
import type { PresentationContext } from "../host/context.ts"
import type { GlobalServices, LocationError, LocationServices } from "../host/index.ts"
import {
  LocationMap,
  makePresentation,
  Plugin,
  PluginKernel,
  powers,
  type PresentationItem,
  SessionHost,
  SessionPlugins,
  Upstream
} from "../host/index.ts"
import type { HostFailed, KernelOptions, ManifestEntry, PluginStatus } from "../kernel/index.ts"
import { Kernel } from "../kernel/index.ts"
import type { LocationRef } from "../location/index.ts"
import type { Model } from "../model/index.ts"
import { Connection, type ConnectionShape, Endpoint, loopback, type PluginVersion } from "../rpc/index.ts"
import type { SessionApi, SessionStore } from "../session/index.ts"
import { Settings, type SettingsReader } from "../settings/index.ts"
import type { SessionStorage } from "../storage/index.ts"
import type { TestCoordinator } from "./coordinator.ts"
import { scriptedModel } from "./model.ts"
import { emptySettings, memorySessions } from "./sessions.ts"

export interface TestHostOptions {
  /** The location's directory; default an empty one that is removed afterwards. */
  readonly directory?: string
  /** Answers every request; default a scripted model without turns. */
  readonly model?: Model
  /** Manifest entries by plugin id: `required`, `options`, `grants`. Without `grants` a plugin has every power. */
  readonly entries?: { readonly [id: string]: Partial<Omit<ManifestEntry, "id">> }
  readonly limits?: KernelOptions<never, never>["limits"]
  /** Settings of the location, or what gives them whenever they are read; default none, so every key has its default. */
  readonly settings?: SettingsReader | (() => SettingsReader)
  /** Sessions that an earlier host has left, found again as after a crash: see `testSessions`. Default none. */
  readonly sessions?: Context.Context<SessionStore | SessionStorage>
  /** Puts the host under this coordinator, and its sessions among that one's; default: it has none. */
  readonly coordinator?: Pick<TestCoordinator, "sessions" | "upstream">
}

export interface TestSessionHost {
  readonly location: LocationRef
  readonly session: SessionApi
  readonly plugins: Effect.Effect<ReadonlyArray<PluginStatus>>
  /** Every service of the location. */
  readonly services: Context.Context<LocationServices>
  /** A new client over loopback, connected; with a session it is attached to it. `manifest` are the plugins of its side. */
  readonly connect: (
    sessionID?: string,
    manifest?: ReadonlyArray<PluginVersion>
  ) => Effect.Effect<ConnectionShape, never, Scope.Scope>
  /** Prompts a session and waits for the answer's text. */
  readonly ask: (sessionID: string, text: string) => Effect.Effect<string>
}

/** The global tier in memory. */
export const testGlobals = (
  plugins: ReadonlyArray<Plugin>,
  options: TestHostOptions = {}
): Layer.Layer<GlobalServices> => {
  const { coordinator, settings = emptySettings } = options
  const sessions = options.sessions ?? coordinator?.sessions
  const reader = Effect.sync(() => typeof settings === "function" ? settings() : settings)
  return Layer.mergeAll(
    sessions === undefined ? memorySessions : Layer.succeedContext(sessions),
    Layer.succeed(
      Settings,
      Settings.of({ user: reader, forLocation: () => reader, keys: [] })
    ),
    SessionPlugins.layer(
      Plugin.sources(
        "session",
        [modelPlugin(options.model ?? scriptedModel([])), ...plugins],
        Object.fromEntries(plugins.map(({ id }) => [id, { grants: powers, ...options.entries?.[id] }]))
      ),
      options.limits === undefined ? {} : { limits: options.limits }
    )
  )
}

/** A plugin that offers one model, and makes it the default. */
export const modelPlugin = (model: Model): Plugin =>
  Plugin.define({
    id: "test.model",
    session: (ctx) =>
      Effect.asVoid(ctx.provider.transform((draft) => {
        draft.set(model.info.provider, {
          id: model.info.provider,
          name: model.info.provider,
          models: [model.info],
          openEnded: true,
          availability: { ready: true },
          open: () => Effect.succeed(model)
        })
        draft.setDefault({ provider: model.info.provider, model: model.info.model })
      }))
  })

/** An empty directory that is removed with the scope. */
export const temporaryDirectory: Effect.Effect<string, never, Scope.Scope> = Effect.acquireRelease(
  Effect.promise(() => fs.mkdtemp(path.join(os.tmpdir(), "bezel-test-"))),
  (directory) => Effect.promise(() => fs.rm(directory, { recursive: true, force: true }))
)

/** Boots a session host with these plugins. */
export const testSessionHost = (
  plugins: ReadonlyArray<Plugin>,
  options: TestHostOptions = {}
): Effect.Effect<TestSessionHost, LocationError, Scope.Scope> =>
  Effect.gen(function*() {
    const directory = options.directory ?? (yield* temporaryDirectory)
    const { coordinator } = options
    const locations = LocationMap.layer.pipe(Layer.provide(testGlobals(plugins, options)))
    const globals = yield* Layer.build(
      coordinator === undefined
        ? locations
        : locations.pipe(Layer.provide(Layer.succeed(Upstream, coordinator.upstream)))
    )
    const services = yield* Context.get(globals, LocationMap).get(directory)
    const host = Context.get(services, SessionHost)
    const connect: TestSessionHost["connect"] = (sessionID, manifest = []) =>
      Effect.gen(function*() {
        const connection = yield* Connection.make({
          connect: loopback(Context.get(services, Endpoint)),
          label: "test",
          peer: "the session host",
          manifest: Effect.succeed(manifest)
        })
        yield* connected(connection)
        if (sessionID !== undefined) yield* Effect.orDie(connection.select(sessionID))
        return connection
      })
    return {
      location: host.location,
      session: host.session,
      plugins: Context.get(services, PluginKernel).plugins,
      services,
      connect,
      ask: (sessionID, text) =>
        Effect.gen(function*() {
          const { inputID } = yield* host.session.prompt({ sessionID, prompt: { text } })
          const outcome = yield* host.session.wait(sessionID, inputID)
          return outcome.status === "done"
            ? outcome.text
            : `(${outcome.reason}: ${outcome.error?.message ?? "no error"})`
        }).pipe(Effect.orDie)
    }
  })

const connected = (connection: ConnectionShape): Effect.Effect<void> =>
  connection.state.changes.pipe(Stream.filter(({ status }) => status === "connected"), Stream.runHead, Effect.asVoid)

/**
 * Boots presentation facets over a connection, for facets that need what every presentation has. Surfaces with facilities of
 * their own bring their own test host.
 */
export const testPresentation = (
  host: TestSessionHost,
  facets: { readonly [plugin: string]: (ctx: PresentationContext) => Effect.Effect<void, unknown, Scope.Scope> },
  sessionID?: string
): Effect.Effect<ConnectionShape, HostFailed, Scope.Scope> =>
  Effect.gen(function*() {
    const connection = yield* host.connect(sessionID)
    const { makeContext, ...bind } = yield* makePresentation({
      connection,
      location: host.location,
      surface: "presentation"
    })
    yield* Kernel.make<PresentationContext, PresentationItem>({
      host: "presentation",
      plugins: Object.entries(facets).map(([id, facet]) => ({
        entry: { id, required: true },
        load: Effect.succeed(facet)
      })),
      makeContext,
      bind
    })
    return connection
  })
