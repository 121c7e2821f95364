/**
 * Which modules a plugin file from outside shares with the program: all of core's and the terminal's public faces, and the
 * modules of Effect that plugin code is written with: those of its barrel, and the commands that `ctx.process` takes. Any other
 * one of these packages is refused (`plugin-modules.ts`), since it would come with a second copy of Effect.
 */
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"

interface PackageFile {
  readonly name: string
  readonly exports: { readonly [path: string]: string }
}

function publicFaces(root: string, folder: string): ReadonlyArray<string> {
  const home = join(root, "packages", folder)
  const { name, exports } = JSON.parse(readFileSync(join(home, "package.json"), "utf8")) as PackageFile
  return Object.entries(exports)
    .filter(([path, file]) => !path.includes("*") && existsSync(join(home, file)))
    .map(([path]) => name + path.slice(1))
}

export function sharedSpecifiers(root: string): ReadonlyArray<string> {
  return [
    "effect",
    ...effectModules(root),
    ...processModules,
    ...publicFaces(root, "core"),
    ...publicFaces(root, "tui")
  ]
}

/** What a command is made with, for `ctx.process.spawn` and `call.process.spawn`. */
const processModules = ["effect/process", "effect/process/ChildProcess", "effect/process/ChildProcessSpawner"]

/** What the barrel `effect` re-exports is reachable one by one as well. */
function effectModules(root: string): ReadonlyArray<string> {
  const barrel = readFileSync(join(root, "node_modules/effect/dist/index.js"), "utf8")
  return [...barrel.matchAll(/export \* as \w+ from "\.\/(\w+)\.js"/g)].map((match) => `effect/${match[1]}`)
}
