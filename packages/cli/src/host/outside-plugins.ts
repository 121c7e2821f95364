/**
 * Plugins from outside: packages and files that settings name, files in `plugins/` of the user's config folder, and files in
 * `.bezel/plugins/` of a project that is trusted.
 *
 * A file's default export is what `Plugin.define` gives. A package may do the same, or have an entry point for each kind of
 * host (`./session`, `./tui`, …), whose default export is the facet; then a host imports only its own. All are imported with
 * our own `effect` and `@bezel/*` (see `plugin-modules.ts`). One that does not load takes part in the boot as a plugin whose
 * loading fails, so that it is listed with its error and nothing else changes. The same one reached twice is one plugin.
 */
import type { Facets, HostContexts, HostName, Plugin } from "@bezel/core/host"
import type { JsonValue } from "@bezel/core/json"
import { ManifestEntry, type PluginSource } from "@bezel/core/kernel"
import {
  AppPaths,
  leadsOutOfProject,
  projectFolders,
  realPathWithin,
  type SettingsReader,
  Trust
} from "@bezel/core/settings"
import {
  entryFile,
  findPackage,
  type InstalledPackage,
  isProviderModule,
  packageName,
  readPackage
} from "@bezel/plugins/packages"
import { PluginsSetting } from "@bezel/plugins/settings"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { readdir, realpath, stat } from "node:fs/promises"
import { basename, join } from "node:path"
import { pathToFileURL } from "node:url"
import { nextGeneration, pluginFolder, sharePluginModules } from "../plugin-modules.ts"
import { rememberPlugin } from "./plugin-faults.ts"
import { tellIfSlow } from "./tell-if-slow.ts"

/** The kinds of host, and with that the entry points that a package can have. */
export const hostNames = ["session", "tui", "coordinator", "web"] as const

/** One plugin that was found, loaded or not. */
export interface OutsidePlugin {
  /** What the person wrote or the path that it was found under. */
  readonly source: string
  /** Real path of its file or of its package's folder. */
  readonly origin: string | null
  readonly entry: ManifestEntry
  /** The hosts that it has something for. */
  readonly hosts: ReadonlyArray<string>
  /** The package that it is from, if it is from one. */
  readonly package: InstalledPackage | null
  /** Why it could not be loaded. */
  readonly error: string | null
  /** Its part for a host; a package's entry point is imported by this. */
  readonly facet: <Host extends HostName>(host: Host) => Effect.Effect<Facets[Host], Error>
  /** From its file as that is now. */
  readonly reload: Effect.Effect<OutsidePlugin>
}

/** A plugin that was named again; it is loaded once. */
export interface Duplicate {
  readonly source: string
  /** The source under which it is loaded. */
  readonly of: string
}

interface Wanted {
  readonly source: string
  readonly options: JsonValue | undefined
  readonly grants: ReadonlyArray<string>
  readonly enabled: boolean
  /** Real path of the project that it must lie in, if it was only found there. */
  readonly root: string | null
}

/** How a plugin is wanted of which only the source was named. */
const plain = { options: undefined, grants: [], enabled: true, root: null }

/** What a source leads to: a file with a default export, or a package with an entry point for each host. */
interface Found {
  /** Real path; the same for two ways to one plugin. */
  readonly origin: string
  readonly file: string | null
  readonly package: InstalledPackage | null
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
    const index = await indexOf(path)
    return index === undefined ? [] : [join(path, index)]
  }))
  return found.flat()
}

const indexOf = async (folder: string): Promise<string | undefined> =>
  (await readdir(folder).catch(() => [])).find((file) => /^index\.(ts|mts|js|mjs)$/.test(file))

/** What is behind a path or the name of a package, which is looked for in the user's plugin folder first. */
async function find({ root, source }: Wanted, folders: ReadonlyArray<string>): Promise<Found> {
  if (source.startsWith("/")) {
    const path = root === null ? await realpath(source) : await realPathWithin(root, source)
    if (path === null) throw new Error(leadsOutOfProject)
    if (!(await stat(path)).isDirectory()) return { origin: path, file: path, package: null }
    const own = readPackage(path)
    if (own !== null) return inPackage(own, ".")
    const index = await indexOf(path)
    if (index === undefined) throw new Error("the folder has neither a package.json with a name nor an index file")
    return { origin: join(path, index), file: join(path, index), package: null }
  }
  const named = packageName(source)
  const found = named === null ? null : findPackage(named[0], folders)
  if (named === null || found === null) {
    throw new Error(
      `there is no package "${source}" in ${folders.join(" or ")}; bezel plugin add ${source} installs it`
    )
  }
  return inPackage(found, named[1])
}

/** A package with an entry point for any host is that; else its default export counts. */
function inPackage(found: InstalledPackage, path: string): Found {
  if (path === "." && entryPoints(found).length > 0) return { origin: found.folder, file: null, package: found }
  const file = entryFile(found, path)
  if (file === null) {
    throw new Error(
      `the package has no entry point: its package.json exports none of ${
        hostNames.map((host) => `"./${host}"`).join(", ")
      } and no "${path}"`
    )
  }
  return { origin: path === "." ? found.folder : file, file, package: found }
}

