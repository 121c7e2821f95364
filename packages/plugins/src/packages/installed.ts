/**
 * Packages from npm that a person has installed beside the program: where one is, and which file an entry point of it is.
 *
 * Resolves what a package's `exports` say under the conditions of an `import` in Node, without importing anything, so that a
 * host can ask for an entry point of its own and find that there is none. It installs nothing and runs nothing.
 */
import { readFileSync, realpathSync, statSync } from "node:fs"
import { dirname, join } from "node:path"

/** A package that is there. */
export interface InstalledPackage {
  readonly name: string
  readonly version: string | null
  /** Its real path, symbolic links followed: two ways to one package have the same. */
  readonly folder: string
  readonly exports: unknown
  readonly main: string | null
  readonly dependencies: Ranges
  readonly peerDependencies: Ranges
}

type Ranges = { readonly [name: string]: string }

const isObject = (value: unknown): value is { readonly [key: string]: unknown } =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const text = (value: unknown): string | null => typeof value === "string" && value !== "" ? value : null

const ranges = (value: unknown): Ranges =>
  isObject(value)
    ? Object.fromEntries(
      Object.entries(value).flatMap(([name, range]) => typeof range === "string" ? [[name, range]] : [])
    )
    : {}

const isFile = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isFile() === true

/** The package in a folder; `null`: there is no `package.json` that names one. */
export function readPackage(folder: string): InstalledPackage | null {
  try {
    const value: unknown = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"))
    if (!isObject(value)) return null
    const name = text(value.name)
    if (name === null) return null
    return {
      name,
      version: text(value.version),
      folder: realpathSync(folder),
      exports: value.exports,
      main: text(value.main),
      dependencies: ranges(value.dependencies),
      peerDependencies: ranges(value.peerDependencies)
    }
  } catch {
    return null
  }
}

/** `name` or `@scope/name`, with what stands behind it: `["name", "./entry"]`; `null`: this is no name of a package. */
export function packageName(specifier: string): readonly [name: string, path: string] | null {
  const match = /^((?:@[\w~-][\w.~-]*\/)?[\w~-][\w.~-]*)(?:\/(.+))?$/.exec(specifier)
  return match?.[1] === undefined ? null : [match[1], match[2] === undefined ? "." : `./${match[2]}`]
}

/** Looks in `node_modules` of each folder and of the folders above it, as Node does. */
export function findPackage(name: string, folders: ReadonlyArray<string>): InstalledPackage | null {
  for (const start of folders) {
    for (let folder = start;; folder = dirname(folder)) {
      const found = readPackage(join(folder, "node_modules", name))
      if (found !== null) return found
      if (folder === dirname(folder)) break
    }
  }
  return null
}

const conditions: ReadonlySet<string> = new Set(["node", "import", "module-sync", "default"])

/** What a target of `exports` is under our conditions. `null` takes an entry point away, `undefined` says nothing. */
function targetOf(target: unknown): string | null | undefined {
  if (target === null || typeof target === "string") return target
  if (Array.isArray(target)) return target.map(targetOf).find((item) => typeof item === "string")
  if (!isObject(target)) return undefined
  for (const [condition, inner] of Object.entries(target)) {
    const found = conditions.has(condition) ? targetOf(inner) : undefined
    if (found !== undefined) return found
  }
  return undefined
}

/** The longest pattern that fits, with what its star stands for. */
function patternOf(exports: { readonly [path: string]: unknown }, path: string): readonly [unknown, string] | null {
  const fitting = Object.keys(exports).filter((key) => {
    const [before = "", after] = key.split("*")
    return after !== undefined && path.startsWith(before) && path.endsWith(after) &&
      path.length > before.length + after.length
  }).sort((one, other) => other.indexOf("*") - one.indexOf("*"))
  const [key] = fitting
  if (key === undefined) return null
  const [before = "", after = ""] = key.split("*")
  return [exports[key], path.slice(before.length, path.length - after.length)]
}

/**
 * The file of an entry point, `.` or `./session`; `null`: the package has no such export. Fails with a sentence if `exports`
 * names a file that is not there.
 */
export function entryFile(found: InstalledPackage, path: string): string | null {
  const { exports, folder } = found
  if (exports === undefined || exports === null) {
    if (path !== ".") return null
    const candidates = found.main === null
      ? ["index.js"]
      : [found.main, `${found.main}.js`, join(found.main, "index.js")]
    return candidates.map((name) => join(folder, name)).find(isFile) ?? null
  }
  const paths = isObject(exports) && Object.keys(exports).some((key) => key.startsWith("."))
    ? exports
    : { ".": exports }
  const exact = Object.hasOwn(paths, path) && !path.includes("*")
  const pattern = exact ? null : patternOf(paths, path)
  const target = targetOf(exact ? paths[path] : pattern?.[0])
  if (typeof target !== "string" || !target.startsWith("./") || target.split("/").includes("..")) return null
  const file = join(folder, pattern === null ? target : target.replaceAll("*", pattern[1]))
  if (isFile(file)) return file
  if (!exact) return null
  throw new Error(`its package.json exports "${path}" as ${target}, and there is no such file`)
}

/** Makes a provider of the AI SDK of its options; the name of such a function begins with `create`. */
export type CreateProvider = (options: object) => unknown

const isCreate = (value: unknown): value is CreateProvider => typeof value === "function"

/** How the module of an AI SDK provider package makes a provider, or `null` if it is none. */
export function providerFactory(module: object): CreateProvider | null {
  const name = Object.keys(module).find((key) => /^create[A-Z]/.test(key) && isCreate(Reflect.get(module, key)))
  const create: unknown = name === undefined ? null : Reflect.get(module, name)
  return isCreate(create) ? create : null
}

export const isProviderModule = (module: object): boolean => providerFactory(module) !== null
