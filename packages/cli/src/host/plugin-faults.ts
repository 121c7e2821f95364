/**
 * Whose fault it is when something goes wrong outside of all calls: in a timer, a callback, a promise that nobody waits for.
 *
 * A fault is a plugin's if its stack goes through a file of that plugin. One whose stack goes through no file at all (a failed
 * `fetch` that nobody waits for) is taken for one of the plugins': the program itself lets no promise go. The first file of the command (`bezel.ts`), which
 * handles what escapes the program, must not load any of this, so it asks by a symbol of the process; with that, both builds of
 * the program find each other too.
 */
import { sep } from "node:path"
import { fileURLToPath } from "node:url"

/** Under this symbol of `globalThis` is a function that gives who caused an error, in words, or `null`. */
const whoseFaultSymbol = Symbol.for("bezel.whose-fault")

/** Folders of plugins' own files, with the plugin's file that was loaded. */
const folders = new Map<string, Set<string>>()

/** Call before a plugin's file is imported: already its import may leave something behind that fails later. */
export function rememberPlugin(file: string, folder: string): void {
  const files = folders.get(folder) ?? new Set()
  folders.set(folder, files.add(file))
  Reflect.set(globalThis, whoseFaultSymbol, whoseFault)
}

/** Files that a stack goes through, the innermost first. */
function filesOf(stack: string): ReadonlyArray<string> {
  return [...stack.matchAll(/(file:\/\/[^\s()]+?):\d+(?::\d+)?\)?$/gm)].flatMap(([, url = ""]) => {
    try {
      return [fileURLToPath(url)]
    } catch {
      return []
    }
  })
}

/** The file of the plugin that a fault came from, by its stack; `null` if it came from none, or has no stack. */
export function pluginOf(error: unknown): string | null {
  if (!(error instanceof Error) || typeof error.stack !== "string") return null
  for (const file of filesOf(error.stack)) {
    for (const [folder, files] of folders) {
      if (files.has(file)) return file
      const isOwn = file.startsWith(folder + sep) && !file.slice(folder.length).includes(`${sep}node_modules${sep}`)
      // Several plugins may share a folder; then only a file of its own says which one it was.
      if (isOwn) return files.size === 1 ? [...files][0] ?? file : file
    }
  }
  return null
}

/** Who caused a fault: "the plugin …", or `null` if that was no plugin. */
export function whoseFault(error: unknown): string | null {
  const plugin = pluginOf(error)
  if (plugin !== null) return `the plugin ${plugin}`
  const stack = error instanceof Error && typeof error.stack === "string" ? error.stack : ""
  const all = [...folders.values()].flatMap((files) => [...files])
  if (all.length === 0 || filesOf(stack).length > 0) return null
  const named = all.slice(0, 5).join(", ")
  return all.length === 1 ? `the plugin ${named}` : `one of the plugins ${named}${all.length > 5 ? ", …" : ""}`
}
