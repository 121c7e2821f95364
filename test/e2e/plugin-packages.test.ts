import { cpSync, mkdirSync, readFileSync, symlinkSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { type Home, makeHome } from "./command.ts"

const source = { env: { BEZEL_SOURCE: "1" } }

const tool = (name: string) => `
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { tool } from "@bezel/core/tool"
const session = (ctx) => Effect.asVoid(ctx.tool.transform((draft) =>
  draft.set("${name}", tool({ description: "Says ${name}.", input: Schema.Struct({}), execute: () => Effect.succeed("${name}") }))
))
`

/** A package with an entry point for each host; its main file must never be imported. */
const withEntries = (home: Home, folder: string, version = "1.2.0", more: object = {}) => {
  home.write(
    `${folder}/package.json`,
    JSON.stringify({
      name: "bezel-plugin-jira",
      version,
      type: "module",
      exports: { ".": "./index.js", "./session": { import: "./dist/session.js" }, "./tui": "./dist/tui.js" },
      peerDependencies: { effect: "^4.1.0", "@bezel/core": "^0.1.0" },
      ...more
    })
  )
  home.write(`${folder}/index.js`, `throw new Error("nobody imports this")`)
  home.write(`${folder}/dist/session.js`, `${tool("jira")}\nexport default session`)
  home.write(`${folder}/dist/tui.js`, `import { Effect } from "effect"\nexport default () => Effect.void`)
  return join(home.folder, folder)
}

const withDefault = (home: Home, folder: string, name = "@acme/say") => {
  home.write(`${folder}/package.json`, JSON.stringify({ name, version: "2.0.0", type: "module", main: "main.js" }))
  home.write(
    `${folder}/main.js`,
    `import { Plugin } from "@bezel/core"\n${tool("say")}\nexport default Plugin.define({ id: "acme.say", session })`
  )
  return join(home.folder, folder)
}

const outside = async (home: Home, argv: ReadonlyArray<string> = []) =>
  (await home.run(["plugin", "list", "--json", ...argv], source)).stdout.trim().split("\n").map((line) =>
    JSON.parse(line)
  )
    .filter((item) => item.source !== "built in")

describe("bezel plugin add", { timeout: 150_000 }, () => {
  it("installs a folder as a package, for each host its own entry point, and remove takes it away", async () => {
    const home = makeHome()
    const folder = withEntries(home, "jira", "1.2.0", {
      scripts: { postinstall: "touch ../../../../ran", prepare: "touch ../../../../ran" }
    })
    home.settings('{\n  // mine\n  "theme": "dark", // stays\n}\n')
    const added = await home.run(["plugin", "add", folder], source)
    expect(added).toMatchObject({ code: 0, stderr: "", stdout: "added bezel-plugin-jira 1.2.0, for session and tui\n" })
    const settings = join(home.folder, ".config/bezel/bezel.jsonc")
    expect(readFileSync(settings, "utf8")).toMatch(
      /\/\/ mine\n {2}"theme": "dark",[^]*"bezel-plugin-jira"[^]*\/\/ stays/
    )
    expect(readFileSync(join(home.folder, ".config/bezel/plugins/package-lock.json"), "utf8")).toContain("jira")
    expect((await home.run(["tool", "list"], source)).stdout).toMatch(/^jira +bezel-plugin-jira +Says jira\.$/m)
    expect(await outside(home)).toMatchObject([
      { id: "bezel-plugin-jira", version: "1.2.0", state: "loaded", source: "bezel-plugin-jira", error: null, also: [] }
    ])
    expect((await home.run(["plugin", "doctor"], source)).stdout).toMatch(
      /^✓ bezel-plugin-jira: bezel-plugin-jira 1\.2\.0, for session and tui$/m
    )
    const removed = await home.run(["plugin", "remove", "bezel-plugin-jira"], source)
    expect(removed).toMatchObject({ code: 0, stdout: "removed bezel-plugin-jira\n", stderr: "" })
    expect(await outside(home)).toEqual([])
    expect(readFileSync(settings, "utf8")).toMatch(/\/\/ mine/)
    expect(() => readFileSync(join(home.folder, "ran"))).toThrow()
  })

  it("installs a tarball with a default export, and names a file where it is", async () => {
    const home = makeHome()
    cpSync(withDefault(home, "say"), join(home.folder, "packed/package"), { recursive: true })
    const { execFileSync } = await import("node:child_process")
    execFileSync("tar", ["czf", join(home.folder, "say.tgz"), "-C", join(home.folder, "packed"), "package"])
    const added = await home.run(["plugin", "add", "../say.tgz"], source)
    expect(added).toMatchObject({ code: 0, stdout: "added @acme/say 2.0.0, for session\n", stderr: "" })
    const file = home.write(
      "own.ts",
      `import { Plugin } from "@bezel/core"\nexport default Plugin.define({ id: "acme.own" })`
    )
    expect((await home.run(["plugin", "add", file], source)).stdout).toContain(`added ${file}`)
    expect((await outside(home)).map(({ id, source, version }) => [id, source, version])).toEqual([
      ["acme.say", "@acme/say", "2.0.0"],
      ["acme.own", file, null]
    ])
    expect((await home.run(["plugin", "remove", file], source)).code).toBe(0)
    expect(await outside(home)).toHaveLength(1)
    expect(await home.run(["plugin", "remove", "nothing"], source)).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/nothing is neither installed in .* nor named in .*; installed are @acme\/say\n$/)
    })
  })

  it("takes the newer version when it is called again, and leaves a settings file alone that cannot be read", async () => {
    const home = makeHome()
    const spec = withDefault(home, "say")
    expect((await home.run(["plugin", "add", spec], source)).code).toBe(0)
    home.write(
      "say/package.json",
      JSON.stringify({ name: "@acme/say", version: "2.1.0", type: "module", main: "main.js" })
    )
    expect(await home.run(["plugin", "add", spec], source)).toMatchObject({
      code: 0,
      stdout: "added @acme/say 2.1.0, for session\n"
    })
    expect(await outside(home)).toMatchObject([{ id: "acme.say", version: "2.1.0", also: [] }])
    home.settings("{ broken")
    expect(await home.run(["plugin", "remove", "@acme/say"], source)).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(
        /bezel\.jsonc could not be changed \(it is not valid\); take "@acme\/say" out of it/
      )
    })
    expect(await home.run(["plugin", "add", "./nowhere"], source)).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/there is no file and no folder .*nowhere/)
    })
    home.write("broken.tgz", "no archive")
    expect(await home.run(["plugin", "add", "../broken.tgz"], source)).toMatchObject({
      code: 1,
      stdout: "",
      stderr: expect.stringMatching(/^bezel: npm install failed: \S/)
    })
  })

  it("says that npm is missing, and takes away what is no plugin", async () => {
    const home = makeHome()
    home.write("odd/package.json", JSON.stringify({ name: "odd", version: "1.0.0", main: "odd.js" }))
    home.write("odd/odd.js", "module.exports = 1")
    const ended = await home.run(["plugin", "add", join(home.folder, "odd")], source)
    expect(ended).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^bezel: odd was not added: it is no plugin/)
    })
    const folder = join(home.folder, ".config/bezel/plugins")
    expect(JSON.parse(readFileSync(join(folder, "package.json"), "utf8")).dependencies ?? {}).toEqual({})
    // Only the Node that runs the program, and nothing beside it.
    mkdirSync(join(home.folder, "bin"))
    symlinkSync(process.execPath, join(home.folder, "bin/node"))
    for (const name of ["sh", "dirname", "readlink", "env"]) {
      symlinkSync(`/usr/bin/${name}`, join(home.folder, "bin", name))
    }
    const without = { env: { ...source.env, PATH: join(home.folder, "bin") } }
    const missing = await home.run(["plugin", "add", withDefault(home, "say")], without)
    expect(missing).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^bezel: there is no npm on the PATH.*install/)
    })
  })
})

