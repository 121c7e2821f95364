import { rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { makeHome } from "./command.ts"

const catalogue = ".local/share/bezel/catalogue.db"

const withSession = async () => {
  const home = makeHome()
  await home.run(["run", "list"])
  const { stdout } = await home.run(["session", "list"])
  expect(stdout).toMatch(/^ses_\S+ .* list\n$/)
  return { home, list: stdout, file: join(home.folder, catalogue) }
}

describe("the list of sessions", () => {
  it("is there again after its file was removed, which is said once", async () => {
    const { file, home, list } = await withSession()
    rmSync(file)
    const said = /^bezel: \S+catalogue\.db was not there; it was made anew from the sessions' folders \(found: 1\)\n$/
    expect(await home.run(["session", "list"])).toMatchObject({
      code: 0,
      stdout: list,
      stderr: expect.stringMatching(said)
    })
    expect(await home.run(["session", "list"])).toMatchObject({ code: 0, stdout: list, stderr: "" })
  })

  it("is there again after its file was damaged, which is kept and said", async () => {
    const { file, home, list } = await withSession()
    writeFileSync(file, "no database ".repeat(1_000))
    const said = /^bezel: \S+ was damaged and is kept as \S+catalogue\.db\.damaged-\S+; it was made anew .*\n$/
    expect(await home.run(["session", "list"])).toMatchObject({
      code: 0,
      stdout: list,
      stderr: expect.stringMatching(said)
    })
    expect((await home.run(["run", "--continue", "list"])).code).toBe(0)
  })
})
