/**
 * The locations of the `bezel` process: the built-in plugins with the options of this command line, behind them those from
 * outside, over the global tier.
 */
import { LocationMap, PluginKernel, SessionPlugins } from "@bezel/core/host"
import { Location, resolveLocation } from "@bezel/core/location"
import { ProviderRegistry } from "@bezel/core/model"
import { InteractionBroker, ServiceDirectory } from "@bezel/core/service"
import { SessionRuntime, SessionStore } from "@bezel/core/session"
import { AppPaths, Settings, type Trust } from "@bezel/core/settings"
import { ToolRegistry } from "@bezel/core/tool"
import { type BuiltinOptions, builtinSessionPlugins } from "@bezel/plugins"
import { Agents } from "@bezel/plugins/agents/contract"
import { PromptCommands } from "@bezel/plugins/commands/contract"
import { McpConnections } from "@bezel/plugins/mcp/contract"
import { PermissionGate } from "@bezel/plugins/permissions/contract"
import { Models } from "@bezel/plugins/providers/contract"
import { Skills } from "@bezel/plugins/skills/contract"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { globalLayer, type GlobalOptions } from "./global.ts"
import { isTrusted, outsidePlugins, outsideSources, userPluginFolder } from "./outside-plugins.ts"

export interface LocationOptions extends GlobalOptions {
  /** For the built-in plugins. */
  readonly plugins: BuiltinOptions
}

/** Which plugins a location has: read anew each time that one boots. */
const sessionPluginsLayer = (options: LocationOptions) =>
  Layer.effect(
    SessionPlugins,
    Effect.gen(function*() {
      const services = yield* Effect.context<AppPaths | Trust>()
      const packageFolder = userPluginFolder(Context.get(services, AppPaths))
      return SessionPlugins.of({
        forLocation: Effect.fnUntraced(function*(location, settings) {
          const trusted = yield* Effect.provide(isTrusted(location.directory, options.trust), services)
          const outside = yield* Effect.provide(outsidePlugins(location.directory, settings, trusted), services)
          return [
            ...builtinSessionPlugins(options.environment.version, {
              ...options.plugins,
              providers: { packageFolder, ...options.plugins.providers },
              agents: { ...options.plugins.agents, trusted },
              skills: { ...options.plugins.skills, trusted },
              commands: { ...options.plugins.commands, trusted }
            }),
            ...outsideSources("session", outside)
          ]
        })
      })
    })
  )

/** The global tier with the plugins of its locations. */
export const hostLayer = (options: LocationOptions) =>
  Layer.provideMerge(sessionPluginsLayer(options), globalLayer(options))

/** The same with the locations over it, each for itself. */
export const locationsLayer = (options: LocationOptions) => Layer.provideMerge(LocationMap.layer, hostLayer(options))

/** A booted location, as the commands of this process use it. */
export const openLocation = Effect.fn("openLocation")(function*(directory: string) {
  const place = yield* resolveLocation(directory)
  const settings = yield* Effect.flatMap(Settings, ({ forLocation }) => forLocation(place.directory))
  const map = yield* LocationMap
  const services = yield* map.get(place.directory, place.workspaceID)
  return {
    location: Context.get(services, Location),
    settings,
    store: yield* SessionStore,
    runtime: Context.get(services, SessionRuntime),
    models: Context.get(services, ProviderRegistry),
    /** Asks the providers which models they have; `unavailable` where no plugin does that. */
    refreshModels: Effect.flatMap(
      Context.get(services, ServiceDirectory).use(Models),
      ({ refresh }) => refresh()
    ),
    interactions: Context.get(services, InteractionBroker),
    tools: Context.get(services, ToolRegistry),
    agents: yield* Context.get(services, ServiceDirectory).useLocal(Agents),
    permissions: yield* Context.get(services, ServiceDirectory).useLocal(PermissionGate),
    mcp: yield* Context.get(services, ServiceDirectory).useLocal(McpConnections),
    skills: yield* Context.get(services, ServiceDirectory).useLocal(Skills),
    commands: yield* Context.get(services, ServiceDirectory).useLocal(PromptCommands),
    plugins: Context.get(services, PluginKernel).plugins
  }
})
