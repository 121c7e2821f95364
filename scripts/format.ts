/**
 * Formats the TypeScript of the repository by `dprint.json`, with dprint's own plugin in WebAssembly from npm, so that neither
 * a native program nor a network is needed.
 *
 * `node scripts/format.ts` writes, `--check` only names what is not formatted; paths or globs pick files.
 */
import { createContext } from "@dprint/formatter"
import { getPath } from "@dprint/typescript"
import { globSync, readFileSync, writeFileSync } from "node:fs"
import { join, matchesGlob, relative } from "node:path"

const root = join(import.meta.dirname, "..")

interface Configuration {
  readonly typescript: { readonly [option: string]: string }
  readonly includes: ReadonlyArray<string>
  readonly excludes: ReadonlyArray<string>
  readonly [option: string]: unknown
}

/** Names of the files that are not formatted; with `write`, they are afterwards. */
export function format(patterns: ReadonlyArray<string>, write: boolean): ReadonlyArray<string> {
  const { excludes, includes, plugins: _, typescript, ...common }: Configuration = JSON.parse(
    readFileSync(join(root, "dprint.json"), "utf8")
  )
  const context = createContext(common)
  context.addPlugin(readFileSync(getPath()), typescript)
  const wanted = patterns.length === 0 ? includes : patterns
  const isLeftOut = (path: string) => excludes.some((pattern) => matchesGlob(path, pattern))
  const files = globSync([...wanted], { cwd: root, exclude: (path) => isLeftOut(relative(root, join(root, path))) })
  return files.filter((file) => includes.some((pattern) => matchesGlob(file, pattern))).filter((file) => {
    const path = join(root, file)
    const before = readFileSync(path, "utf8")
    const after = context.formatText({ filePath: path, fileText: before })
    if (after === before) return false
    if (write) writeFileSync(path, after)
    return true
  })
}

if (import.meta.main) {
  const check = process.argv.includes("--check")
  const changed = format(process.argv.slice(2).filter((word) => word !== "--check"), !check)
  for (const file of changed) console.log(`${check ? "not formatted" : "formatted"}: ${file}`)
  if (check && changed.length > 0) {
    console.error("format: npm run check -- --fix formats")
    process.exitCode = 1
  }
}
