/**
 * A quick look, before the runtime is loaded, at whether plugins from outside can occur in this run.
 *
 * The bundle is there twice: without the modules that plugin files share with the program, which starts faster, and with
 * them. This errs on the side of yes: any mention of `plugins` in a settings file that could apply counts.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { homedir } from "node:os"
import { dirname, join, resolve } from "node:path"

const configFolder = (): string => {
  const { BEZEL_CONFIG_DIR: own, XDG_CONFIG_HOME: base, HOME: home } = process.env
  return own || join(base || join(home || homedir(), ".config"), "bezel")
}

const mentionsPlugins = (file: string): boolean => {
  try {
    return readFileSync(file, "utf8").includes("plugins")
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

export function pluginsAreLikely(directory: string, overrides: ReadonlyArray<string>): boolean {
  const config = configFolder()
  if (overrides.some((text) => text.startsWith("plugins")) || hasEntries(join(config, "plugins"))) return true
  if (mentionsPlugins(join(config, "bezel.jsonc"))) return true
  for (let folder = resolve(directory);; folder = dirname(folder)) {
    if (existsSync(join(folder, ".bezel", "plugins"))) return true
    if (mentionsPlugins(join(folder, "bezel.jsonc")) || mentionsPlugins(join(folder, ".bezel", "bezel.jsonc"))) {
      return true
    }
    if (folder === dirname(folder)) return false
  }
}
