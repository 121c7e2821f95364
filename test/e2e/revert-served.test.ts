/** Taking back over HTTP, where a session's host is the server itself, a process of its location or one of its own. */
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { type Home, makeHome } from "./command.ts"
import { serve } from "./run-fixture.ts"
import { eventually, hostsOf, startServer } from "./serve-fixture.ts"

const read = (home: Home, name: string) => {
  const path = join(home.work, name)
  return existsSync(path) ? readFileSync(path, "utf8") : null
}

const permissions = { permissions: { "*": "allow" } }

describe.each(["none", "location", "session"])("with --isolation %s", (isolation) => {
  it("a turn is taken back and brought back with what tools and commands did to files", async () => {
    const home = makeHome()
    home.settings(permissions)
    home.write("work/a.txt", "one\n")
    home.write("work/gone.txt", "here\n")
    const server = await startServer(home, ["--isolation", isolation])
    const id = await server.create()
    await server.prompt(id, "list")
    const turn = "edit a.txt: one => two then run rm gone.txt; echo new > made.txt"
    expect(await server.prompt(id, turn)).toMatchObject({ status: "done" })
    expect(["a.txt", "gone.txt", "made.txt"].map((name) => read(home, name))).toEqual(["two\n", null, "new\n"])
    const path = `/session/${id}/revert`
    const planned = await server.call("POST", path, { to: "last", dryRun: true })
    expect(planned).toMatchObject({ status: 200, body: { status: "planned", prompt: turn, conflicts: [] } })
    expect(read(home, "a.txt")).toBe("two\n")
    const staged = await server.call("POST", path, { to: "last" })
    expect(staged).toMatchObject({ status: 200, body: { status: "staged", conflicts: [] } })
    expect(["a.txt", "gone.txt", "made.txt"].map((name) => read(home, name))).toEqual(["one\n", "here\n", null])
    expect(JSON.stringify((await server.call("GET", `/session/${id}/context`)).body)).not.toContain("gone.txt; echo")
    expect(await server.call("DELETE", path)).toMatchObject({ status: 200, body: { status: "cleared" } })
    expect(["a.txt", "gone.txt", "made.txt"].map((name) => read(home, name))).toEqual(["two\n", null, "new\n"])
    writeFileSync(join(home.work, "a.txt"), "by hand\n")
    expect(await server.call("POST", path, { to: "last" })).toMatchObject({
      status: 200,
      body: { status: "conflict", conflicts: [{ path: join(home.work, "a.txt") }] }
    })
    expect(read(home, "made.txt")).toBe("new\n")
    expect(await server.call("POST", path, { to: "e999" })).toMatchObject({ status: 404 })
  }, 60_000)

  it("what a sub-agent changed is taken back with the turn that it worked for", async () => {
    const home = makeHome()
    home.write("work/a.txt", "one\n")
    const model = await serve(
      { calls: [{ name: "subagent", args: { description: "work", prompt: "do it" } }] },
      { calls: [{ name: "edit", args: { path: "a.txt", oldText: "one", newText: "two" } }] },
      { calls: [{ name: "bash", args: { command: "echo new > made.txt" } }] },
      { text: "child done" },
      { calls: [{ name: "edit", args: { path: "a.txt", oldText: "two", newText: "three" } }] },
      { text: "done" }
    )
    home.useServer(model, permissions)
    const server = await startServer(home, ["--isolation", isolation])
    const id = await server.create()
    expect(await server.prompt(id, "delegate")).toMatchObject({ status: "done", text: "done" })
    expect([read(home, "a.txt"), read(home, "made.txt")]).toEqual(["three\n", "new\n"])
    const staged = await server.call("POST", `/session/${id}/revert`, { to: "last" })
    expect(staged).toMatchObject({ status: 200, body: { status: "staged", conflicts: [] } })
    expect([read(home, "a.txt"), read(home, "made.txt")]).toEqual(["one\n", null])
  }, 60_000)
})

it("what was taken back in a sub-agent's session is not taken back again with that which it worked for", async () => {
  const home = makeHome()
  home.write("work/a.txt", "one\n")
  const edit = (oldText: string, newText: string) => ({
    calls: [{ name: "edit", args: { path: "a.txt", oldText, newText } }]
  })
  const model = await serve(
    { calls: [{ name: "subagent", args: { description: "work", prompt: "do it" } }] },
    edit("one", "two"),
    { text: "child done" },
    { text: "done" },
    edit("one", "four"),
    { text: "done again" }
  )
  home.useServer(model, permissions)
  const server = await startServer(home, ["--isolation", "session"])
  const id = await server.create()
  await server.prompt(id, "delegate")
  const { body: { to } } = await server.call("POST", `/session/${id}/revert`, { to: "last", dryRun: true })
  const { body: { items } } = await server.call("GET", `/session?parent=${id}`)
  const child = items[0]?.id ?? ""
  expect(await server.call("POST", `/session/${child}/revert`, { to: "last" })).toMatchObject({
    body: { status: "staged", conflicts: [] }
  })
  expect(read(home, "a.txt")).toBe("one\n")
  await server.prompt(id, "go on")
  expect(read(home, "a.txt")).toBe("four\n")
  expect(await server.call("POST", `/session/${id}/revert`, { to })).toMatchObject({
    body: { status: "staged", prompt: "delegate", conflicts: [] }
  })
  expect(read(home, "a.txt")).toBe("one\n")
}, 60_000)

describe.each(["location", "session"])("with --isolation %s", (isolation) => {
  it(
    "a turn is taken back by the host that comes after one that was killed, and by the command after the server",
    async () => {
      const home = makeHome()
      home.settings(permissions)
      const server = await startServer(home, ["--isolation", isolation])
      const id = await server.create()
      await server.prompt(id, "write a.txt: first")
      await server.prompt(id, "write a.txt: second then run echo command > b.txt")
      const [host = 0] = hostsOf(home)
      process.kill(host, "SIGKILL")
      await eventually(() => !hostsOf(home).includes(host))
      const staged = await server.call("POST", `/session/${id}/revert`, { to: "last" })
      expect(staged).toMatchObject({ status: 200, body: { status: "staged", conflicts: [] } })
      expect([read(home, "a.txt"), read(home, "b.txt")]).toEqual(["first", null])
      server.process.kill("SIGTERM")
      await server.ended
      expect(await home.run(["session", "revert", id, "--clear"])).toMatchObject({
        code: 0,
        stdout: expect.stringContaining("brought back")
      })
      expect([read(home, "a.txt"), read(home, "b.txt")]).toEqual(["second", "command\n"])
    },
    60_000
  )
})
