import { describe, expect, it } from "vitest"
import { makeHome } from "../../e2e/command.ts"
import { messagesOf, serve } from "../../e2e/run-fixture.ts"
import { runInTerminal } from "../../e2e/terminal.ts"

const asked = (body: { readonly [key: string]: unknown } | undefined) =>
  messagesOf(body).findLast(({ role }) => role === "user")?.content

describe("bezel run with a command", () => {
  it("asks what the command makes of its arguments, with its agent", async () => {
    const home = makeHome()
    home.write(".config/bezel/commands/look.md", "---\nagent: plan\n---\nLook at $1 and at $2.")
    const server = await serve()
    server.always({ text: "ok" })
    home.useServer(server)
    expect(await home.run(["run", "/look 'a b' c"])).toMatchObject({ code: 0, stdout: "ok\n", stderr: "" })
    expect(asked(server.requests[0]?.body)).toBe("Look at a b and at c.")
    expect(JSON.stringify(messagesOf(server.requests[0]?.body)[0])).toContain("You plan, you do not carry out.")
    await home.run(["run", "--agent", "review", "/look"])
    expect(JSON.stringify(messagesOf(server.requests[1]?.body)[0])).toContain("You review.")
  })

  it("leaves the conversation with its own agent and model", async () => {
    const home = makeHome()
    home.write(".config/bezel/commands/look.md", "---\nagent: plan\nmodel: test/other\n---\nLook.")
    const server = await serve()
    server.always({ text: "ok" })
    const options = { baseURL: server.url, apiKey: "k" }
    const models = { m: { name: "M" }, other: { name: "Other" } }
    home.useServer(server, { providers: { test: { package: "@ai-sdk/openai-compatible", options, models } } })
    expect(await home.run(["run", "/look"])).toMatchObject({ code: 0, stderr: "" })
    expect(await home.run(["run", "--continue", "and?"])).toMatchObject({ code: 0, stderr: "" })
    expect(server.requests.map(({ body }) => body.model)).toEqual(["other", "m"])
    expect(JSON.stringify(messagesOf(server.requests[1]?.body)[0])).not.toContain("You plan")
  })

  it("sends what calls none as it is, and says so where it looks like one", async () => {
    const home = makeHome()
    const server = await serve()
    server.always({ text: "ok" })
    home.useServer(server)
    const ended = await home.run(["run", "/nope x"])
    expect(ended).toMatchObject({ code: 0, stdout: "ok\n" })
    expect(ended.stderr).toContain("there is no command /nope here, so the prompt is sent as it is")
    expect(asked(server.requests[0]?.body)).toBe("/nope x")
    expect((await home.run(["run", "/etc/hosts is what?"])).stderr).toBe("")
  })

  it("refuses one whose agent there is not, and leaves those of a project out until it is trusted", async () => {
    const home = makeHome()
    home.write("work/.bezel/commands/go.md", "---\nagent: nobody\n---\nGo.")
    const server = await serve()
    server.always({ text: "ok" })
    home.useServer(server)
    expect((await home.run(["run", "/go"])).stderr).toContain("no command /go here")
    const ended = await home.run(["run", "--trust", "/go"])
    expect(ended.code).toBe(2)
    expect(ended.stderr).toContain('/go.md): There is no agent "nobody" here')
  })
})

describe("bezel in a terminal with commands", () => {
  it("completes and runs them beside its own, which keep their names", async () => {
    const home = makeHome()
    home.write(".config/bezel/commands/greet.md", "---\ndescription: Greets somebody\n---\nSay hello to $1, please.")
    home.write(".config/bezel/commands/help.md", "Not the help.")
    const server = await serve()
    server.always({ text: "Hello to you." })
    home.useServer(server)
    const terminal = runInTerminal(home, "bezel")
    await terminal.shows(/test\/m/)
    await terminal.shows(/\/help\s+is\s+built\s+in/)
    terminal.type("/gree")
    await terminal.shows(/Greets somebody/)
    terminal.type("t Ann\r")
    await terminal.shows(/Hello to you\./)
    expect(asked(server.requests.at(-1)?.body)).toBe("Say hello to Ann, please.")
  })
})