describe("a plugin package", { timeout: 150_000 }, () => {
  it("that user, project and a symbolic link lead to is one plugin, and the others are told", async () => {
    const home = makeHome()
    withEntries(home, ".config/bezel/plugins/node_modules/bezel-plugin-jira")
    mkdirSync(join(home.work, "node_modules"))
    symlinkSync(
      join(home.folder, ".config/bezel/plugins/node_modules/bezel-plugin-jira"),
      join(home.work, "node_modules/linked-jira")
    )
    home.settings({ plugins: ["bezel-plugin-jira"] })
    home.write("work/bezel.jsonc", JSON.stringify({ plugins: ["bezel-plugin-jira", "linked-jira"] }))
    const list = await outside(home, ["--trust"])
    expect(list).toMatchObject([{
      id: "bezel-plugin-jira",
      state: "loaded",
      also: ["bezel-plugin-jira", "linked-jira"]
    }])
    const doctor = await home.run(["plugin", "doctor", "--trust"], source)
    expect(doctor).toMatchObject({ code: 0, stderr: "" })
    expect(doctor.stdout).toContain(
      "! bezel-plugin-jira: linked-jira is the same plugin as bezel-plugin-jira, so it is loaded once; take one of them away"
    )
    expect(doctor.stdout).toContain(
      "! bezel-plugin-jira: bezel-plugin-jira is named more than once and is loaded once; take the other mentions away"
    )
  })

  it("is told what is wrong with it, by doctor, with what to do", async () => {
    const home = makeHome()
    const modules = ".config/bezel/plugins/node_modules"
    withEntries(home, `${modules}/bezel-plugin-jira`, "1.2.0", {
      dependencies: { effect: "^3.10.0" },
      peerDependencies: {}
    })
    home.write(`${modules}/bezel-plugin-jira/dist/tui.js`, "export const nothing = 1")
    withDefault(home, `${modules}/@acme/say`)
    withDefault(home, `${modules}/@acme/again`, "@acme/again")
    home.write(
      `${modules}/foreign/package.json`,
      JSON.stringify({ name: "foreign", type: "module", exports: { "./session": "./s.js" } })
    )
    home.write(`${modules}/foreign/s.js`, "export default () => ({ _tag: 'Effect' })")
    home.write(`${modules}/gone/package.json`, JSON.stringify({ name: "gone", exports: { "./session": "./gone.js" } }))
    home.write(`${modules}/none/package.json`, JSON.stringify({ name: "none", exports: { "./other": "./other.js" } }))
    const clash = home.write(
      "clash.ts",
      `import { Plugin } from "@bezel/core"\n${
        tool("say")
      }\nexport default Plugin.define({ id: "acme.clash", session })`
    )
    home.settings({
      plugins: ["bezel-plugin-jira", "@acme/say", "@acme/again", "foreign", "gone", "none", "absent", clash]
    })
    const ended = await home.run(["plugin", "doctor"], source)
    expect(ended.code).toBe(1)
    for (
      const line of [
        /^✗ bezel-plugin-jira: .*the default export of its "\.\/tui" is not a facet; /m,
        /^! bezel-plugin-jira: it brings a copy of effect, which is not used: the program's 4\.\S+ is; /m,
        /^! bezel-plugin-jira: it was written for effect \^3\.10\.0, and this program has 4\./m,
        /^✗ again-3: .*its id "acme\.say" is taken by @acme\/say; /m,
        /^✗ foreign: .*did not give an Effect of the "effect" that this program runs with/m,
        /^✗ gone: .*exports "\.\/session" as \.\/gone\.js, and there is no such file; /m,
        /^✗ none: .*no entry point: its package\.json exports none of "\.\/session", /m,
        /^! acme\.clash: its tool say takes the place of that of acme\.say$/m,
        /^✗ absent: .*there is no package "absent" in .*; bezel plugin add absent installs it; /m
      ]
    ) expect(ended.stdout).toMatch(line)
    expect(await home.run(["run", "list"], source)).toMatchObject({ code: 0 })
  })

  it("that settings switch off is not loaded, also when it is named again", async () => {
    const home = makeHome()
    withEntries(home, ".config/bezel/plugins/node_modules/bezel-plugin-jira")
    home.settings({ plugins: [{ source: "bezel-plugin-jira", enabled: false }, "bezel-plugin-jira"] })
    expect(await outside(home)).toEqual([])
  })
})
