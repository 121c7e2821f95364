/**
 * The global tier of the `bezel` process: folders, settings, sessions. What needs no location is answered with this alone.
 */
import { SessionStore } from "@bezel/core/session"
import { AppPaths, Settings, Trust } from "@bezel/core/settings"
import { SessionStorage } from "@bezel/core/storage"
import { builtinSettingsKeys, type SessionSettings, SessionsSetting } from "@bezel/plugins/settings"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Environment } from "../arguments/command.ts"
import { logLayer } from "./log.ts"

export interface GlobalOptions {
  readonly environment: Environment
  /** Every project counts as trusted, for this run. */
  readonly trust: boolean
  /** Is told what is written to the log as a warning or worse. */
  readonly onWarning?: ((message: string) => void) | undefined
}

/** Folders, trust and settings. */
export const settingsLayer = ({ environment, trust }: GlobalOptions) =>
  Settings.layer({ keys: builtinSettingsKeys, overrides: environment.set, trust }).pipe(
    Layer.provideMerge(Trust.layer),
    Layer.provideMerge(AppPaths.layer)
  )

/** The sessions of this user, in the data folder. */
export const sessionsLayer = ({ environment }: GlobalOptions) =>
  Layer.unwrap(Effect.gen(function*() {
    const { data } = yield* AppPaths
    // A fault of the settings is told by whatever needs them; sessions can be listed all the same.
    const kept = yield* Effect.flatMap(Settings, ({ user }) => user).pipe(
      Effect.map((settings) => settings.get(SessionsSetting)),
      Effect.orElseSucceed((): SessionSettings => ({}))
    )
    return SessionStore.layer({ directory: data, version: environment.version }).pipe(
      Layer.provideMerge(SessionStorage.layer({ directory: data, ...kept }))
    )
  }))

/** All of it, with the log. */
export const globalLayer = (options: GlobalOptions) =>
  sessionsLayer(options).pipe(
    Layer.provideMerge(logLayer({ verbose: options.environment.verbose, onWarning: options.onWarning })),
    Layer.provideMerge(settingsLayer(options))
  )
