/** Rules and settings with a slip of the pen: told by name, so that nobody believes to be protected who is not. */
import { describe, expect, it } from "vitest"
import { makeHome } from "./command.ts"
import { runInTerminal } from "./terminal.ts"

describe("a permission rule for a tool that there is not", () => {
  it.each([
    ["--deny", "wrte", `--deny wrte: there is no tool "wrte" here; did you mean write?`],
    ["--deny", "bsh(rm *)", `--deny bsh(rm *): there is no tool "bsh" here; did you mean bash?`],
    [
      "--allow",
      "nosuchtool",
      `--allow nosuchtool: there is no tool "nosuchtool" here; there are apply_patch, bash, edit, `
    ]
  ])("is refused on the command line: %s %s", async (option, rule, message) => {
    const home = makeHome()
    const ended = await home.run(["run", option, rule, "read a.txt"])
    expect(ended).toMatchObject({ code: 2, stdout: "" })
    expect(ended.stderr).toMatch(/^bezel: [^\n]*\n$/)
    expect(ended.stderr).toContain(`bezel: ${message}`)
  })

  it("is told in settings and agents, and the run goes on", async () => {
    const home = makeHome()
    home.settings({
      permissions: { bsh: "deny", "*": "allow", write: "deny", bash: "deny", ticket: { "SHOP-*": "allow" } },
      agents: { mine: { tools: { wrte: false }, permissions: { edit: "deny" } } }
    })
    const { code, stderr } = await home.run(["run", "read a.txt"])
    expect(code).toBe(0)
    expect(stderr.split("\n").filter((line) => line.startsWith("bezel: "))).toEqual([
      `bezel: A rule of the setting permissions has no effect: there is no tool "bsh" here; did you mean bash?`,
      `bezel: What the agent "mine" (settings) says of a tool has no effect: there is no tool "wrte" here; did you mean write?`
    ])
  })

  it("is one no more where a plugin brings that tool, and may be one where a plugin's tool has accesses of its own", async () => {
    const home = makeHome()
    const plugin = (more: string) =>
      `import * as Effect from "effect/Effect"
      import * as Schema from "effect/Schema"
      import { Plugin, tool } from "@bezel/core"
      export default Plugin.define({ id: "test.web", session: (ctx) => ctx.tool.transform((draft) => draft.set("web", tool({
        description: "Fetches.", input: Schema.Struct({}), ${more} execute: () => Effect.void
      }))) })`
    home.write(".config/bezel/plugins/web.ts", plugin(""))
    expect((await home.run(["run", "--deny", "web", "read a.txt"])).code).toBe(0)
    expect((await home.run(["run", "--deny", "net", "read a.txt"])).code).toBe(2)
    home.write(".config/bezel/plugins/web.ts", plugin(`permission: () => ({ access: "net", subjects: [] }),`))
    const { code, stderr } = await home.run(["run", "--deny", "net", "read a.txt"])
    expect(code).toBe(0)
    expect(stderr).toMatch(/^bezel: --deny net may have no effect: there is no tool "net" here; /m)
  })
})

describe("a setting that has no effect", () => {
  it("is told by doctor, as is whatever else is odd about how plugins start", async () => {
    const home = makeHome()
    home.settings({ model: "bezel/offline", permissions: { bsh: "deny" }, plugins: ["./nope.ts"] })
    const { code, stdout } = await home.run(["doctor"])
    const lines = stdout.split("\n").filter((line) => /^[!✗]/.test(line))
    expect([code, lines]).toEqual([1, [
      `! plugins: A rule of the setting permissions has no effect: there is no tool "bsh" here; did you mean bash?`,
      expect.stringMatching(/^✗ plugins: nope\.ts failed: .*the file does not exist$/)
    ]])
  })

  it("is told on the screen: a theme, the command of a key, and what the log was warned of", async () => {
    const home = makeHome()
    home.settings({ theme: "drak", keybindings: { "ctrl+t": "no.such", "ctrl+y": null }, permissions: { bsh: "deny" } })
    const terminal = runInTerminal(home, "bezel")
    await terminal.shows(/There is no theme "drak"; there are terminal, dark, light\./)
    await terminal.shows(/ctrl\+t is bound to no\.such, which does not exist\./)
    await terminal.shows(/A rule of the setting permissions has no effect: there is no tool "bsh"/)
    terminal.type("\u0004")
    expect((await terminal.ended).code).toBe(0)
  })
})
