/** Plugins of the shipped command that are changed while it runs. */
import { writeFileSync } from "node:fs"
import { describe, expect, it, onTestFinished } from "vitest"
import { startModelServer } from "../../packages/core/src/testing/model-server.ts"
import { makeHome } from "./command.ts"
import { runInTerminal } from "./terminal.ts"

/** A tool that says which code it is, and a renderer that does, from two files. */
const plugin = (word: string) => `
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { Plugin } from "@bezel/core"
import { tool } from "@bezel/core/tool"
import { text } from "@bezel/tui"
import { shown } from "./shown.mjs"
export default Plugin.define({
  id: "acme.word",
  session: (ctx) => Effect.asVoid(ctx.tool.transform((draft) => draft.set("word", tool({
    description: "Says a word.", input: Schema.Struct({}), execute: () => Effect.succeed("said ${word}")
  })))),
  tui: (ctx) => ctx.slots.add("chat.footer", { order: 1, render: () => [text([shown + " ${word}"])] })
})
`

const calls = { calls: [{ name: "word", args: {} }] }

describe("/reload in the terminal", { timeout: 60_000 }, () => {
  it("runs new code of a plugin and its own files in session and terminal, and keeps the old where the new fails", async () => {
    const server = await startModelServer(calls, { text: "First." }, calls, { text: "Second." }, calls, {
      text: "Third."
    })
    onTestFinished(() => server.close())
    const home = makeHome()
    home.useServer(server, { permissions: { word: "allow" }, plugins: ["../../plugin/word.mjs"] })
    const file = home.write("plugin/word.mjs", plugin("one"))
    const shown = home.write("plugin/shown.mjs", `export const shown = "shows"`)
    const terminal = runInTerminal(home, "bezel")
    await terminal.shows(/shows one/)
    terminal.type("go\r")
    await terminal.shows(/said one[\s\S]*First\./)

    writeFileSync(file, plugin("two"))
    writeFileSync(shown, `export const shown = "now shows"`)
    terminal.type("/reload\r")
    await terminal.shows(/Reloaded acme\.word\./)
    await terminal.shows(/now shows two/)
    terminal.type("again\r")
    await terminal.shows(/said two[\s\S]*Second\./)

    writeFileSync(file, `throw new Error("half written")`)
    terminal.type("/reload acme.word\r")
    await terminal.shows(/acme\.word failed in the session host[\s\S]*half\s+written[\s\S]*nothing\s+was\s+changed/)
    terminal.type("still\r")
    await terminal.shows(/said two[\s\S]*Third\./)

    terminal.type("/reload acme.other\r")
    await terminal.shows(/There is no plugin acme\.other; from outside there are acme\.word\./)
    terminal.type("\u0004")
    expect((await terminal.ended).code).toBe(0)
    expect(JSON.stringify(server.requests.at(-1))).toContain("said two")
  })

  it("says that there is nothing to load anew where no plugin is from outside", async () => {
    const home = makeHome()
    const terminal = runInTerminal(home, "bezel")
    await terminal.shows(/bezel\/offline/)
    terminal.type("/reload\r")
    await terminal.shows(/No plugin is from outside, so there is nothing to load anew\./)
    terminal.type("\u0004")
    expect((await terminal.ended).code).toBe(0)
  })
})
