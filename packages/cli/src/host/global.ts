/**
 * The global tier of the `bezel` process: folders, settings, sessions. What needs no location is answered with this alone.
 */
import { expireSessions, SessionStore } from "@bezel/core/session"
import { AppPaths, Settings, Trust } from "@bezel/core/settings"
import { SessionStorage } from "@bezel/core/storage"
import { builtinSettingsKeys, type SessionSettings, SessionsSetting } from "@bezel/plugins/settings"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import { statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
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
    const { keepDays, ...how } = kept
    return SessionStore.layer({ directory: data, version: environment.version }).pipe(
      Layer.provideMerge(SessionStorage.layer({ directory: data, ...how })),
      (sessions) =>
        keepDays === undefined
          ? sessions
          : Layer.provideMerge(Layer.effectDiscard(expireDaily(data, keepDays)), sessions)
    )
  }))

/** When sessions were last looked through for old ones; its time is the file's. */
const expiredFile = "expired"

/** Deletes old sessions beside the work, once a day at most, whichever process comes first. */
const expireDaily = (data: string, keepDays: number) =>
  Effect.gen(function*() {
    const store = yield* SessionStore
    const file = join(data, expiredFile)
    const once = Effect.gen(function*() {
      const isDue = yield* Effect.try(() => {
        const last = statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0
        if (Date.now() - last < 24 * 60 * 60 * 1_000) return false
        writeFileSync(file, "", { mode: 0o600 })
        return true
      })
      if (isDue) yield* expireSessions(store, keepDays)
    })
    const tried = Effect.catch(once, (error) => Effect.logWarning(`Old sessions were not deleted: ${error.message}`))
    // Not before what this process was called for has opened its session.
    yield* Effect.forkScoped(Effect.delay(Effect.repeat(tried, { schedule: Schedule.spaced("1 hour") }), "3 seconds"))
  })

/** All of it, with the log. */
export const globalLayer = (options: GlobalOptions) =>
  sessionsLayer(options).pipe(
    Layer.provideMerge(logLayer({ verbose: options.environment.verbose, onWarning: options.onWarning })),
    Layer.provideMerge(settingsLayer(options))
  )
