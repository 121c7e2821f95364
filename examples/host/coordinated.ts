/** The same host under a coordinator in this process: for features that know more than one folder. */
import { Plugin, SessionPlugins } from "@bezel/core/host"
import { SessionStore } from "@bezel/core/session"
import { AppPaths, Settings, Trust } from "@bezel/core/settings"
import { SessionStorage } from "@bezel/core/storage"
import { inlineLocations, Placement } from "@bezel/server"
import { Effect, Layer } from "effect"

/** The coordinator has the plugins' parts for it, and every location is its client. */
export const coordinatedLayer = (folder: string, plugins: ReadonlyArray<Plugin>) =>
  Placement.inline.pipe(
    Layer.provide(inlineLocations({ plugins: () => Effect.succeed(Plugin.sources("coordinator", plugins)) })),
    Layer.provide(SessionPlugins.layer(Plugin.sources("session", plugins))),
    Layer.provide(SessionStore.layer({ directory: folder, version: "example" })),
    Layer.provide(SessionStorage.layer({ directory: folder })),
    Layer.provide(Settings.layer({ keys: [] })),
    Layer.provide(Trust.layer),
    Layer.provide(AppPaths.layerTest(folder))
  )
