/**
 * Where Bezel keeps its files: four folders of this user, by the XDG conventions.
 *
 * `BEZEL_DATA_DIR`, `BEZEL_CONFIG_DIR`, `BEZEL_STATE_DIR` and `BEZEL_CACHE_DIR` name a folder directly; else
 * `XDG_DATA_HOME` and its siblings, with `bezel` below them; else `~/.local/share/bezel`, `~/.config/bezel`,
 * `~/.local/state/bezel`, `~/.cache/bezel`. Nothing is created before somebody needs it; what is created is 0700.
 */
import * as Config from "effect/Config"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as os from "node:os"
import * as path from "node:path"
import { privateFolder } from "../location/index.ts"
import { AppPathsError } from "./error.ts"

export type AppFolder = "data" | "config" | "state" | "cache"

export interface AppPathsShape {
  /** Sessions and their artifacts. Absolute, like all of these. */
  readonly data: string
  /** `bezel.jsonc`, `AGENTS.md`, `plugins/`. */
  readonly config: string
  /** Logs, trusted folders, tokens: what this machine remembers. */
  readonly state: string
  /** What can be thrown away. */
  readonly cache: string
  /** Path of a folder, created (0700, parents too) if it is not there. Segments go below it and may not leave it. */
  readonly ensure: (folder: AppFolder, ...segments: ReadonlyArray<string>) => Effect.Effect<string, AppPathsError>
}

const xdg: Record<AppFolder, { readonly own: string; readonly base: string; readonly home: ReadonlyArray<string> }> = {
  data: { own: "BEZEL_DATA_DIR", base: "XDG_DATA_HOME", home: [".local", "share"] },
  config: { own: "BEZEL_CONFIG_DIR", base: "XDG_CONFIG_HOME", home: [".config"] },
  state: { own: "BEZEL_STATE_DIR", base: "XDG_STATE_HOME", home: [".local", "state"] },
  cache: { own: "BEZEL_CACHE_DIR", base: "XDG_CACHE_HOME", home: [".cache"] }
}

/** An environment variable; set but empty counts as absent. */
const variable = (name: string) =>
  Config.option(Config.String(name)).pipe(
    Config.map((value) => Option.isSome(value) && value.value !== "" ? value.value : null)
  )

/** What the system's list of users says, for `os.homedir()` believes a `HOME` that is empty or relative. */
const accountHome = Effect.try({
  try: () => os.userInfo().homedir,
  catch: () =>
    new AppPathsError({
      path: "",
      message: "This user has no home folder: set HOME to a folder where Bezel can keep its files."
    })
})

const folderOf = Effect.fnUntraced(function*(folder: AppFolder) {
  const names = xdg[folder]
  const own = yield* variable(names.own)
  if (own !== null) return path.resolve(own)
  // The XDG specification: a relative path is invalid and to be ignored.
  const base = yield* variable(names.base)
  if (base !== null && path.isAbsolute(base)) return path.join(base, "bezel")
  const home = yield* variable("HOME")
  return path.join(home !== null && path.isAbsolute(home) ? home : yield* accountHome, ...names.home, "bezel")
})

const reason = (cause: unknown): string =>
  cause instanceof Error && "code" in cause ? String(cause.code) : String(cause)

const make = (folders: Record<AppFolder, string>): AppPathsShape => ({
  ...folders,
  ensure: Effect.fn("AppPaths.ensure")(function*(folder: AppFolder, ...segments: ReadonlyArray<string>) {
    const target = path.join(folders[folder], ...segments)
    if (target !== folders[folder] && !target.startsWith(folders[folder] + path.sep)) {
      return yield* new AppPathsError({ path: target, message: `${target} lies outside ${folders[folder]}` })
    }
    yield* Effect.try({
      try: () => privateFolder(target),
      catch: (cause) =>
        new AppPathsError({ path: target, message: `Cannot create the folder ${target}: ${reason(cause)}` })
    })
    return target
  })
})

/** The folders of this user. Global. */
export class AppPaths extends Context.Service<AppPaths, AppPathsShape>()("@bezel/core/settings/AppPaths") {
  /** From the environment, as the current `ConfigProvider` gives it. */
  static readonly layer = Layer.effect(
    AppPaths,
    Effect.gen(function*() {
      return AppPaths.of(make({
        data: yield* folderOf("data"),
        config: yield* folderOf("config"),
        state: yield* folderOf("state"),
        cache: yield* folderOf("cache")
      }))
    })
  )

  /** All four below one directory, for tests and for hosts that keep everything in one place. */
  static readonly layerTest = (directory: string) =>
    Layer.succeed(
      AppPaths,
      AppPaths.of(make({
        data: path.join(directory, "data"),
        config: path.join(directory, "config"),
        state: path.join(directory, "state"),
        cache: path.join(directory, "cache")
      }))
    )
}
