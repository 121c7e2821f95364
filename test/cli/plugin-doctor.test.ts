import { describe, expect, it } from "vitest"
import { makeHome } from "../e2e/command.ts"

const source = { env: { BEZEL_SOURCE: "1" } }

describe("bezel plugin doctor", { timeout: 30_000 }, () => {
  it("finds nothing to say where only the built-in plugins are", async () => {
    const home = makeHome()
    const ended = await home.run(["plugin", "doctor"], source)
    expect(ended).toMatchObject({ code: 0, stderr: "" })
    expect(ended.stdout).toMatch(/^✓ bezel\.tools: built in \d/m)
    expect(ended.stdout).not.toMatch(/^[!✗]/m)
  })

  it("says of each plugin what is wrong with it and what to do, and ends with 1", async () => {
    const home = makeHome()
    const plugin = (id: string, body: string) =>
      `import { Plugin } from "@bezel/core/host"\nexport default Plugin.define({ id: "${id}", version: "1.2.0", ${body} })`
    home.write(".config/bezel/plugins/broken.ts", "export default {")
    home.write(".config/bezel/plugins/empty.ts", plugin("acme.empty", ""))
    home.write(
      ".config/bezel/plugins/good.ts",
      `import * as Effect from "effect/Effect"\n${
        plugin("acme.good", "session: () => Effect.void, tui: () => Effect.void")
      }`
    )
    home.write(
      ".config/bezel/plugins/wraps.ts",
      plugin("acme.wraps", 'session: (ctx) => ctx.tool.transform((draft) => draft.wrap("absent", (next) => next))')
    )
    home.write("work/.bezel/plugins/own.ts", plugin("acme.own", ""))
    const ended = await home.run(["plugin", "doctor"], source)
    expect(ended.code).toBe(1)
    const lines = ended.stdout.split("\n").filter((line) => !line.includes("built in"))
    expect(lines).toEqual([
      expect.stringMatching(
        /^✗ broken\.ts: .*broken\.ts: .*; mend its file, or take it out of the setting "plugins" or the plugin folder that it lies in$/
      ),
      expect.stringMatching(
        /^! acme\.empty: .*empty\.ts: it has nothing for any host; Plugin\.define takes one of session, tui/
      ),
      expect.stringMatching(/^✓ acme\.good: .*good\.ts 1\.2\.0, for session and tui$/),
      expect.stringMatching(/^✓ acme\.wraps: .*wraps\.ts 1\.2\.0, for session$/),
      expect.stringMatching(
        /^✗ acme\.wraps: A transform of tools by plugin acme\.wraps failed .*there is no tool "absent"/
      ),
      "! bezel: the plugins in .bezel/plugins are left out; start bezel here to be asked, or pass --trust",
      ""
    ])
    const json = await home.run(["plugin", "doctor", "--json"], source)
    expect(json.stdout.split("\n").filter(Boolean).map((line) => JSON.parse(line).state)).toContain("fault")
  })
})
