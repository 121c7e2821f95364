/** Other ways to call over a socket, for comparison: fetched on demand into `.bench/`, at fixed versions; no dependencies. */
import { spawnSync } from "node:child_process"
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { join } from "node:path"
import { pathToFileURL } from "node:url"

export const peers = { "vscode-jsonrpc": "10.0.0", capnweb: "0.12.0" } as const

/** Addresses of the peers' modules; installs them if they are not there. */
export function installPeers(root: string): { readonly jsonrpc: string; readonly capnweb: string } {
  const folder = join(root, ".bench", "rpc")
  const missing = Object.entries(peers).filter(([name, version]) => {
    const manifest = join(folder, "node_modules", name, "package.json")
    return !existsSync(manifest) || JSON.parse(readFileSync(manifest, "utf8")).version !== version
  })
  if (missing.length > 0) {
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, "package.json"), JSON.stringify({ private: true, type: "module" }))
    const wanted = Object.entries(peers).map(([name, version]) => `${name}@${version}`)
    console.error(`bench: fetching ${wanted.join(" and ")} into ${folder}`)
    const argv = ["install", "--save-exact", "--ignore-scripts", "--no-audit", "--no-fund", ...wanted]
    const { status } = spawnSync("npm", argv, { cwd: folder, stdio: ["ignore", "ignore", "inherit"] })
    if (status !== 0) {
      throw new Error("the peers could not be fetched from npm; without them there is nothing to compare with")
    }
  }
  const from = createRequire(join(folder, "package.json"))
  const address = (name: string) => pathToFileURL(from.resolve(name)).href
  return { jsonrpc: address("vscode-jsonrpc/node"), capnweb: address("capnweb") }
}
