import { describe, expect, it } from "vitest"
import { makeHome } from "../../e2e/command.ts"
import { messagesOf, serve } from "../../e2e/run-fixture.ts"
import { runInTerminal } from "../../e2e/terminal.ts"

const items = [{ text: "look around", status: "completed" }, { text: "change it", status: "in_progress" }]

describe("the todo tool", () => {
  it("needs no permission in bezel run, and gives the list back", async () => {
    const home = makeHome()
    const server = await serve({ calls: [{ name: "todo", args: { items } }] }, { text: "ok" })
    home.useServer(server)
    expect(await home.run(["run", "go"])).toMatchObject({ code: 0, stdout: "ok\n" })
    expect(JSON.stringify(messagesOf(server.requests[1]?.body))).toContain("[x] look around\\n[~] change it")
  })

  it("shows what is left above the editor of the terminal", async () => {
    const home = makeHome()
    const server = await serve({ calls: [{ name: "todo", args: { items } }] }, { text: "Listed." })
    home.useServer(server)
    const terminal = runInTerminal(home, "bezel")
    await terminal.shows(/test\/m/)
    terminal.type("go\r")
    await terminal.shows(/Listed\.[\s\S]*Todo 1\/2\s+▶ change it/)
    expect(server.requests).toHaveLength(2)
  })
})
