/**
 * Plugins from outside: packages and files that settings name, files in `plugins/` of the user's config folder, and files in
 * `.bezel/plugins/` of a project that is trusted.
 *
 * Each is imported with our own `effect` and `@bezel/*` (see `plugin-modules.ts`). One that
 * does not load takes part in the boot as a plugin whose loading fails, so that it is listed with its error and nothing else
 * changes. The same file reached twice is one plugin.
 */
import type { Facets, HostContexts, HostName, Plugin } from "@bezel/core/host"
import type { JsonValue } from "@bezel/core/json"
import type { ManifestEntry, PluginSource } from "@bezel/core/kernel"
import { AppPaths, type SettingsReader, Trust } from "@bezel/core/settings"
import { PluginsSetting } from "@bezel/plugins/settings"
import * as Effect from "effect/Effect"
import { readdir, realpath, stat } from "node:fs/promises"
import { createRequire } from "node:module"
import { basename, join } from "node:path"
import { pathToFileURL } from "node:url"
import { nextGeneration, sharePluginModules } from "../plugin-modules.ts"

/** One plugin that was found, loaded or not. */
export interface OutsidePlugin {
  /** What the person wrote or the path that it was found under. */
  readonly source: string
  readonly entry: ManifestEntry
  readonly plugin: Plugin | null
  /** Why it could not be loaded. */
  readonly error: string | null
  /** From its file as that is now. */
  readonly reload: Effect.Effect<OutsidePlugin>
}

interface Wanted {
  readonly source: string
  readonly options: JsonValue | undefined
}

const loadLimit = "10 seconds"

const isPluginFile = (name: string): boolean => /\.(ts|mts|js|mjs)$/.test(name) && !/\.(d|test)\.m?ts$/.test(name)

/** Plugin files directly in a folder, and folders in it that have an `index`. */
async function filesIn(folder: string): Promise<ReadonlyArray<string>> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => [])
  const names = entries.filter((entry) => entry.name !== "node_modules" && !entry.name.startsWith(".")).map((entry) =>
    entry.name
  ).sort()
  const found = await Promise.all(names.map(async (name) => {
    const path = join(folder, name)
    const kind = await stat(path).catch(() => null)
    if (kind?.isFile()) return isPluginFile(name) ? [path] : []
    if (!kind?.isDirectory()) return []
    const index = (await readdir(path).catch(() => [])).find((file) => /^index\.(ts|mts|js|mjs)$/.test(file))
    return index === undefined ? [] : [join(path, index)]
  }))
  return found.flat()
}

/** The file behind a path or the name of a package, which is looked for in the user's plugin folder first. */
function fileOf(source: string, folders: ReadonlyArray<string>): string {
  if (source.startsWith("/")) return source
  for (const folder of folders) {
    try {
      return createRequire(join(folder, "plugin.js")).resolve(source)
    } catch {
      // The next folder may have it.
    }
  }
  throw new Error(`there is no package "${source}" in ${folders.join(" or ")}`)
}

const isPlugin = (value: unknown): value is Plugin =>
  typeof value === "object" && value !== null && "id" in value && typeof value.id === "string"

const messageOf = (error: unknown): string =>
  (error instanceof Error ? error.message : String(error)).split("\n", 1)[0] ?? ""

async function importPlugin(file: string, again: boolean): Promise<Plugin> {
  sharePluginModules()
  const module: { readonly default?: unknown } = await import(again ? nextGeneration(file) : pathToFileURL(file).href)
  if (!isPlugin(module.default)) throw new Error("its default export is not what Plugin.define gives")
  return module.default
}

const load = (wanted: Wanted, file: string, again = false): Effect.Effect<OutsidePlugin> =>
  Effect.tryPromise({ try: () => importPlugin(file, again), catch: messageOf }).pipe(
    Effect.timeoutOrElse({ duration: loadLimit, orElse: () => Effect.fail("loading it took longer than 10 seconds") }),
    Effect.match({
      onSuccess: (plugin): OutsidePlugin => ({
        source: wanted.source,
        plugin,
        error: null,
        reload: load(wanted, file, true),
        entry: {
          id: plugin.id,
          ...(plugin.version === undefined ? {} : { version: plugin.version }),
          ...(wanted.options === undefined ? {} : { options: wanted.options })
        }
      }),
      onFailure: (error) => failedPlugin(wanted.source, error, load(wanted, file, true))
    })
  )

