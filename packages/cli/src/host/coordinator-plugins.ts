/**
 * The plugins of a coordinator: the built-in ones, behind them the user's own from outside.
 *
 * A coordinator has authority over the sessions of all places, so what a project brings has no part in it, trusted or not:
 * only the user's settings and plugin folder count.
 */
import { AppPaths, type SettingsReader } from "@bezel/core/settings"
import { builtinCoordinatorPlugins } from "@bezel/plugins"
import * as Effect from "effect/Effect"
import { outsidePlugins, outsideSources, userPluginFolder } from "./outside-plugins.ts"

/** By the user's settings. */
export const coordinatorPlugins = (version: string) => (user: SettingsReader) =>
  Effect.gen(function*() {
    const outside = yield* outsidePlugins(userPluginFolder(yield* AppPaths), user, false)
    return [...builtinCoordinatorPlugins(version), ...outsideSources("coordinator", outside)]
  }).pipe(Effect.provide(AppPaths.layer))
