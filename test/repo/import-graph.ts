/**
 * The import graph of `packages/` as it is on disk, read with a parser, and the rules that it has to keep.
 *
 * An import is `value` when it exists at run time and `type` when the type stripper removes it whole. Dynamic imports with a
 * literal specifier count as value imports that are `lazy`. `violations` gives one plain sentence per broken rule.
 */
import { readdirSync, readFileSync } from "node:fs"
import { dirname, join, relative, resolve } from "node:path"
import { parseSync } from "oxc-parser"

export interface Import {
  readonly specifier: string
  readonly kind: "value" | "type"
  readonly lazy: boolean
  /** `import * as name` or `export * from`. */
  readonly namespace: boolean
}

/** Imports by file, relative to the root, with `/` as separator. */
export type Sources = ReadonlyMap<string, ReadonlyArray<Import>>

export interface Manifests {
  readonly [packageFolder: string]: {
    readonly name: string
    readonly dependencies: ReadonlyArray<string>
    /** Public paths (`"."`, `"./json"`, `"./*"`) with the file behind each. */
    readonly exports: { readonly [path: string]: string }
  }
}

export function parseImports(file: string, source: string): ReadonlyArray<Import> {
  const { module, errors } = parseSync(file, source)
  if (errors.length > 0) throw new Error(`${file} does not parse: ${errors[0]?.message}`)
  const text = (start: number, length: number) => source.slice(start, start + length)
  return [
    ...module.staticImports.map((item): Import => ({
      specifier: item.moduleRequest.value,
      kind: /^import\s+type\b/.test(text(item.start, 16)) ? "type" : "value",
      lazy: false,
      namespace: item.entries.some((entry) => entry.importName.kind === "NamespaceObject")
    })),
    ...module.staticExports.flatMap((item) => {
      const from = item.entries.find((entry) => entry.moduleRequest !== null)
      return from?.moduleRequest == null ? [] : [{
        specifier: from.moduleRequest.value,
        kind: /^export\s+type\b/.test(text(item.start, 16)) ? "type" as const : "value" as const,
        lazy: false,
        namespace: from.importName.kind === "AllButDefault" || from.importName.kind === "All"
      }]
    }),
    ...module.dynamicImports.flatMap((item): ReadonlyArray<Import> => {
      const literal = /^["'`]([^"'`$]+)["'`]$/.exec(source.slice(item.moduleRequest.start, item.moduleRequest.end))
      return literal?.[1] === undefined ? [] : [{ specifier: literal[1], kind: "value", lazy: true, namespace: true }]
    })
  ]
}

export function readSources(root: string): Sources {
  const sources = new Map<string, ReadonlyArray<Import>>()
  for (const entry of readdirSync(join(root, "packages"), { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    const file = relative(root, path).replaceAll("\\", "/")
    if (!entry.isFile() || !/^packages\/\w+\/src\/.*\.ts$/.test(file)) continue
    sources.set(file, parseImports(file, readFileSync(path, "utf8")))
  }
  return sources
}

export function readManifests(root: string): Manifests {
  const manifests: { [folder: string]: Manifests[string] } = {}
  for (const folder of readdirSync(join(root, "packages"))) {
    const read = JSON.parse(readFileSync(join(root, "packages", folder, "package.json"), "utf8"))
    manifests[folder] = {
      name: read.name,
      dependencies: Object.keys(read.dependencies ?? {}),
      exports: read.exports ?? {}
    }
  }
  return manifests
}

/** The file behind a specifier, when it is one of ours. */
export function resolveImport(from: string, specifier: string, manifests: Manifests): string | null {
  if (specifier.startsWith(".")) return relative("/", resolve("/", dirname(from), specifier))
  for (const [folder, manifest] of Object.entries(manifests)) {
    if (specifier !== manifest.name && !specifier.startsWith(`${manifest.name}/`)) continue
    const path = `.${specifier.slice(manifest.name.length)}`
    const exact = manifest.exports[path]
    if (exact !== undefined) return join("packages", folder, exact)
    for (const [pattern, file] of Object.entries(manifest.exports)) {
      const [before = "", after] = pattern.split("*")
      if (after === undefined || !path.startsWith(before) || !path.endsWith(after)) continue
      return join("packages", folder, file.replace("*", path.slice(before.length, path.length - after.length)))
    }
  }
  return null
}

const packageOf = (file: string) => file.split("/")[1] ?? ""
const isPackage = (specifier: string) => !specifier.startsWith(".") && !specifier.startsWith("node:")
const packageName = (specifier: string) => specifier.split("/").slice(0, specifier.startsWith("@") ? 2 : 1).join("/")

/** Which packages each package may import. `plugins` may import `tui` from `tui.ts` files only (see below). */
const arrows: { readonly [folder: string]: ReadonlyArray<string> } = {
  core: [],
  sdk: [],
  tui: ["core"],
  plugins: ["core", "tui"],
  server: ["core", "sdk"],
  cli: ["core", "plugins", "sdk", "server", "tui"]
}

/** Folders of core; one may import those before it. */
const coreOrder = [
  "json",
  "location",
  "contribution",
  "kernel",
  "service",
  "rpc",
  "storage",
  "settings",
  "model",
  "tool",
  "harness",
  "turn",
  "session",
  "host",
  "testing"
]
/** These stand alone: nothing of core but what is named. */
const standAlone: { readonly [folder: string]: ReadonlyArray<string> } = { contribution: [], kernel: ["json"] }

/** A stored entry holds messages: storage names their types, and nothing else of the folders above it. */
const typesFromAbove: { readonly [folder: string]: ReadonlyArray<string> } = { storage: ["model"] }

/** Folders of core that a contract may import at run time; of all of core it may import types. */
const contractFolders = ["json", "service", "settings"]

/**
 * Modules of core that hold only types, schemas and tokens of their folder. A presentation loads them by themselves, so that
 * it does not load what stands behind the folder's index.
 */
const contractModules = [
  "harness/api.ts",
  "harness/view.ts",
  "session/identity.ts",
  "session/revert.ts",
  "kernel/status.ts",
  "settings/error.ts",
  "host/context.ts",
  "host/conversation.ts"
]
const isContractModule = (file: string): boolean => contractModules.some((name) => file === `packages/core/src/${name}`)

/** Folders of core that run a session; no presentation may reach them at run time. */
const sessionFolders = ["storage", "harness", "turn", "session"]

export function violations(sources: Sources, manifests: Manifests): ReadonlyArray<string> {
  return [
    ...[...sources].flatMap(([file, imports]) => imports.flatMap((item) => importFaults(file, item, manifests))),
    ...presentationFaults(sources, manifests),
    ...terminalFaults(sources, manifests),
    ...circles(sources, manifests)
  ]
}

function importFaults(file: string, item: Import, manifests: Manifests): ReadonlyArray<string> {
  const faults: Array<string> = []
  const say = (rule: string) => faults.push(`${file} imports ${item.specifier}: ${rule}`)
  const folder = packageOf(file)
  const target = resolveImport(file, item.specifier, manifests)

  if (item.specifier === "effect") say("the barrel of Effect is slow to load; import effect/<Module>")
  if (item.specifier.startsWith("effect/") && !item.namespace && item.kind === "value") {
    say("import modules of Effect as namespaces")
  }
  if (isPackage(item.specifier)) {
    const name = packageName(item.specifier)
    if (name !== manifests[folder]?.name && manifests[folder]?.dependencies.includes(name) !== true) {
      say(`${name} is not among the dependencies of packages/${folder}`)
    }
  }
  if (target === null) return faults

  const to = packageOf(target)
  if (to === folder) {
    if (isPackage(item.specifier)) say("inside a package, imports are relative")
  } else {
    if (!isPackage(item.specifier)) say("between packages, imports go by the package's name")
    if (arrows[folder]?.includes(to) !== true) say(`packages/${folder} may not import packages/${to}`)
  }
  if (folder === "core" && to === "core") coreOrderFault(file, target, item.kind, say)
  if (folder === "plugins" && file.endsWith("/contract.ts")) {
    const allowed = to === "core"
      ? item.kind === "type" || contractFolders.includes(folderIn(target)) || isContractModule(target)
      : target.endsWith("/contract.ts")
    if (!allowed) say("a contract imports Effect and the contract modules of core only")
  }
  return faults
}

const folderIn = (file: string) => file.split("/")[3] ?? ""

function coreOrderFault(file: string, target: string, kind: Import["kind"], say: (rule: string) => void): void {
  const [from, to] = [folderIn(file), folderIn(target)]
  if (from === to || from.endsWith(".ts")) return
  if (!coreOrder.includes(from)) return say(`core/src/${from} has no place in the order of core's folders`)
  const alone = standAlone[from]
  if (alone !== undefined && !alone.includes(to)) return say(`core/src/${from} stands alone`)
  const typeFromAbove = kind === "type" && typesFromAbove[from]?.includes(to) === true
  if (coreOrder.indexOf(to) > coreOrder.indexOf(from) && !typeFromAbove) {
    say(`core/src/${from} comes before core/src/${to}`)
  } else if (!target.endsWith("/index.ts") && !isContractModule(target)) {
    say(`another folder is reached through its index.ts`)
  }
}

/** Modules that exist at run time once `entry` is loaded, each with the path of imports that leads to it. */
export function reachable(
  entry: string,
  sources: Sources,
  manifests: Manifests
): ReadonlyMap<string, ReadonlyArray<string>> {
  const paths = new Map<string, ReadonlyArray<string>>([[entry, [entry]]])
  for (const [file, path] of paths) {
    for (const item of sources.get(file) ?? []) {
      const target = item.kind === "value" ? resolveImport(file, item.specifier, manifests) : null
      if (target !== null && !paths.has(target)) paths.set(target, [...path, target])
    }
  }
  return paths
}

export const isPresentationEntry = (file: string) =>
  /^packages\/plugins\/src\/[^/]+\/(tui|web|contract)\.ts$/.test(file) || file === "packages/tui/src/index.ts"

const isSessionModule = (file: string) =>
  /^packages\/plugins\/src\/[^/]+\/(session|coordinator)\.ts$/.test(file) ||
  file.startsWith("packages/server/") ||
  (file.startsWith("packages/core/") && sessionFolders.includes(folderIn(file)) && !isContractModule(file))

function presentationFaults(sources: Sources, manifests: Manifests): ReadonlyArray<string> {
  return [...sources.keys()].filter(isPresentationEntry).flatMap((entry) =>
    [...reachable(entry, sources, manifests)]
      .filter(([file]) => isSessionModule(file))
      .slice(0, 1)
      .map(([, path]) => `${entry} reaches a module of the session host: ${path.join(" → ")}`)
  )
}

/** The terminal is for `tui.ts` of a plugin and for the files that only a `tui.ts` loads. */
function terminalFaults(sources: Sources, manifests: Manifests): ReadonlyArray<string> {
  const plugins = [...sources].filter(([file]) => packageOf(file) === "plugins")
  const importers = (target: string) =>
    plugins.filter(([file, imports]) =>
      imports.some((item) => !item.lazy && resolveImport(file, item.specifier, manifests) === target)
    )
      .map(([file]) => file)
  const isTerminal = (file: string, seen: ReadonlyArray<string> = []): boolean => {
    if (file.endsWith("/tui.ts")) return true
    const from = importers(file)
    return from.length > 0 && from.every((importer) => seen.includes(importer) || isTerminal(importer, [...seen, file]))
  }
  return plugins
    .filter(([, imports]) => imports.some((item) => packageName(item.specifier) === "@bezel/tui"))
    .filter(([file]) => !isTerminal(file))
    .map(([file]) =>
      `${file} imports @bezel/tui: only the tui.ts of a plugin may import the terminal, and what only it loads`
    )
}

/** Circles of imports that exist at run time when the modules load. */
function circles(sources: Sources, manifests: Manifests): ReadonlyArray<string> {
  const faults: Array<string> = []
  const done = new Set<string>()
  const visit = (file: string, path: ReadonlyArray<string>): void => {
    const at = path.indexOf(file)
    if (at >= 0) {
      faults.push(`a circle of imports: ${[...path.slice(at), file].join(" → ")}`)
      return
    }
    if (done.has(file)) return
    for (const item of sources.get(file) ?? []) {
      const target = item.kind === "value" && !item.lazy ? resolveImport(file, item.specifier, manifests) : null
      if (target !== null) visit(target, [...path, file])
    }
    done.add(file)
  }
  for (const file of sources.keys()) visit(file, [])
  return faults
}
