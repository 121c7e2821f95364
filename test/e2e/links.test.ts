/** What a cloned repository's links could make of this user's files, and what is said of it. */
import { mkdirSync, symlinkSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it, onTestFinished } from "vitest"
import { startModelServer } from "../../packages/core/src/testing/model-server.ts"
import { makeHome } from "./command.ts"

const env = { BEZEL_SOURCE: "1" }

describe("a link in a project that leads out of it", () => {
  it("as AGENTS.md is not sent to a model, and the person is told", async () => {
    const home = makeHome()
    const server = await startModelServer()
    server.always({ text: "ok" })
    onTestFinished(() => server.close())
    home.useServer(server)
    symlinkSync(home.write("id_rsa", "k-private"), join(home.work, "AGENTS.md"))
    const said = `${home.work}/AGENTS.md could not be read: it is a link that leads out of the project.`
    expect(await home.run(["run", "hi"], { env })).toMatchObject({
      code: 0,
      stdout: "ok\n",
      stderr: `bezel: ${said}\n`
    })
    expect(server.requests.length).toBeGreaterThan(0)
    expect(JSON.stringify(server.requests)).not.toContain("k-private")
    const json = await home.run(["run", "--json", "hi"], { env })
    expect(json.stderr).toBe("")
    expect(json.lines()).toContainEqual({ type: "warning", message: said })
  })

  it("as a plugin is not run even in a project that is trusted, and the person is told", async () => {
    const home = makeHome()
    const elsewhere = home.write("evil.ts", `console.error("RAN")\nexport default { id: "evil" }`)
    mkdirSync(join(home.work, ".bezel/plugins"), { recursive: true })
    symlinkSync(elsewhere, join(home.work, ".bezel/plugins/evil.ts"))
    const ended = await home.run(["run", "--trust", "read a.txt"], { env })
    expect(ended.stderr).toContain("evil.ts: it is a link that leads out of the project")
    expect(ended.stderr).not.toContain("RAN")
  })
})
