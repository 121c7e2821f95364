import { copyFileSync, mkdirSync, symlinkSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it, onTestFinished } from "vitest"
import { startModelServer } from "../../packages/core/src/testing/model-server.ts"
import { type Home, makeHome, root } from "./command.ts"

const example = join(root, "examples/plugin/ticket.ts")

const withExample = (home: Home, folder: string) => {
  mkdirSync(join(home.folder, folder), { recursive: true })
  copyFileSync(example, join(home.folder, folder, "ticket.ts"))
  home.write("work/tickets.json", JSON.stringify([{ id: "SHOP-12", title: "Cart loses items", status: "open" }]))
}

describe.each([["the bundle", {}], ["the source", { BEZEL_SOURCE: "1" }]])(
  "a plugin file from outside, with %s,",
  (_, env) => {
    it("offers its tool to the model, and its Effect is the program's own", async () => {
      const home = makeHome()
      withExample(home, ".config/bezel/plugins")
      const server = await startModelServer(
        {
          calls: [{ id: "a", name: "ticket", args: { id: "SHOP-12" } }, {
            id: "b",
            name: "ticket",
            args: { id: "SHOP-13" }
          }]
        },
        { text: "It is open." }
      )
      onTestFinished(() => server.close())
      home.useServer(server)
      const ended = await home.run(["run", "--allow", "ticket", "what is SHOP-12?"], { env })
      expect(ended).toMatchObject({
        code: 0,
        stdout: "It is open.\n",
        stderr: "✓ ticket SHOP-12\n✗ ticket SHOP-13 (failed)\n"
      })
      const sent = JSON.stringify(server.requests[1]?.body)
      expect(sent).toContain("SHOP-12 (open): Cart loses items")
      expect(sent).toContain("There is no ticket SHOP-13; there are SHOP-12.")
    })
  }
)

