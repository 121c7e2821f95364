/** `bezel plugin add` from a registry: the person's own npm, and a registry on loopback that serves what the test says. */
import { execFileSync } from "node:child_process"
import { createHash } from "node:crypto"
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { describe, expect, it, onTestFinished } from "vitest"
import { type Home, makeHome } from "./command.ts"

interface Version {
  readonly tarball: Buffer
  /** What the registry says of it. */
  readonly integrity: string
  readonly peers?: Peers
}

const integrityOf = (bytes: Buffer) => `sha512-${createHash("sha512").update(bytes).digest("base64")}`

/** A package's files as a registry has them. */
function pack(files: { readonly [path: string]: string }): Buffer {
  const folder = mkdtempSync(join(tmpdir(), "bezel-pack-"))
  try {
    for (const [path, content] of Object.entries(files)) {
      mkdirSync(dirname(join(folder, "package", path)), { recursive: true })
      writeFileSync(join(folder, "package", path), content)
    }
    return execFileSync("tar", ["-czf", "-", "-C", folder, "package"])
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

interface Peers {
  readonly engines?: { readonly node: string }
  readonly peerDependencies?: { readonly [name: string]: string }
  readonly peerDependenciesMeta?: { readonly [name: string]: { readonly optional: boolean } }
}

const manifest = (name: string, version: string, peers: Peers = {}) => ({
  ...peers,
  name,
  version,
  type: "module",
  exports: { "./session": "./session.js" },
  scripts: { preinstall: "touch ~/ran", install: "touch ~/ran", postinstall: "touch ~/ran" }
})

const plugin = (name: string, version: string, peers: Peers = {}, imports = ""): Version => {
  const tarball = pack({
    "package.json": JSON.stringify(manifest(name, version, peers)),
    "session.js": `
${imports}
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { tool } from "@bezel/core/tool"
export default (ctx) => Effect.asVoid(ctx.tool.transform((draft) => draft.set("jira", tool({
  description: "Jira of ${version}.", input: Schema.Struct({}), execute: () => Effect.succeed("${version}")
}))))`
  })
  return { tarball, integrity: integrityOf(tarball), peers }
}

/** A package that others need beside them. */
const library = (name: string, version: string, peers: Peers = {}): Version => {
  const tarball = pack({
    "package.json": JSON.stringify({ ...manifest(name, version, peers), exports: "./index.js" }),
    "index.js": "export const word = 'there'"
  })
  return { tarball, integrity: integrityOf(tarball), peers }
}

/** Serves packages as npm asks for them. What it has can be changed later. */
async function startRegistry(packages: { [name: string]: { [version: string]: Version } }) {
  const asked: Array<string> = []
  const server = createServer((request, response) => {
    const path = decodeURIComponent(request.url ?? "/").slice(1)
    asked.push(path)
    const [name = "", file] = path.split("/-/")
    const versions = packages[name]
    const one = Object.entries(versions ?? {}).find(([version]) => file === `${version}.tgz`)
    if (versions === undefined || (file !== undefined && one === undefined)) {
      response.writeHead(404, { "content-type": "application/json" }).end(`{"error":"not found"}`)
      return
    }
    if (one !== undefined) {
      response.writeHead(200, { "content-type": "application/octet-stream" }).end(one[1].tarball)
      return
    }
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({
      name,
      "dist-tags": { latest: Object.keys(versions).at(-1) },
      versions: Object.fromEntries(
        Object.entries(versions).map(([version, { integrity, peers }]) => [version, {
          ...manifest(name, version, peers),
          dist: { tarball: `${url}/${name}/-/${version}.tgz`, integrity }
        }])
      )
    }))
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url, asked, packages }
}

const homeWith = (registry: { readonly url: string }): Home => {
  const home = makeHome()
  home.write(".npmrc", `registry=${registry.url}\nfetch-retries=0\n`)
  return home
}

const folderOf = (home: Home) => join(home.folder, ".config/bezel/plugins")
const read = (path: string) => existsSync(path) ? readFileSync(path, "utf8") : ""
const settingsOf = (home: Home) => read(join(home.folder, ".config/bezel/bezel.jsonc"))
const versionOf = (home: Home) => {
  const file = join(folderOf(home), "node_modules/bezel-plugin-jira/package.json")
  return existsSync(file) ? JSON.parse(readFileSync(file, "utf8")).version : null
}

describe("bezel plugin add, from a registry", { timeout: 150_000 }, () => {
  it("installs the newest version, exactly and with its integrity, runs no script of it, and names it in the settings", async () => {
    const registry = await startRegistry({
      "bezel-plugin-jira": {
        "1.1.0": plugin("bezel-plugin-jira", "1.1.0"),
        "1.2.0": plugin("bezel-plugin-jira", "1.2.0")
      }
    })
    const home = homeWith(registry)
    const added = await home.run(["plugin", "add", "bezel-plugin-jira"])
    expect(added).toMatchObject({ code: 0, stderr: "", stdout: "added bezel-plugin-jira 1.2.0, for session\n" })
    expect(JSON.parse(read(join(folderOf(home), "package.json"))).dependencies).toEqual({
      "bezel-plugin-jira": "1.2.0"
    })
    const lock = JSON.parse(read(join(folderOf(home), "package-lock.json"))).packages["node_modules/bezel-plugin-jira"]
    expect(lock).toMatchObject({
      version: "1.2.0",
      resolved: `${registry.url}/bezel-plugin-jira/-/1.2.0.tgz`,
      integrity: registry.packages["bezel-plugin-jira"]?.["1.2.0"]?.integrity
    })
    expect(existsSync(join(home.folder, "ran"))).toBe(false)
    expect(settingsOf(home)).toContain(`"bezel-plugin-jira"`)
    expect((await home.run(["tool", "list"])).stdout).toMatch(/^jira +bezel-plugin-jira +Jira of 1\.2\.0\.$/m)
  })

  it("installs the version that is asked for, and another one when it is asked again", async () => {
    const registry = await startRegistry({
      "bezel-plugin-jira": {
        "1.1.0": plugin("bezel-plugin-jira", "1.1.0"),
        "1.2.0": plugin("bezel-plugin-jira", "1.2.0")
      }
    })
    const home = homeWith(registry)
    expect((await home.run(["plugin", "add", "bezel-plugin-jira@1.1.0"])).stdout).toContain(
      "added bezel-plugin-jira 1.1.0"
    )
    expect(versionOf(home)).toBe("1.1.0")
    expect((await home.run(["plugin", "add", "bezel-plugin-jira@1.2.0"])).stdout).toContain(
      "added bezel-plugin-jira 1.2.0"
    )
    expect(versionOf(home)).toBe("1.2.0")
    expect((await home.run(["plugin", "remove", "bezel-plugin-jira"])).stdout).toBe("removed bezel-plugin-jira\n")
    expect([versionOf(home), settingsOf(home).includes("jira")]).toEqual([null, false])
  })

  it("refuses what is not what the registry says it is, and leaves nothing of it", async () => {
    const { tarball } = plugin("bezel-plugin-jira", "1.2.0")
    const registry = await startRegistry({
      "bezel-plugin-jira": { "1.2.0": { tarball, integrity: integrityOf(Buffer.from("something else")) } }
    })
    const home = homeWith(registry)
    const added = await home.run(["plugin", "add", "bezel-plugin-jira"])
    expect(added).toMatchObject({ code: 1, stdout: "" })
    expect(added.stderr).toMatch(/^bezel: npm install failed: .*integrity checksum failed/)
    expect(added.stderr.trimEnd().split("\n")).toHaveLength(1)
    expect([versionOf(home), settingsOf(home)]).toEqual([null, ""])
  })

  it("refuses other bytes under a version that it has installed before, whatever the registry says of them now", async () => {
    const first = plugin("bezel-plugin-jira", "1.2.0")
    const registry = await startRegistry({ "bezel-plugin-jira": { "1.2.0": first } })
    const home = homeWith(registry)
    expect((await home.run(["plugin", "add", "bezel-plugin-jira"])).code).toBe(0)
    const tarball = pack({
      "package.json": JSON.stringify(manifest("bezel-plugin-jira", "1.2.0")),
      "session.js": `throw new Error("another")`
    })
    registry.packages["bezel-plugin-jira"] = { "1.2.0": { tarball, integrity: integrityOf(tarball) } }
    // As on another machine, to which only package.json and the lock file were carried.
    rmSync(join(folderOf(home), "node_modules"), { recursive: true })
    rmSync(join(home.folder, ".npm"), { recursive: true, force: true })
    for (const spec of ["bezel-plugin-jira@1.2.0", "bezel-plugin-jira"]) {
      const again = await home.run(["plugin", "add", spec])
      expect([again.code, again.stderr]).toEqual([
        1,
        "bezel: bezel-plugin-jira was not added: 1.2.0 has other contents now than when it was installed before; if that " +
        "is meant, bezel plugin remove bezel-plugin-jira first\n"
      ])
      expect(versionOf(home)).toBe(null)
    }
    await home.run(["plugin", "remove", "bezel-plugin-jira"])
    expect((await home.run(["plugin", "add", "bezel-plugin-jira"])).code).toBe(0)
  })

  it("says which package or version there is none of, and changes nothing", async () => {
    const registry = await startRegistry({ "bezel-plugin-jira": { "1.2.0": plugin("bezel-plugin-jira", "1.2.0") } })
    const home = homeWith(registry)
    const unknown = await home.run(["plugin", "add", "bezel-plugin-jra"])
    expect(unknown).toMatchObject({ code: 1, stdout: "" })
    expect(unknown.stderr).toMatch(/^bezel: .*bezel-plugin-jra.*(not found|is not in this registry)/i)
    const version = await home.run(["plugin", "add", "bezel-plugin-jira@9.9.9"])
    expect(version.stderr).toMatch(/^bezel: .*No matching version found for bezel-plugin-jira@9\.9\.9/)
    expect([versionOf(home), settingsOf(home)]).toEqual([null, ""])
  })

  it("installs the peers of a package, and theirs, but none that the program gives, and takes them away with it", async () => {
    const peers = { peerDependencies: { words: "^1.0.0 || ^2.0.0", effect: ">=4", "@bezel/core": "*" } }
    const registry = await startRegistry({
      "bezel-plugin-jira": {
        "1.0.0": plugin("bezel-plugin-jira", "1.0.0", {
          peerDependencies: { ...peers.peerDependencies, later: "*" },
          peerDependenciesMeta: { later: { optional: true } }
        }, `import { word } from "words"; if (word !== "there") throw new Error(word)`)
      },
      words: {
        "1.9.0": library("words", "1.9.0"),
        "2.1.0": library("words", "2.1.0", { peerDependencies: { letters: "1" } })
      },
      letters: { "1.0.0": library("letters", "1.0.0") }
    })
    const home = homeWith(registry)
    const added = await home.run(["plugin", "add", "bezel-plugin-jira"])
    expect(added).toMatchObject({ code: 0, stderr: "", stdout: "added bezel-plugin-jira 1.0.0, for session\n" })
    expect(JSON.parse(read(join(folderOf(home), "package.json"))).dependencies).toEqual({
      "bezel-plugin-jira": "1.0.0",
      words: "2.1.0",
      letters: "1.0.0"
    })
    expect(new Set(registry.asked.map((path) => path.split("/-/")[0]))).toEqual(
      new Set(["bezel-plugin-jira", "words", "letters"])
    )
    expect((await home.run(["tool", "list"])).stdout).toContain("Jira of 1.0.0.")
    expect(await home.run(["plugin", "remove", "bezel-plugin-jira"])).toMatchObject({ code: 0, stderr: "" })
    expect(JSON.parse(read(join(folderOf(home), "package.json")))).not.toHaveProperty("bezelPeers")
    expect(existsSync(join(folderOf(home), "node_modules/words"))).toBe(false)
    expect(existsSync(join(folderOf(home), "node_modules/letters"))).toBe(false)
  })

  it("takes the newest version that fits the Node of the program, whatever Node npm would run on", async () => {
    const newest = plugin("bezel-plugin-jira", "2.0.0", { engines: { node: `>=${process.versions.node}` } })
    const registry = await startRegistry({
      "bezel-plugin-jira": { "1.0.0": plugin("bezel-plugin-jira", "1.0.0"), "2.0.0": newest }
    })
    const home = homeWith(registry)
    home.write("old/node", "#!/bin/sh\nexit 9\n")
    chmodSync(join(home.folder, "old/node"), 0o755)
    const path = `${join(home.folder, "old")}:${process.env.PATH ?? ""}`
    expect(await home.run(["plugin", "add", "bezel-plugin-jira"], { env: { PATH: path } })).toMatchObject({
      code: 0,
      stdout: "added bezel-plugin-jira 2.0.0, for session\n"
    })
  })

  it("takes a package away again whose peers there are not", async () => {
    const registry = await startRegistry({
      "bezel-plugin-jira": { "1.0.0": plugin("bezel-plugin-jira", "1.0.0", { peerDependencies: { nowhere: "^1" } }) }
    })
    const home = homeWith(registry)
    expect(await home.run(["plugin", "add", "bezel-plugin-jira"])).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^bezel: bezel-plugin-jira was not added: npm install failed: .*nowhere/)
    })
    expect(versionOf(home)).toBeNull()
    expect(settingsOf(home)).toBe("")
  })
})
