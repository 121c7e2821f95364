/**
 * Gives plugin files from outside the program's own copies of `effect`, `@bezel/core` and `@bezel/tui`.
 *
 * Two copies of Effect in one process do not understand each other's values, so these names resolve to the modules that the
 * program itself runs with, whatever lies in a `node_modules` near the plugin file. In the bundle that is made for this
 * (`plugin-hint.ts` decides) they come from one shared module (`shared.mjs`, see `scripts/build.ts`), which is loaded when the
 * first plugin file asks; run from source, they resolve as they do for this file.
 *
 * A reload imports a plugin's file in a new generation: its URL carries a number, which whatever it imports of the plugin's
 * own files gets too, so that all of them are read anew. Node never lets go of a module, so an old generation's code stays in
 * memory.
 */
import { readFileSync } from "node:fs"
import { createRequire, registerHooks } from "node:module"
import { dirname, join, sep } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"
import { bundle } from "./bundle.ts"

const scheme = "bezel-shared:"

export const isShared = (specifier: string): boolean => /^(effect|@bezel\/(core|tui))(\/|$)/.test(specifier)

interface Shared {
  readonly modules: { readonly [specifier: string]: { readonly [name: string]: unknown } }
}

function readShared(): { readonly url: string; readonly modules: Shared["modules"] } {
  const url = new URL("./shared.mjs", import.meta.url)
  const loaded: Shared = createRequire(import.meta.url)(url.pathname)
  return { url: url.href, modules: loaded.modules }
}

const generationKey = "bezel-generation"

/** The folders of plugins that were loaded again, by the generation that does so. */
const generations = new Map<string, string>()

/** A plugin's own files: below the folder of its package or of its file, and not of a package that lies in there. */
const isOwn = (folder: string, file: string): boolean =>
  file.startsWith(folder + sep) && !file.slice(folder.length).includes(`${sep}node_modules${sep}`)

/** The folder of the package that a file belongs to, if it is one in a `node_modules`; else the folder of the file. */
export function pluginFolder(file: string): string {
  const own = dirname(file)
  if (!own.includes(`${sep}node_modules${sep}`)) return own
  for (let folder = own; folder !== dirname(folder); folder = dirname(folder)) {
    try {
      readFileSync(join(folder, "package.json"))
      return folder
    } catch {
      // The package's folder is further up.
    }
  }
  return own
}

/** The URL of a module in the generation of the module that imports it. */
function inGeneration(url: string, parentURL: string | undefined): string {
  if (parentURL === undefined || !parentURL.includes(generationKey) || !url.startsWith("file:")) return url
  const generation = new URL(parentURL).searchParams.get(generationKey)
  const folder = generation === null ? undefined : generations.get(generation)
  if (generation === null || folder === undefined || !isOwn(folder, fileURLToPath(url))) return url
  const next = new URL(url)
  next.searchParams.set(generationKey, generation)
  return next.href
}

/** The URL to import a plugin's file by, so that it and its own files, those below `folder`, are read anew. */
export function nextGeneration(file: string, folder: string = pluginFolder(file)): string {
  const generation = String(generations.size + 1)
  generations.set(generation, folder)
  // What was required and not imported has a cache of its own.
  const { cache } = createRequire(import.meta.url)
  for (const required of Object.keys(cache)) if (isOwn(folder, required)) delete cache[required]
  const url = pathToFileURL(file)
  url.searchParams.set(generationKey, generation)
  return url.href
}

let installed = false

/** Call before the first plugin file is loaded; calling it again changes nothing. */
export function sharePluginModules(): void {
  if (installed) return
  if (bundle === "lean") {
    throw new Error('plugins are named in a way that was not seen at the start; write the setting "plugins" plainly')
  }
  installed = true
  let shared: ReturnType<typeof readShared> | null = null
  registerHooks({
    resolve: (specifier, context, next) => {
      if (!isShared(specifier)) {
        const resolved = next(specifier, context)
        return { ...resolved, url: inGeneration(resolved.url, context.parentURL) }
      }
      if (bundle === "source") return next(specifier, { ...context, parentURL: import.meta.url })
      shared ??= readShared()
      if (shared.modules[specifier] === undefined) {
        throw new Error(
          `"${specifier}" is not among the modules that a plugin file can import (docs/plugins.md lists them)`
        )
      }
      return { url: scheme + specifier, format: "module", shortCircuit: true }
    },
    load: (url, context, next) => {
      if (!url.startsWith(scheme)) return next(url, context)
      shared ??= readShared()
      const specifier = url.slice(scheme.length)
      const names = Object.keys(shared.modules[specifier] ?? {})
      const source = [
        `import { modules } from ${JSON.stringify(shared.url)}`,
        `const shared = modules[${JSON.stringify(specifier)}]`,
        ...names.map((name, index) => `const member${index} = shared[${JSON.stringify(name)}]`),
        `export { ${names.map((name, index) => `member${index} as ${name}`).join(", ")} }`
      ].join("\n")
      return { format: "module", source, shortCircuit: true }
    }
  })
}