describe("plugins from outside", () => {
  it("can import the barrel of Effect and the faces of core", async () => {
    const home = makeHome()
    home.write(
      ".config/bezel/plugins/barrel.ts",
      `
      import { Effect, Schema } from "effect"
      import { Plugin, tool } from "@bezel/core"
      export default Plugin.define({ id: "test.barrel", session: (ctx) => Effect.gen(function*() {
        yield* ctx.tool.transform((draft) => draft.set("answer", tool({
          description: "Answers.", input: Schema.Struct({}), execute: () => Effect.succeed("42")
        })))
      }) })`
    )
    expect((await home.run(["tool", "list"])).stdout).toMatch(/^answer +test\.barrel +Answers\.$/m)
  })

  it("in a project are left alone until it is trusted", async () => {
    const home = makeHome()
    withExample(home, "work/.bezel/plugins")
    expect((await home.run(["plugin", "list"])).stdout).not.toContain("example.ticket")
    expect((await home.run(["plugin", "list", "--trust"])).stdout).toMatch(
      /^example\.ticket +1\.0\.0 +loaded +\/.*ticket\.ts$/m
    )
  })

  it("that fail take nothing else with them, and are listed with what is wrong", async () => {
    const home = makeHome()
    withExample(home, ".config/bezel/plugins")
    home.write(
      ".config/bezel/plugins/broken.ts",
      `import { readFileSync } from "node:fs"\nreadFileSync("/nowhere/at/all")\nexport default {}`
    )
    home.write(".config/bezel/plugins/empty.ts", "export const nothing = 1")
    home.write(".config/bezel/plugins/odd.ts", `import "effect/rpc/Rpc"\nexport default {}`)
    home.settings({ plugins: ["./missing.ts", "no-such-package"] })
    const { code, stdout } = await home.run(["plugin", "list", "--json"])
    const states = stdout.trim().split("\n").map((line) => JSON.parse(line)).filter((item) =>
      !item.id.startsWith("bezel.")
    )
    expect(code).toBe(0)
    expect(states.map((item) => [item.id, item.state])).toEqual([
      ["missing.ts", "failed"],
      ["no-such-package", "failed"],
      ["broken.ts", "failed"],
      ["empty.ts", "failed"],
      ["odd.ts", "failed"],
      ["example.ticket", "loaded"]
    ])
    const errors = states.map((item) => item.error)
    expect(errors[0]).toMatch(/does not exist/)
    expect(errors[1]).toMatch(/no package "no-such-package"/)
    expect(errors[2]).toMatch(/ENOENT.*\/nowhere\/at\/all/)
    expect(errors[3]).toMatch(/Plugin\.define/)
    expect(errors[4]).toMatch(/effect\/rpc\/Rpc.*docs\/plugins\.md/)
    expect((await home.run(["run", "read tickets.json"])).code).toBe(0)
  })

  it("are told what is wrong with how they call themselves and with what their facet gives", async () => {
    const home = makeHome()
    const plugins: { readonly [file: string]: string } = {
      "a.mjs": `{ id: "two words" }`,
      "b.mjs": `{ id: "" }`,
      "c.mjs": `{ id: "test.c", version: 3 }`,
      "d.mjs": `{ id: "bezel.tools", session: () => { throw new Error("on purpose") } }`,
      "e.mjs": `{ id: "test.e", session: async () => {} }`,
      "f.mjs": `{ id: "test.f", session: () => {} }`
    }
    for (const [file, plugin] of Object.entries(plugins)) {
      home.write(`.config/bezel/plugins/${file}`, `export default ${plugin}`)
    }
    const { code, stdout } = await home.run(["plugin", "list", "--json"])
    const states = stdout.trim().split("\n").map((line) => JSON.parse(line))
    expect(code).toBe(0)
    expect(states.filter(({ id }) => id === "bezel.tools")).toEqual([expect.objectContaining({ state: "loaded" })])
    const failed = states.filter(({ state }) => state === "failed").map(({ error, id }) => [id, error])
    expect(failed).toEqual([
      ["a.mjs", expect.stringMatching(/its id "two words" is none: letters, digits,/)],
      ["b.mjs", expect.stringMatching(/its id "" is none/)],
      ["c.mjs", expect.stringMatching(/its version is 3, where a text such as "1\.0\.0" belongs/)],
      ["d.mjs", expect.stringMatching(/its id "bezel\.tools" is of a kind that only built-in plugins have/)],
      ["test.e", expect.stringMatching(/its session facet gave a Promise and not an Effect; write it with Effect\.fn/)],
      ["test.f", expect.stringMatching(/its session facet gave undefined and not an Effect/)]
    ])
  })

  it("that are reachable twice, also through a symbolic link, are one", async () => {
    const home = makeHome()
    withExample(home, ".config/bezel/plugins")
    symlinkSync(
      join(home.folder, ".config/bezel/plugins/ticket.ts"),
      join(home.folder, ".config/bezel/plugins/zwei.ts")
    )
    home.settings({ plugins: ["./plugins/ticket.ts"] })
    const { stdout } = await home.run(["plugin", "list"])
    expect(stdout.match(/example\.ticket/g)).toHaveLength(1)
    expect(stdout).not.toContain("failed")
  })

  it("stand behind the built-in ones: first those that settings name, then the user's folder, then the project's", async () => {
    const home = makeHome()
    // Each by a name that an order by names would put elsewhere.
    const files = {
      "named/m.ts": "test.named",
      ".config/bezel/plugins/z.ts": "test.user",
      "work/.bezel/plugins/a.ts": "test.project"
    }
    for (const [file, id] of Object.entries(files)) {
      home.write(
        file,
        `import { Plugin } from "@bezel/core"\nexport default Plugin.define({ id: "${id}", session: (ctx) => ctx.log.info("here") })`
      )
    }
    home.settings({ plugins: [join(home.folder, "named/m.ts")] })
    const { stdout } = await home.run(["plugin", "list", "--json", "--trust"])
    const ids: ReadonlyArray<string> = stdout.trim().split("\n").map((line) => JSON.parse(line).id)
    expect(ids.slice(-3)).toEqual(["test.named", "test.user", "test.project"])
    expect(ids.slice(0, -3).every((id) => id.startsWith("bezel."))).toBe(true)
  })

  it("get the options that the settings give them", async () => {
    const home = makeHome()
    home.write(
      "tools/say.ts",
      `
      import * as Effect from "effect/Effect"
      import * as Schema from "effect/Schema"
      import { Plugin, tool } from "@bezel/core"
      const session = Effect.fn("say")(function*(ctx) {
        const { word } = yield* Schema.decodeUnknownEffect(Schema.Struct({ word: Schema.String }))(ctx.options)
        yield* ctx.tool.transform((draft) => draft.set("say", tool({ description: word, input: Schema.Struct({}), execute: () => Effect.void })))
      })
      export default Plugin.define({ id: "test.say", session })`
    )
    home.settings({ plugins: [{ source: "../../tools/say.ts", options: { word: "Moin." } }] })
    expect((await home.run(["tool", "list"])).stdout).toMatch(/^say +test\.say +Moin\.$/m)
  })

  it("decide for the whole host only with the grant of the settings", async () => {
    const home = makeHome()
    home.write(
      "decides.ts",
      `
      import { Plugin } from "@bezel/core"
      export default Plugin.define({ id: "test.decides", session: (ctx) => ctx.turns.configure({}) })`
    )
    const source = join(home.folder, "decides.ts")
    const state = async () => {
      const { stdout } = await home.run(["plugin", "list", "--json"])
      return stdout.trim().split("\n").map((line) => JSON.parse(line)).find((item) =>
        JSON.stringify(item).includes("decides")
      )
    }
    home.settings({ plugins: [source] })
    expect(await state()).toMatchObject({
      state: "failed",
      error: expect.stringContaining('Plugin test.decides is not granted the power "turns"')
    })
    home.settings({ plugins: [{ source, grants: ["turns"] }] })
    expect(await state()).toMatchObject({ state: "loaded" })
    home.settings({ plugins: [{ source, grants: ["turn"] }] })
    expect(await state()).toMatchObject({
      state: "failed",
      error: expect.stringContaining('there is no power "turn" to grant; there are turns, reverting')
    })
  })

  it("that fail are told by bezel run, each on a line of stderr with its phase, and as events with --json", async () => {
    const home = makeHome()
    const plugin = (id: string, facet: string) =>
      `import * as Effect from "effect/Effect"\nexport default { id: "${id}", session: ${facet} }`
    home.write(".config/bezel/plugins/a.ts", `throw new Error("no import today")`)
    home.write(".config/bezel/plugins/b.ts", plugin("test.b", `() => Effect.fail(new Error("no setup today"))`))
    home.settings({ plugins: ["./nope.ts"] })
    const { code, stderr } = await home.run(["run", "read a.txt"], { env: { BEZEL_SOURCE: "1" } })
    expect(code).toBe(0)
    const lines = stderr.split("\n").filter((line) => line.startsWith("bezel: Plugin"))
    expect(lines).toHaveLength(3)
    expect(lines[0]).toMatch(/^bezel: Plugin nope\.ts failed .* load: .*nope\.ts: the file does not exist$/)
    expect(lines[1]).toMatch(/^bezel: Plugin a\.ts failed .* load: .*no import today$/)
    expect(lines[2]).toMatch(/^bezel: Plugin test\.b failed .* setup: no setup today$/)
    const json = await home.run(["run", "--json", "read a.txt"], { env: { BEZEL_SOURCE: "1" } })
    expect(json.stderr).toBe("")
    expect(json.lines().filter((line) => line.type === "warning")).toHaveLength(3)
  })

  it("that take long to start are told while they are waited for", async () => {
    const home = makeHome()
    home.write(
      ".config/bezel/plugins/slow.ts",
      `import * as Effect from "effect/Effect"
      export default { id: "test.slow", session: () => Effect.andThen(Effect.sleep("1300 millis"), Effect.fail(new Error("late"))) }`
    )
    home.write(
      ".config/bezel/plugins/late.ts",
      `await new Promise((done) => setTimeout(done, 1200))\nexport default { id: "test.late" }`
    )
    const { stderr } = await home.run(["run", "read a.txt"], { env: { BEZEL_SOURCE: "1" } })
    expect(stderr.split("\n").slice(0, 3)).toEqual([
      `bezel: Waiting for plugin ${home.folder}/.config/bezel/plugins/late.ts to load.`,
      "bezel: Waiting for plugin test.slow (setup in the session host, at most 10 s).",
      "bezel: Plugin test.slow failed in the session host during setup: late"
    ])
  })
})