/** Hosts that the package's `exports` name. An export whose file is missing counts: importing it tells what is wrong. */
const entryPoints = (found: InstalledPackage): ReadonlyArray<HostName> =>
  hostNames.filter((host): host is HostName & typeof host => {
    try {
      return entryFile(found, `./${host}`) !== null
    } catch {
      return true
    }
  })

const isPlugin = (value: unknown): value is Plugin =>
  typeof value === "object" && value !== null && "id" in value && typeof value.id === "string"

/** What is wrong with how a plugin calls itself, or `null`. */
const identityFault = ({ id, version }: { readonly id: string; readonly version?: unknown }): string | null => {
  if (!isPluginID(id)) {
    return `its id ${
      JSON.stringify(id)
    } is none: letters, digits, "@", "/", ".", "_" and "-", with a letter, a digit or "@" first`
  }
  if (id.startsWith("bezel.")) return `its id "${id}" is of a kind that only built-in plugins have; give it another one`
  return version === undefined || typeof version === "string" && version !== ""
    ? null
    : `its version is ${JSON.stringify(version)}, where a text such as "1.0.0" belongs`
}

const isPluginID = Schema.is(ManifestEntry.fields.id)

const isFacets = (value: object): value is Facets =>
  Object.values(value).every((facet) => facet === undefined || typeof facet === "function")

const messageOf = (error: unknown): string =>
  error instanceof Error && "code" in error && error.code === "ENOENT" && "syscall" in error && error.syscall !== "open"
    ? "the file does not exist"
    : (error instanceof Error ? error.message : String(error)).split("\n", 1)[0] ?? ""

async function importDefault(file: string, again: boolean, folder?: string): Promise<unknown> {
  sharePluginModules()
  rememberPlugin(file, folder ?? pluginFolder(file))
  const module: { readonly default?: unknown } = await import(
    again ? nextGeneration(file, folder) : pathToFileURL(file).href
  )
  return module.default
}

const loading = <A>(run: () => Promise<A>): Effect.Effect<A, string> =>
  Effect.tryPromise({ try: run, catch: messageOf }).pipe(
    Effect.timeoutOrElse({ duration: loadLimit, orElse: () => Effect.fail("loading it took longer than 10 seconds") })
  )

/** What a facet gives must be an Effect of ours: a plugin with a copy of its own in it gives something else. */
const ours = (host: string, facet: Function) => (context: unknown): unknown => {
  const made: unknown = Reflect.apply(facet, undefined, [context])
  if (Effect.isEffect(made)) return made
  const isObject = typeof made === "object" && made !== null && !(made instanceof Promise)
  return Effect.fail(
    new Error(
      isObject
        ? `its ${host} facet did not give an Effect of the "effect" that this program runs with; it may have a copy of its own inside`
        : `its ${host} facet gave ${
          made instanceof Promise ? "a Promise" : String(made)
        } and not an Effect; write it with Effect.fn, or give what Effect.gen makes`
    )
  )
}

/** The one facet of a host, checked to be one. */
function asFacet<Host extends HostName>(host: Host, value: unknown): Facets[Host] {
  if (value !== undefined && typeof value !== "function") {
    throw new Error(`its part for ${host} is not a function of the host's context`)
  }
  const facets: object = value === undefined ? {} : { [host]: ours(host, value) }
  if (!isFacets(facets)) throw new Error(`its part for ${host} is not a facet`)
  return facets[host]
}

const load = (wanted: Wanted, found: Found, again = false): Effect.Effect<OutsidePlugin> => {
  const reload = Effect.suspend(() => load(wanted, found, true))
  const common = (id: string, version: string | null) => ({
    source: wanted.source,
    origin: found.origin,
    package: found.package,
    error: null,
    reload,
    entry: {
      id,
      ...(found.package === null ? {} : { package: found.package.name }),
      ...(version === null ? {} : { version }),
      ...(wanted.options === undefined ? {} : { options: wanted.options }),
      ...(wanted.grants.length === 0 ? {} : { grants: wanted.grants })
    }
  })
  const { file, package: inside } = found
  if (file === null && inside !== null) {
    // What the package is now: a reload may be there for its new version.
    const now = readPackage(inside.folder) ?? inside
    const hosts = entryPoints(now)
    return Effect.succeed({
      ...common(now.name, now.version),
      hosts,
      facet: (host) =>
        loading(async () => {
          const entry = entryFile(now, `./${host}`)
          if (entry === null) return asFacet(host, undefined)
          const value = await importDefault(entry, again, now.folder)
          if (typeof value !== "function") throw new Error(`the default export of its "./${host}" is not a facet`)
          return asFacet(host, value)
        }).pipe(Effect.mapError((error) => new Error(`${wanted.source}: ${error}`)))
    })
  }
  return loading(async () => {
    const value = await importDefault(file ?? found.origin, again, inside?.folder)
    if (!isPlugin(value)) throw new Error("its default export is not what Plugin.define gives")
    const fault = identityFault(value)
    if (fault !== null) throw new Error(fault)
    return value
  }).pipe(
    Effect.match({
      onSuccess: (plugin): OutsidePlugin => ({
        ...common(plugin.id, plugin.version ?? inside?.version ?? null),
        hosts: hostNames.filter((host) => typeof Reflect.get(plugin, host) === "function"),
        facet: (host) =>
          Effect.try({
            try: () => asFacet(host, Reflect.get(plugin, host)),
            catch: (error) => new Error(`${wanted.source}: ${messageOf(error)}`)
          })
      }),
      onFailure: (error) => failedPlugin(wanted.source, error, found, reload)
    })
  )
}

