/**
 * Settings: `bezel.jsonc` of the user, of the project, and what the command line overrides, as one typed reading.
 *
 * Layers, later wins: the user's file (config folder), the project's files from the git root down to the location (in one
 * directory `bezel.jsonc` first, then `.bezel/bezel.jsonc`, which therefore wins), then `--set key=value`. A reading is a
 * snapshot: it does not change when a file does. While a project is not trusted, only the part of its files that each
 * key's `untrusted` rule lets through takes effect, and `skipped` names the rest.
 */
import * as Config from "effect/Config"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as path from "node:path"
import { SettingsChecker } from "./check.ts"
import { parseOverride, type ProjectFolder, readDocument, readProject, settingsFileName } from "./discover.ts"
import { settingsError } from "./document.ts"
import { SettingsError } from "./error.ts"
import type { SettingsKey } from "./key.ts"
import { AppPaths } from "./paths.ts"
import { readSettings } from "./read.ts"
import { Trust } from "./trust.ts"

/** Something that a project sets and that was left out because the project is not trusted. */
export interface SkippedSetting {
  /** Absolute path of the file. */
  readonly file: string
  readonly key: string
  /** True if a part of the section took effect. */
  readonly partly: boolean
}

export interface SettingsSource {
  readonly kind: "user" | "project" | "override"
  /** Absolute path of the file, or `--set`. */
  readonly file: string
  readonly trusted: boolean
  /** The sections it sets. */
  readonly keys: ReadonlyArray<string>
}

/** One snapshot of the merged settings. */
export interface SettingsReader {
  /** The section's value, or the key's default where no file sets it. Never fails: everything was checked when read. */
  readonly get: <A>(key: SettingsKey<A>) => A
  readonly skipped: ReadonlyArray<SkippedSetting>
  /** What was read, the earliest first. */
  readonly sources: ReadonlyArray<SettingsSource>
  /** What is odd but no fault, one sentence each: `{env:NAME}` of a variable that is not set, for example. */
  readonly warnings: ReadonlyArray<string>
}

export interface SettingsShape {
  /** The user's file and the overrides, without any project. */
  readonly user: Effect.Effect<SettingsReader, SettingsError>
  /** Everything that holds in a directory. Reads the files anew each time. */
  readonly forLocation: (directory: string) => Effect.Effect<SettingsReader, SettingsError>
  readonly keys: ReadonlyArray<SettingsKey.Any>
}

export interface SettingsOptions {
  /** All sections that the file may have. */
  readonly keys: ReadonlyArray<SettingsKey.Any>
  /** `key=value` each: a dotted key (`compaction.threshold`, quote a segment with dots: `a."b.c"`), a JSON value or text. */
  readonly overrides?: ReadonlyArray<string>
  /** Every project counts as trusted, for this run. */
  readonly trust?: boolean
}

/** Reads settings. Global. */
export class Settings extends Context.Service<Settings, SettingsShape>()("@bezel/core/settings/Settings") {
  /** `{env:NAME}` comes from the `ConfigProvider` that is current when a reading is made. */
  static readonly layer = (options: SettingsOptions): Layer.Layer<Settings, never, AppPaths | Trust> =>
    Layer.effect(
      Settings,
      Effect.gen(function*() {
        const paths = yield* AppPaths
        const trust = yield* Trust
        const checker = new SettingsChecker(options.keys)
        const userFile = path.join(paths.config, settingsFileName)

        const overrides = Effect.try({
          try: () => (options.overrides ?? []).map(parseOverride),
          catch: (cause) =>
            cause instanceof SettingsError
              ? cause
              : settingsError("syntax", { file: "--set", line: 0, path: [] }, "expected key=value")
        })

        const read = Effect.fnUntraced(function*(folders: ReadonlyArray<ProjectFolder>) {
          // A record that cannot be read trusts nothing.
          const status = yield* Effect.catch(trust.statusOf(folders), (error) => Effect.succeed(error))
          const warning = "message" in status ? [`${status.message}; this project counts as not trusted`] : []
          const reader = yield* readSettings(checker, {
            user: yield* readDocument(userFile),
            project: folders.flatMap((folder) => folder.documents),
            projectTrusted: options.trust === true || (!("message" in status) && status.status === "trusted"),
            overrides: yield* overrides,
            variable
          })
          return options.trust === true || warning.length === 0
            ? reader
            : { ...reader, warnings: [...reader.warnings, ...warning] }
        })

        return Settings.of({
          keys: options.keys,
          user: Effect.withSpan(Effect.suspend(() => read([])), "Settings.user"),
          forLocation: Effect.fn("Settings.forLocation")(function*(directory: string) {
            return yield* read(yield* readProject(directory, userFile))
          })
        })
      })
    )
}

/** A variable of the environment; `null` if it is not set or its name is not one. */
const variable = (name: string): Effect.Effect<string | null> =>
  Effect.gen(function*() {
    const value = yield* Config.option(Config.String(name))
    return Option.getOrNull(value)
  }).pipe(Effect.catch(() => Effect.succeed(null)))
