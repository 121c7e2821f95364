/** The program that Bezel is compared with: fetched on demand into `.bench/`, from its npm package, at a fixed version. */
import { spawnSync } from "node:child_process"
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"

export const peerVersion = "1.6.0"

/** Path of pi's program; installs it if it is not there. */
export function installPeer(root: string): string {
  const folder = join(root, ".bench", "pi")
  const home = join(folder, "node_modules/@earendil-works/pi-coding-agent")
  const manifest = join(home, "package.json")
  const installed = existsSync(manifest) ? JSON.parse(readFileSync(manifest, "utf8")) : null
  if (installed?.version !== peerVersion) {
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, "package.json"), JSON.stringify({ private: true }))
    console.error(`bench: fetching pi ${peerVersion} into ${folder}`)
    const argv = [
      "install",
      "--save-exact",
      "--ignore-scripts",
      "--no-audit",
      "--no-fund",
      `@earendil-works/pi-coding-agent@${peerVersion}`
    ]
    const { status } = spawnSync("npm", argv, { cwd: folder, stdio: ["ignore", "ignore", "inherit"] })
    if (status !== 0) throw new Error("pi could not be fetched from npm; without it there is nothing to compare with")
  }
  return join(home, JSON.parse(readFileSync(manifest, "utf8")).bin.pi)
}
