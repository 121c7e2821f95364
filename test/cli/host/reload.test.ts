import { execFile } from "node:child_process"
import { mkdtempSync, realpathSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { afterEach, describe, expect, it } from "vitest"

const folders: Array<string> = []

afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
})

/** In a process of its own: modules are Node's there, and so are the hooks that load them. */
const run = async (...steps: ReadonlyArray<unknown>): Promise<ReadonlyArray<unknown>> => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "bezel-reload-")))
  folders.push(folder)
  const program = join(import.meta.dirname, "program.ts")
  const { stdout } = await promisify(execFile)(process.execPath, [program, folder, JSON.stringify(steps)], {
    env: { ...process.env, HOME: folder, BEZEL_CONFIG_DIR: join(folder, "config") }
  })
  return JSON.parse(stdout.split("\n").at(-1) ?? "")
}

const plugin = (id: string, imports: string, answer: string, version = "1.0.0") => `
import { Plugin } from "@bezel/core/host"
import { tool } from "@bezel/core/tool"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
${imports}
export default Plugin.define({
  id: "${id}",
  version: "${version}",
  session: (ctx) => Effect.asVoid(ctx.tool.transform((draft) =>
    draft.set("greet", tool({ description: "Greets", input: Schema.Struct({}), execute: () => Effect.succeed(${answer}) }))
  ))
})`

const file = ".bezel/plugins/greet/index.ts"
const words = ".bezel/plugins/greet/words.ts"

describe("reloading a plugin from files", { timeout: 30_000 }, () => {
  it("runs the new text of its file, and of the files that this imports", async () => {
    expect(
      await run(
        { write: file, text: plugin("greet", 'import { word } from "./words.ts"', "word") },
        { write: words, text: 'export const word: string = "hello"' },
        { ask: "greet" },
        { write: words, text: 'export const word: string = "hi"' },
        { ask: "greet" },
        { reload: ["greet"] },
        { ask: "greet" },
        { write: file, text: plugin("greet", 'import { word } from "./words.ts"', 'word + "!"', "1.1.0") },
        { reload: [] },
        { ask: "greet" },
        { list: true }
      )
    ).toEqual(["hello", "hello", ["greet"], "hi", ["test.model", "greet"], "hi!", [["greet", "1.1.0", "loaded"]]])
  })

  it("reads what it requires anew too, and shares what is not its own", async () => {
    const text = plugin(
      "greet",
      'import { createRequire } from "node:module"\nimport { count } from "./node_modules/other/index.js"\nconst own = createRequire(import.meta.url)("./own.cjs")',
      "own.word + count()"
    )
    expect(
      await run(
        { write: file, text },
        { write: ".bezel/plugins/greet/own.cjs", text: 'exports.word = "a"' },
        {
          write: ".bezel/plugins/greet/node_modules/other/index.js",
          text: "let calls = 0\nexport const count = () => ++calls"
        },
        { write: ".bezel/plugins/greet/node_modules/other/package.json", text: '{ "type": "module" }' },
        { ask: "greet" },
        { write: ".bezel/plugins/greet/own.cjs", text: 'exports.word = "b"' },
        { reload: ["greet"] },
        { ask: "greet" }
      )
    ).toEqual(["a1", ["greet"], "b2"])
  })

  it("keeps the old code while the file is broken, and takes the new one when it is mended", async () => {
    const outputs = await run(
      { write: file, text: plugin("greet", "", '"one"') },
      { ask: "greet" },
      { write: file, text: "export default {" },
      { reload: ["greet"] },
      { ask: "greet" },
      { write: file, text: plugin("greet", "", '"two"') },
      { reload: ["greet"] },
      { ask: "greet" }
    )
    expect(outputs).toEqual(["one", expect.stringContaining("nothing was changed"), "one", ["greet"], "two"])
  })

  it("takes in a plugin that could not be loaded at the start, under its own name, when its file is mended", async () => {
    const outputs = await run(
      { write: ".bezel/plugins/acme.ts", text: 'import "./missing.ts"' },
      { list: true },
      { reload: ["acme.ts"] },
      { write: ".bezel/plugins/acme.ts", text: plugin("acme.greet", "", '"mended"') },
      { reload: ["acme.ts"] },
      { list: true },
      { ask: "greet" }
    )
    expect(outputs).toEqual([
      [["acme.ts", null, "failed"]],
      expect.stringContaining("missing.ts"),
      ["acme.greet"],
      [["acme.greet", "1.0.0", "loaded"]],
      "mended"
    ])
  })
})
