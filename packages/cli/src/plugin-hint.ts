/**
 * A quick look, before the runtime is loaded, at whether plugins from outside can occur in this run, or traces are wanted.
 *
 * The bundle is there twice: without the modules that plugin files share with the program, which starts faster, and with
 * them. This errs on the side of yes: any mention of `plugins` in a settings file that could apply counts.
 */
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs"
import { dirname, isAbsolute, join, resolve } from "node:path"
import { homeFolder } from "./home.ts"

const configFolder = (): string => {
  const { BEZEL_CONFIG_DIR: own, XDG_CONFIG_HOME: base = "" } = process.env
  return own || join(isAbsolute(base) ? base : join(homeFolder() ?? "/", ".config"), "bezel")
}

/** Longer files are refused when the settings are read; until then they count as mentioning everything. */
const longestFile = 1024 * 1024

const mentions = (file: string, word: string): boolean => {
  try {
    const status = statSync(file)
    // A link to a device or a pipe would be read for ever; whoever reads the settings says what is wrong with it.
    if (!status.isFile()) return false
    return status.size > longestFile || readFileSync(file, "utf8").includes(word)
  } catch {
    return false
  }
}

const hasEntries = (folder: string): boolean => {
  try {
    return readdirSync(folder).length > 0
  } catch {
    return false
  }
}

/** `null` in a folder that was deleted; whoever needs it says so. */
const resolved = (directory: string): string | null => {
  try {
    return resolve(directory)
  } catch {
    return null
  }
}

export function pluginsAreLikely(directory: string, overrides: ReadonlyArray<string>): boolean {
  const config = configFolder()
  if (overrides.some((text) => text.startsWith("plugins")) || hasEntries(join(config, "plugins"))) return true
  if (mentions(join(config, "bezel.jsonc"), "plugins")) return true
  const start = resolved(directory)
  if (start === null) return false
  for (let folder = start;; folder = dirname(folder)) {
    if (existsSync(join(folder, ".bezel", "plugins"))) return true
    if (
      mentions(join(folder, "bezel.jsonc"), "plugins") || mentions(join(folder, ".bezel", "bezel.jsonc"), "plugins")
    ) {
      return true
    }
    if (folder === dirname(folder)) return false
  }
}

/** Whether the user's settings may say where traces go. A project's do not count. */
export const telemetryIsLikely = (overrides: ReadonlyArray<string>): boolean =>
  overrides.some((text) => text.startsWith("telemetry")) || mentions(join(configFolder(), "bezel.jsonc"), "telemetry")
