/**
 * Builds the shipped command: `packages/cli/dist/bezel.mjs` (the loader) and its chunks.
 *
 * One esbuild run with code splitting, so that what is imported on demand (provider packages, the terminal) is loaded on
 * demand. `shared.mjs` is a second entry of the same run: it holds, by specifier, the very modules that the program itself
 * uses, for plugin files from outside (see `packages/cli/src/plugin-modules.ts`). The folder is written beside and swapped
 * in whole, so a running command never sees half of it. Prints nothing unless something is wrong.
 */
import { build, type Plugin } from "esbuild"
import { spawnSync } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import { chmod, mkdtemp, rename, rm } from "node:fs/promises"
import { join } from "node:path"
import { sharedSpecifiers } from "./shared-modules.ts"

const root = join(import.meta.dirname, "..")
const cli = join(root, "packages/cli")
const dist = join(cli, "dist")

/** The module behind the entry `bezel:shared`: a table of all modules that plugin files may import. */
const sharedEntry: Plugin = {
  name: "shared-modules",
  setup(build) {
    build.onResolve({ filter: /^bezel:shared$/ }, () => ({ path: "shared", namespace: "bezel" }))
    build.onLoad({ filter: /.*/, namespace: "bezel" }, () => {
      const specifiers = sharedSpecifiers(root)
      const imports = specifiers.map((name, index) => `import * as m${index} from ${JSON.stringify(name)}`)
      const members = specifiers.map((name, index) => `${JSON.stringify(name)}: m${index}`)
      return { contents: `${imports.join("\n")}\nexport const modules = { ${members.join(", ")} }\n`, resolveDir: cli }
    })
  }
}

export async function buildCommand(): Promise<void> {
  const staging = await mkdtemp(join(cli, ".dist-"))
  try {
    await build({
      absWorkingDir: root,
      entryPoints: [
        { in: "packages/cli/src/bezel.ts", out: "bezel" },
        { in: "bezel:shared", out: "shared" }
      ],
      outdir: staging,
      outExtension: { ".js": ".mjs" },
      bundle: true,
      splitting: true,
      format: "esm",
      platform: "node",
      target: "node22.19",
      // Some packages have a `main` that requires its parts dynamically, beside a proper ES module.
      mainFields: ["module", "main"],
      minify: true,
      keepNames: false,
      sourcemap: "external",
      legalComments: "none",
      logLevel: "warning",
      plugins: [sharedEntry],
      // Packages in CommonJS form expect `require`; an ES module has none.
      banner: {
        js: `import{createRequire as __createRequire}from"node:module";var require=__createRequire(import.meta.url);`
      }
    })
    await chmod(staging, 0o755)
    await rm(dist, { recursive: true, force: true })
    await rename(staging, dist)
  } catch (error) {
    await rm(staging, { recursive: true, force: true })
    throw error
  }
  warmCompileCache()
}

/** The first start after a build would otherwise compile everything; `--help` loads what every command needs. */
function warmCompileCache(): void {
  const loader = join(dist, "bezel.mjs")
  if (existsSync(loader)) spawnSync(process.execPath, [loader, "--help"], { stdio: "ignore", timeout: 60_000 })
}

if (import.meta.main) {
  try {
    readFileSync(join(root, "package.json"))
    await buildCommand()
  } catch (error) {
    console.error(`build: ${error instanceof Error ? error.message.split("\n", 1)[0] : String(error)}`)
    process.exitCode = 1
  }
}
