import { describe, expect, it } from "vitest"
import { makeHome } from "../../e2e/command.ts"
import { messagesOf, serve } from "../../e2e/run-fixture.ts"
import { runInTerminal } from "../../e2e/terminal.ts"

const asked = (body: { readonly [key: string]: unknown } | undefined) =>
  JSON.stringify(messagesOf(body).findLast(({ role }) => role === "user")?.content)

describe("bezel run", () => {
  it("attaches what the prompt mentions, within the rules, and says what it does not", async () => {
    const home = makeHome()
    home.write("work/src/a.ts", "export const secretOfA = 1\n")
    home.write("outside.txt", "k-secret")
    const server = await serve({ text: "ok" })
    home.useServer(server)
    const ended = await home.run(["run", "what is in @src/a.ts and @../outside.txt?"])
    expect(ended).toMatchObject({ code: 0, stdout: "ok\n" })
    expect(ended.stderr).toMatch(/@\.\.\/outside\.txt\? is not attached: no rule allows to read .*outside\.txt/)
    expect(asked(server.requests[0]?.body)).toContain("what is in @src/a.ts")
    expect(asked(server.requests[0]?.body)).toContain('<file path=\\"src/a.ts\\">\\nexport const secretOfA = 1')
    expect(asked(server.requests[0]?.body)).not.toContain("k-secret")
  })
})

describe("text on stdin", () => {
  it("mentions files where it is the prompt, and none where it comes beside one", async () => {
    const home = makeHome()
    home.write("work/a.ts", "content of a")
    const server = await serve()
    server.always({ text: "ok" })
    home.useServer(server)
    await home.run(["run"], { stdin: "see @a.ts" })
    await home.run(["run", "review:", "-"], { stdin: "+ see @a.ts" })
    expect(asked(server.requests[0]?.body)).toContain("content of a")
    expect(asked(server.requests[1]?.body)).not.toContain("content of a")
    expect(asked(server.requests[1]?.body)).toContain("+ see @a.ts")
  })
})

describe("bezel in a terminal", () => {
  it("completes what is typed after @, and attaches it; a pasted path of an image is the image", async () => {
    const home = makeHome()
    home.write("work/src/registry.ts", "export const marker = 7\n")
    const shot = home.write("shots/one.png", "")
    const { writeFileSync } = await import("node:fs")
    const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
    writeFileSync(shot, Buffer.from(pixel, "base64"))
    const server = await serve()
    server.always({ text: "All seen." })
    home.useServer(server, {})
    const terminal = runInTerminal(home, "bezel")
    await terminal.shows(/test\/m/)
    terminal.type("explain @reg")
    await terminal.shows(/→ src\/registry\.ts|src\/registry\.ts\s*$/m)
    terminal.type("\t")
    await terminal.shows(/explain @src\/registry\.ts/)
    terminal.type(`\u001b[200~${shot}\u001b[201~`)
    await terminal.shows(/\[one\.png\]/)
    terminal.type("\r")
    await terminal.shows(/All seen\./)
    expect(asked(server.requests[0]?.body)).toContain("export const marker = 7")
    expect(asked(server.requests[0]?.body)).toMatch(/one\.png/)
  })
})