const failedPlugin = (
  source: string,
  error: string,
  found: Found | null,
  reload?: Effect.Effect<OutsidePlugin>
): OutsidePlugin => ({
  source,
  origin: found?.origin ?? null,
  package: found?.package ?? null,
  hosts: [],
  error: `${source}: ${error}`,
  facet: () => Effect.fail(new Error(`${source}: ${error}`)),
  reload: reload ?? Effect.sync(() => failedPlugin(source, error, found)),
  entry: { id: basename(source).replace(/[^A-Za-z0-9._-]/g, "-").replace(/^[^A-Za-z0-9]+/, "") || "plugin" }
})

/** What a package is good for; fails with a sentence if it is neither a plugin nor a provider of models. */
export const inspectPackage = (
  found: InstalledPackage
): Effect.Effect<
  { readonly type: "plugin"; readonly hosts: ReadonlyArray<string> } | { readonly type: "provider" },
  string
> =>
  loading(async () => {
    const hosts = entryPoints(found)
    for (const host of hosts) entryFile(found, `./${host}`)
    if (hosts.length > 0) return { type: "plugin", hosts }
    const { file } = inPackage(found, ".")
    sharePluginModules()
    const module: { readonly default?: unknown } = await import(pathToFileURL(file ?? found.folder).href)
    const value = module.default
    if (isPlugin(value)) {
      return { type: "plugin", hosts: hostNames.filter((host) => typeof Reflect.get(value, host) === "function") }
    }
    if (isProviderModule(module)) return { type: "provider" }
    throw new Error(
      "it is no plugin (no entry point for a host, and its default export is not what Plugin.define gives)"
    )
  })

/** Where packages of this user are installed, in a `node_modules`, and files of this user are found. */
export const userPluginFolder = (paths: { readonly config: string }): string => join(paths.config, "plugins")

/** All plugins from outside for one location, in the order in which they stand behind the built-in ones. */
export const outsidePlugins = (directory: string, settings: SettingsReader, trusted: boolean) =>
  Effect.map(findOutsidePlugins(directory, settings, trusted), ({ plugins }) => plugins)

/** The same, with what was named more than once. */
export const findOutsidePlugins = Effect.fn("findOutsidePlugins")(
  function*(directory: string, settings: SettingsReader, trusted: boolean) {
    const userFolder = userPluginFolder(yield* AppPaths)
    const named = settings.get(PluginsSetting).map((item): Wanted =>
      typeof item === "string"
        ? { ...plain, source: item }
        : { ...plain, ...item }
    )
    const projects = trusted ? yield* projectFolders(directory) : []
    const inFolders = yield* Effect.promise(async () => {
      const root = projects[0] === undefined ? null : await realpath(projects[0]).catch(() => directory)
      const folders = [
        { folder: userFolder, root: null },
        ...projects.map((project) => ({ folder: join(project, ".bezel", "plugins"), root }))
      ]
      return Promise.all(
        folders.map(async ({ folder, root }) =>
          (await filesIn(folder)).map((source): Wanted => ({ ...plain, source, root }))
        )
      )
    })
    const wanted = [...named, ...inFolders.flat()]
    const plugins: Array<OutsidePlugin> = []
    const duplicates: Array<Duplicate> = []
    const seen = new Map<string, string>()
    for (const item of wanted) {
      const found = yield* loading(() => find(item, [userFolder, directory])).pipe(
        Effect.match({ onSuccess: (value) => value, onFailure: (error) => ({ error }) })
      )
      if ("error" in found) {
        if (item.enabled) plugins.push(failedPlugin(item.source, found.error, null))
        continue
      }
      const before = seen.get(found.origin)
      if (before !== undefined) {
        duplicates.push({ source: item.source, of: before })
        continue
      }
      seen.set(found.origin, item.source)
      if (item.enabled) plugins.push(yield* tellIfSlow(`plugin ${item.source} to load`, load(item, found)))
    }
    return { plugins: withUniqueIDs(plugins), duplicates }
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
    const other = plugin.error !== null
      ? plugin
      : failedPlugin(
        plugin.source,
        `its id "${id}" is taken by ${before}`,
        plugin.origin === null ? null : {
          origin: plugin.origin,
          file: null,
          package: plugin.package
        }
      )
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
    load: outside.facet(host),
    reload: Effect.flatMap(outside.reload, (again) =>
      Effect.map(again.facet(host), (facet) => ({ entry: again.entry, facet })))
  }))
