/** Choices that a person makes in the terminal: the theme is kept, the model and the level of thinking hold for the conversation. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { startModelServer } from "../../packages/core/src/testing/model-server.ts"
import { makeHome } from "./command.ts"
import { runInTerminal } from "./terminal.ts"

const settingsOf = (folder: string) => readFileSync(join(folder, ".config/bezel/bezel.jsonc"), "utf8")

describe("a choice in the terminal", { timeout: 60_000 }, () => {
  it("of a theme, also of one's own, is shown at once and written into the settings beside their comments", async () => {
    const home = makeHome()
    home.write(".config/bezel/bezel.jsonc", '{\n  // the default\n  "model": "bezel/offline"\n}\n')
    home.write(".config/bezel/themes/sea.json", '{ "colors": { "accent": "#010203", "muted": "#010203" } }')
    home.write(".config/bezel/themes/broken.json", "{")
    const terminal = runInTerminal(home, "bezel")
    await terminal.shows(/broken\.json is no theme/)
    terminal.type("/theme nowhere\r")
    await terminal.shows(/There is no theme nowhere; there are terminal, dark, light, sea/)
    terminal.type("/theme sea\r")
    await expect.poll(() => settingsOf(home.folder), { timeout: 20_000 }).toBe(
      '{\n  // the default\n  "model": "bezel/offline",\n  "theme": "sea"\n}\n'
    )
    terminal.type("list\r")
    await terminal.shows(/✓ list/)
    terminal.type("\u0004")
    expect((await terminal.ended).raw).toContain("38;2;1;2;3")
    const again = runInTerminal(home, "bezel")
    await again.shows(/bezel\/offline/)
    again.type("list\r")
    await again.shows(/✓ list/)
    again.type("\u0004")
    expect((await again.ended).raw).toContain("38;2;1;2;3")
    expect(again.text()).not.toContain("There is no theme")
  })

  it("of a model and of thinking goes with the next request", async () => {
    const server = await startModelServer({ text: "first" }, { text: "second" })
    const home = makeHome()
    const models = { m: { name: "M" }, n: { name: "The other", reasoning: true } }
    home.settings({
      model: "test/m",
      providers: {
        test: { package: "@ai-sdk/openai-compatible", options: { baseURL: server.url, apiKey: "k" }, models }
      }
    })
    const terminal = runInTerminal(home, "bezel")
    await terminal.shows(/test\/m/)
    terminal.type("/model\r")
    await terminal.shows(/test\/n +The other · thinks/)
    await terminal.shows(/enter choose · esc cancel/)
    terminal.type("\u001b")
    await expect.poll(terminal.text, { timeout: 20_000 }).not.toContain("enter choose")
    terminal.type("/model test/n\r")
    await terminal.shows(/test\/n/)
    terminal.type("\u0014")
    await terminal.shows(/Thinking: low/)
    terminal.type("/thinking lots\r")
    await terminal.shows(/There is no level lots/)
    terminal.type("hello\r")
    await terminal.shows(/first/)
    expect(server.requests[0]?.body).toMatchObject({ model: "n", reasoning_effort: "low" })
    terminal.type("\u0004")
    await terminal.ended
    await server.close()
  })
})