const failedPlugin = (source: string, error: string, reload?: Effect.Effect<OutsidePlugin>): OutsidePlugin => ({
  source,
  plugin: null,
  error: `${source}: ${error}`,
  reload: reload ?? Effect.sync(() => failedPlugin(source, error)),
  entry: { id: basename(source).replace(/[^A-Za-z0-9._-]/g, "-").replace(/^[^A-Za-z0-9]+/, "") || "plugin" }
})

/** All plugins from outside for one location, in the order in which they stand behind the built-in ones. */
export const outsidePlugins = Effect.fn("outsidePlugins")(
  function*(directory: string, settings: SettingsReader, trusted: boolean) {
    const paths = yield* AppPaths
    const userFolder = join(paths.config, "plugins")
    const named = settings.get(PluginsSetting).flatMap((item): ReadonlyArray<Wanted> =>
      typeof item === "string"
        ? [{ source: item, options: undefined }]
        : item.enabled === false
        ? []
        : [{ source: item.source, options: item.options }]
    )
    const projectFolder = join(directory, ".bezel", "plugins")
    const inFolders = yield* Effect.promise(() =>
      Promise.all([filesIn(userFolder), trusted ? filesIn(projectFolder) : []])
    )
    const wanted = [...named, ...inFolders.flat().map((source): Wanted => ({ source, options: undefined }))]
    const plugins: Array<OutsidePlugin> = []
    const files = new Set<string>()
    for (const item of wanted) {
      const file = yield* Effect.tryPromise({
        try: () => realpath(fileOf(item.source, [userFolder, directory])),
        catch: (error) =>
          error instanceof Error && "code" in error && error.code === "ENOENT"
            ? "the file does not exist"
            : messageOf(error)
      }).pipe(Effect.match({ onSuccess: (path) => ({ path }), onFailure: (error) => ({ error }) }))
      if ("error" in file) plugins.push(failedPlugin(item.source, file.error))
      else if (!files.has(file.path)) {
        files.add(file.path)
        plugins.push(yield* load(item, file.path))
      }
    }
    return withUniqueIDs(plugins)
  }
)

/** Two plugins of one id: the first is used, the second is told to have failed. */
function withUniqueIDs(plugins: ReadonlyArray<OutsidePlugin>): ReadonlyArray<OutsidePlugin> {
  const taken = new Map<string, string>()
  return plugins.map((plugin, index) => {
    const { id } = plugin.entry
    const before = taken.get(id)
    if (before === undefined) {
      taken.set(id, plugin.source)
      return plugin
    }
    const other = plugin.plugin === null
      ? plugin
      : failedPlugin(plugin.source, `its id "${id}" is taken by ${before}`)
    return { ...other, entry: { id: `${other.entry.id}-${index + 1}` } }
  })
}

/** Whether a location's project counts as trusted. */
export const isTrusted = Effect.fn("isTrusted")(function*(directory: string, trustAll: boolean) {
  if (trustAll) return true
  const trust = yield* Trust
  return yield* Effect.match(trust.status(directory), {
    onSuccess: ({ status }) => status === "trusted",
    onFailure: () => false
  })
})

/** The plugins' facets for one host. */
export const outsideSources = <Host extends HostName>(
  host: Host,
  plugins: ReadonlyArray<OutsidePlugin>
): ReadonlyArray<PluginSource<HostContexts[Host]>> =>
  plugins.map((outside) => ({
    entry: outside.entry,
    load: facetOf(host, outside),
    reload: Effect.flatMap(outside.reload, (again) =>
      Effect.map(facetOf(host, again), (facet) => ({ entry: again.entry, facet })))
  }))

const facetOf = <Host extends HostName>(
  host: Host,
  { error, plugin }: OutsidePlugin
): Effect.Effect<Facets[Host], Error> => {
  if (plugin === null) return Effect.fail(new Error(error ?? "it could not be loaded"))
  const facets: Facets = plugin
  return Effect.succeed(facets[host])
}
