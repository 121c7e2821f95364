/**
 * Gives plugin files from outside the program's own copies of `effect`, `@bezel/core` and `@bezel/tui`.
 *
 * Two copies of Effect in one process do not understand each other's values, so these names resolve to the modules that the
 * program itself runs with, whatever lies in a `node_modules` near the plugin file. In the bundle that is made for this
 * (`plugin-hint.ts` decides) they come from one shared module (`shared.mjs`, see `scripts/build.ts`), which is loaded when the
 * first plugin file asks; run from source, they resolve as they do for this file.
 */
import { createRequire, registerHooks } from "node:module"
import { bundle } from "./bundle.ts"

const scheme = "bezel-shared:"

const isShared = (specifier: string): boolean => /^(effect|@bezel\/(core|tui))(\/|$)/.test(specifier)

interface Shared {
  readonly modules: { readonly [specifier: string]: { readonly [name: string]: unknown } }
}

function readShared(): { readonly url: string; readonly modules: Shared["modules"] } {
  const url = new URL("./shared.mjs", import.meta.url)
  const loaded: Shared = createRequire(import.meta.url)(url.pathname)
  return { url: url.href, modules: loaded.modules }
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
      if (!isShared(specifier)) return next(specifier, context)
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
