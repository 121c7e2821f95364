/**
 * Builds the shipped command: `packages/cli/dist/bezel.mjs` (the loader) and its chunks.
 *
 * With code splitting, so that what is imported on demand (provider packages, the terminal) is loaded on demand. The program
 * is there twice: `lean`, and `sharing/` with `shared.mjs`, which holds, by specifier, the very modules that the program itself
 * uses, for plugin files from outside (see `packages/cli/src/plugin-modules.ts`). Sharing a module means keeping all of it,
 * which costs every start some 25 ms, so only a run that may have such plugins takes that one. The folder is written beside
 * and swapped in whole, so a running command never sees half of it. Prints nothing unless something is wrong.
 */
import { build, type Plugin } from "esbuild"
import { spawn } from "node:child_process"
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { chmod, copyFile, mkdtemp, readFile, rename, rm } from "node:fs/promises"
import { createRequire } from "node:module"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { startModelServer } from "../packages/core/src/testing/model-server.ts"
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

/**
 * Leaves out what a start would load for nothing: an `import` of `node:http` reads all of its members, of which some load the
 * HTTP client of `fetch`, some 30 ms; the platform's `Headers`, of which the provider packages use little, loads the same;
 * and the messages of the schema library in forty languages are never shown.
 */
const lighter: Plugin = {
  name: "lighter",
  setup(build) {
    build.onResolve(
      { filter: /^(?:node:)?https?$/ },
      ({ kind, path }) => kind === "import-statement" ? { path, namespace: "builtin", sideEffects: false } : undefined
    )
    build.onLoad({ filter: /.*/, namespace: "builtin" }, ({ path }) => {
      // Those that are globals as well are the ones that load much; whoever wants one has the global.
      const members = Object.keys(Object(process.getBuiltinModule(path))).filter((name) => !(name in globalThis))
      return {
        contents: [
          `const builtin = /* @__PURE__ */ process.getBuiltinModule(${JSON.stringify(path)})`,
          "const member = (name) => builtin[name]",
          ...members.map((name) => `export const ${name} = /* @__PURE__ */ member("${name}")`),
          "export default builtin"
        ].join("\n")
      }
    })
    build.onLoad({ filter: /@ai-sdk\/provider-utils\/dist\/index\.m?js$/ }, async ({ path }) => {
      const headers = join(root, "packages/plugins/src/providers/http-response.ts")
      const source = await readFile(path, "utf8")
      return { contents: `import { HttpHeaders as Headers } from ${JSON.stringify(headers)}\n${source}`, loader: "js" }
    })
    build.onLoad({ filter: /zod\/v4\/locales\/index\.js$/ }, () => ({ contents: "export {}" }))
  }
}

const bundle = (name: "lean" | "sharing", outdir: string, entryPoints: Array<{ in: string; out: string }>) =>
  build({
    absWorkingDir: root,
    entryPoints,
    outdir,
    outExtension: { ".js": ".mjs" },
    define: { BEZEL_BUNDLE: JSON.stringify(name) },
    bundle: true,
    splitting: true,
    format: "esm",
    platform: "node",
    target: "node22.19",
    // Some packages have a `main` that requires its parts dynamically, beside a proper ES module.
    mainFields: ["module", "main"],
    minify: true,
    sourcemap: "external",
    legalComments: "none",
    logLevel: "warning",
    plugins: [sharedEntry, lighter],
    // Packages in CommonJS form expect `require`; an ES module has none.
    banner: {
      js: `import{createRequire as __createRequire}from"node:module";var require=__createRequire(import.meta.url);`
    }
  })

/** A thread has a file of its own; the one for images finds its WebAssembly beside it. */
async function bundleThreads(outdir: string): Promise<void> {
  await build({
    absWorkingDir: root,
    entryPoints: {
      "image-worker": "packages/plugins/src/providers/image-worker.ts",
      "pdf-worker": "packages/plugins/src/tools/pdf-worker.ts"
    },
    outdir,
    outExtension: { ".js": ".cjs" },
    bundle: true,
    format: "cjs",
    platform: "node",
    target: "node22.19",
    minify: true,
    legalComments: "none",
    logLevel: "warning"
  })
  const photon = createRequire(join(root, "packages/plugins/package.json")).resolve("@silvia-odwyer/photon-node")
  await copyFile(join(dirname(photon), "photon_rs_bg.wasm"), join(outdir, "photon_rs_bg.wasm"))
}

export async function buildCommand(): Promise<void> {
  const staging = await mkdtemp(join(cli, ".dist-"))
  try {
    const entry = { in: "packages/cli/src/bezel.ts", out: "bezel" }
    await bundle("lean", staging, [entry])
    await bundle("sharing", join(staging, "sharing"), [
      { in: "packages/cli/src/agent.ts", out: "agent" },
      { in: "bezel:shared", out: "shared" }
    ])
    await bundleThreads(staging)
    await chmod(staging, 0o755)
    await rm(dist, { recursive: true, force: true })
    await rename(staging, dist)
  } catch (error) {
    await rm(staging, { recursive: true, force: true })
    throw error
  }
  await warmCompileCache()
}

/**
 * Node keeps compiled code of each file from the first run that loads it, with the functions that this run has called. So the
 * first run after a build is made here, and it does what most runs do: it asks a model over HTTP and calls tools.
 */
async function warmCompileCache(): Promise<void> {
  const home = mkdtempSync(join(tmpdir(), "bezel-build-"))
  const server = await startModelServer()
  server.always(({ body }) =>
    JSON.stringify(body).includes('"tool"')
      ? { text: ["It ", "is ", "done."] }
      : { calls: [{ name: "read", args: { path: "note.txt" } }, { name: "bash", args: { command: "true" } }] }
  )
  try {
    const settings = {
      model: "local/m",
      providers: { local: { package: "@ai-sdk/openai-compatible", options: { baseURL: server.url, apiKey: "none" } } }
    }
    mkdirSync(join(home, ".config/bezel"), { recursive: true })
    writeFileSync(join(home, ".config/bezel/bezel.jsonc"), JSON.stringify(settings))
    writeFileSync(join(home, "note.txt"), "A note.\n")
    for (const more of [[], ["--set", "plugins=[]"]]) await runOnce(home, ["run", "--yes", "warm up", ...more])
  } finally {
    await server.close()
    rmSync(home, { recursive: true, force: true })
  }
}

async function runOnce(home: string, argv: ReadonlyArray<string>): Promise<void> {
  const env = { PATH: process.env.PATH ?? "", HOME: home }
  const child = spawn(process.execPath, [join(dist, "bezel.mjs"), ...argv], {
    cwd: home,
    env,
    stdio: ["ignore", "ignore", "pipe"]
  })
  const limit = setTimeout(() => child.kill(), 60_000)
  const text: Array<string> = []
  child.stderr.on("data", (chunk: Buffer) => text.push(chunk.toString()))
  const code = await new Promise((resolve) => child.once("close", resolve))
  clearTimeout(limit)
  if (code !== 0) console.error(`build: the built command does not run: ${text.join("").trim().split("\n").at(-1)}`)
}

if (import.meta.main) {
  try {
    await buildCommand()
  } catch (error) {
    console.error(`build: ${error instanceof Error ? error.message.split("\n", 1)[0] : String(error)}`)
    process.exitCode = 1
  }
}
