/** What plugins do outside of all calls, and what becomes of the run. */
import { describe, expect, it, onTestFinished } from "vitest"
import { startModelServer } from "../../packages/core/src/testing/model-server.ts"
import { type Home, makeHome } from "./command.ts"

const options = { env: { BEZEL_SOURCE: "1" } }

const withServer = async (home: Home) => {
  const server = await startModelServer()
  server.always({ text: "answer", delayMillis: 100 })
  onTestFinished(() => server.close())
  home.useServer(server)
}

const plugin = (body: string) => `
  import * as Effect from "effect/Effect"
  export default { id: "test.p", session: () => Effect.sync(() => { ${body} }) }`

describe("a plugin", () => {
  it("that prints leaves stdout to the answer", async () => {
    const home = makeHome()
    await withServer(home)
    home.write(
      ".config/bezel/plugins/p.ts",
      `console.log("printed", { at: "import" })\n` + plugin(`
        console.log("a"); console.info("b"); console.debug("c"); console.dir({ d: 1 }); console.table([{ e: 2 }])`)
    )
    const { code, stderr, stdout } = await home.run(["run", "hi"], options)
    expect({ code, stdout }).toEqual({ code: 0, stdout: "answer\n" })
    expect(stderr).toMatch(/^printed \{ at: 'import' \}\na\nb\nc\n\{ d: 1 \}\n┌[^]*│ 2 [^]*┘\n$/)
    const listed = await home.run(["tool", "list", "--json"], options)
    expect(listed.lines().every((line) => typeof line.name === "string")).toBe(true)
  })

  it("that lets a promise fail is named, and the run goes on", async () => {
    const home = makeHome()
    await withServer(home)
    const file = home.write(
      ".config/bezel/plugins/p.ts",
      plugin(`setTimeout(async () => { throw new Error("no luck") }, 10)`)
    )
    expect(await home.run(["run", "hi"], options)).toMatchObject({
      code: 0,
      stdout: "answer\n",
      stderr: `bezel: the plugin ${file} let a promise fail that it did not wait for: no luck\n`
    })
  })

  it("that lets a promise of the platform fail, which has no stack, is one of those that are named", async () => {
    const home = makeHome()
    await withServer(home)
    const file = home.write(
      ".config/bezel/plugins/p.ts",
      `import { readFile } from "node:fs/promises"\n` +
        plugin(`readFile("/nowhere/at/all"); Promise.reject("just a text")`)
    )
    const { code, stderr, stdout } = await home.run(["run", "hi"], options)
    expect([code, stdout]).toEqual([0, "answer\n"])
    expect(stderr.split("\n").sort()).toEqual([
      "",
      `bezel: the plugin ${file} let a promise fail that it did not wait for: ENOENT: no such file or directory, open '/nowhere/at/all'`,
      `bezel: the plugin ${file} let a promise fail that it did not wait for: just a text`
    ])
    home.write(".config/bezel/plugins/other.ts", `export default { id: "test.other" }`)
    expect((await home.run(["run", "hi"], options)).stderr).toContain(
      `bezel: one of the plugins ${home.folder}/.config/bezel/plugins/other.ts, ${file} let a promise fail`
    )
  })

  it("that throws in a timer ends the run, and is named as the one whose fault it is", async () => {
    const home = makeHome()
    await withServer(home)
    home.write(".config/bezel/plugins/other.ts", `export default { id: "test.other" }`)
    const file = home.write(
      ".config/bezel/plugins/p.ts",
      plugin(`setTimeout(() => { throw new Error("no luck") }, 10)`)
    )
    expect(await home.run(["run", "hi"], options)).toMatchObject({
      code: 1,
      stdout: "",
      stderr: `bezel: the plugin ${file} threw an error outside of all calls, which ends the process: no luck\n`
    })
  })

  it("that ends the process makes the run fail, and is named", async () => {
    const home = makeHome()
    await withServer(home)
    const file = home.write(".config/bezel/plugins/p.ts", plugin(`setTimeout(() => process.exit(0), 10)`))
    const line = `bezel: the plugin ${file} ended the process (process.exit) before the command was done\n`
    expect(await home.run(["run", "hi"], options)).toMatchObject({ code: 1, stdout: "", stderr: line })
    home.write(".config/bezel/plugins/p.ts", `process.exit(3)`)
    expect(await home.run(["run", "hi"], options)).toMatchObject({ code: 3, stdout: "", stderr: line })
  })
})
