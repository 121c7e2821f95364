/** Terminals on a server: real ones, over real sockets. */
import { existsSync, mkdirSync, readdirSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it, onTestFinished } from "vitest"
import { type ScriptedReply, startModelServer } from "../../packages/core/src/testing/model-server.ts"
import { isAlive } from "../tui/terminal.ts"
import { type Home, makeHome } from "./command.ts"
import { eventually, hostsOf, startServer } from "./serve-fixture.ts"
import { runInTerminal, type TerminalRun } from "./terminal.ts"

/** A dialog takes no keys of somebody who is still typing, and says when it does. */
const listens = (terminal: TerminalRun) => terminal.shows(/enter choose · esc cancel/)

const hanging: ScriptedReply = { text: "never", stop: { afterBytes: 0, how: "hang" } }

const modelFor = async (home: Home) => {
  const model = await startModelServer()
  onTestFinished(() => model.close())
  home.useServer(model)
  return model
}

describe("bezel attach", { timeout: 120_000 }, () => {
  it.each(["none", "location", "session"])(
    "has everything that a terminal has by itself (isolation %s)",
    async (isolation) => {
      const home = makeHome()
      home.write("work/note.txt", "Bezels hold stones.\n")
      const server = await startServer(home, ["--isolation", isolation])
      const other = await server.create({ title: "an earlier talk" })
      await server.prompt(other, "list")
      const terminal = runInTerminal(home, `bezel attach ${server.url}`)
      await terminal.shows(/bezel\/offline/)
      // Chat.
      terminal.type("read note.txt\r")
      await terminal.shows(/✓ read note\.txt[\s\S]*Bezels hold stones/)
      // Approvals.
      terminal.type("run touch made\r")
      await terminal.shows(/Allow bash\?/)
      await listens(terminal)
      terminal.type("\r")
      await terminal.shows(/✓ bash touch made/)
      expect(existsSync(join(home.work, "made"))).toBe(true)
      // Questions.
      terminal.type("ask Which one? left | right\r")
      await terminal.shows(/Which one\?[\s\S]*left[\s\S]*right/)
      await listens(terminal)
      terminal.type("\r")
      await terminal.shows(/✓ .*Which one\?/)
      // The directory of sessions, over three hosts.
      terminal.type("/sessions\r")
      await terminal.shows(/Sessions[\s\S]*an earlier talk/)
      await listens(terminal)
      terminal.type("2")
      await terminal.shows(/› list\s+✓ list/)
      terminal.type("/new a fresh start\r")
      await terminal.shows(/work +bezel\/offline$/)
      expect((await server.call("GET", "/session")).body.items.map(({ title }: { title: string }) => title)).toContain(
        "a fresh start"
      )
      terminal.type("\u0004")
      const { code } = await terminal.ended
      expect(code).toBe(0)
      server.process.kill("SIGTERM")
      expect((await server.ended).code).toBe(0)
    }
  )

  it("shows two terminals and a program the same session", async () => {
    const home = makeHome()
    const server = await startServer(home)
    const id = await server.create({ title: "shared" })
    const [one, two] = [
      runInTerminal(home, `bezel attach ${server.url} --session ${id}`),
      runInTerminal(home, `bezel attach ${server.url} --session ${id}`)
    ]
    await Promise.all([one.shows(/bezel\/offline/), two.shows(/bezel\/offline/)])
    one.type("run touch made\r")
    await two.shows(/Allow bash\?/)
    await listens(two)
    two.type("\r")
    await Promise.all([one.shows(/✓ bash touch made/), two.shows(/✓ bash touch made/)])
    await server.prompt(id, "list")
    await Promise.all([one.shows(/✓ list/), two.shows(/✓ list/)])
    // One leaves; the other notices nothing.
    one.type("\u0004")
    await one.ended
    two.type("read made\r")
    await two.shows(/✓ read made/)
    expect(two.text()).toContain("✓ bash touch made")
    two.type("\u0004")
    await two.ended
  })

  it("keeps what is asked open for the next who comes, and work going while nobody looks", async () => {
    const home = makeHome()
    const model = await modelFor(home)
    const server = await startServer(home)
    const first = runInTerminal(home, "bezel attach")
    await first.shows(/test\/m/)
    model.reply({ calls: [{ name: "bash", args: { command: "touch made" } }] })
    first.type("make it\r")
    await first.shows(/Allow bash\?/)
    first.kill("SIGKILL")
    await first.ended
    model.reply({ text: ["it is made"] })
    const second = runInTerminal(home, "bezel attach --continue")
    await second.shows(/Allow bash\?[\s\S]*touch made/)
    await listens(second)
    second.type("\r")
    await second.shows(/it is made/)
    model.reply({ text: ["slow but sure"], delayMillis: 1_500 })
    second.type("take your time\r")
    await eventually(() => model.requests.length === 3)
    second.type("\u0004")
    await second.ended
    const { id = "" } = (await server.call("GET", "/session")).body.items[0] ?? {}
    expect((await server.call("POST", `/session/${id}/wait?timeout=30`)).body).toMatchObject({ text: "slow but sure" })
  })

  it("takes the options that bezel takes", async () => {
    const home = makeHome()
    const server = await startServer(home)
    const terminal = runInTerminal(home, "bezel attach --agent plan --model bezel/offline")
    await terminal.shows(/plan · bezel\/offline/)
    terminal.type("\u0004")
    await terminal.ended
    const wrong = runInTerminal(home, "bezel attach --agent nobody")
    expect((await wrong.ended).code).toBe(2)
    expect(wrong.text().replaceAll("\n", " ")).toMatch(/there is no agent "nobody" here; there are build/)
    mkdirSync(join(home.work, "new"))
    const unknown = runInTerminal(home, "cd new; bezel --agent nobody")
    expect((await unknown.ended).code).toBe(2)
    expect(unknown.text().replaceAll("\n", " ")).toMatch(/there is no agent "nobody" here; there are build/)
    const modelless = runInTerminal(home, "bezel attach --model bezel/nothing")
    expect((await modelless.ended).code).toBe(2)
    expect(modelless.text().replaceAll("\n", " ")).toMatch(/there is no model "nothing" at the provider "bezel"/)
    await eventually(async () => (await server.call("GET", "/session")).body.items.length === 0)
    const elsewhere = runInTerminal(home, "bezel attach --dir /")
    await elsewhere.shows(/^\/ +bezel\/offline$/m)
    elsewhere.type("\u0004")
    await elsewhere.ended
    await eventually(async () => (await server.call("GET", "/session")).body.items.length === 0)
  })

  it("shows what was last known while the server is away, and the present when it is back", async () => {
    const home = makeHome()
    home.write("work/note.txt", "Bezels hold stones.\n")
    const server = await startServer(home)
    const port = new URL(server.url).port
    const terminal = runInTerminal(home, "bezel attach")
    await terminal.shows(/bezel\/offline/)
    terminal.type("read note.txt\r")
    await terminal.shows(/Bezels hold stones/)
    server.process.kill("SIGKILL")
    await terminal.shows(/disconnected, shown as last known/)
    expect(terminal.text()).toContain("Bezels hold stones")
    const next = home.start(["serve", "--port", port, "--json"])
    await next.seen(/^\{.*\}\n/)
    await terminal.shows(/^~\/work +\d+ context/m)
    terminal.type("list\r")
    await terminal.shows(/✓ list/)
    terminal.type("\u0004")
    expect((await terminal.ended).code).toBe(0)
  })

  it("finds a server again that comes back on another port", async () => {
    const home = makeHome()
    home.write("work/note.txt", "Bezels hold stones.\n")
    const server = await startServer(home)
    const terminal = runInTerminal(home, "bezel attach")
    await terminal.shows(/bezel\/offline/)
    server.process.kill("SIGKILL")
    await terminal.shows(/disconnected, shown as last known/)
    const next = home.start(["serve", "--port", "0", "--json"])
    await next.seen(/^\{.*\}\n/)
    expect(next.output.stdout).not.toContain(server.url)
    await terminal.shows(/^~\/work +bezel\/offline/m)
    terminal.type("read note.txt\r")
    await terminal.shows(/Bezels hold stones/)
    terminal.type("\u0004")
    expect((await terminal.ended).code).toBe(0)
  })

  it("sees a turn through, although the host of the session is killed in the middle of it", async () => {
    const home = makeHome()
    const model = await modelFor(home)
    model.reply(hanging)
    model.always({ text: ["an answer after all"] })
    await startServer(home)
    const terminal = runInTerminal(home, "bezel attach")
    await terminal.shows(/test\/m/)
    terminal.type("go on\r")
    await eventually(() => model.requests.length === 1)
    const [host = 0] = hostsOf(home)
    process.kill(host, "SIGKILL")
    await terminal.shows(/an answer after all/)
    expect(isAlive(host)).toBe(false)
    terminal.type("\u0004")
    await terminal.ended
  })

  it("sees a turn through, although the server is killed in the middle of it and another one takes its place", async () => {
    const home = makeHome()
    const model = await modelFor(home)
    model.reply(hanging)
    model.always({ text: ["an answer after all"] })
    const server = await startServer(home)
    const terminal = runInTerminal(home, "bezel attach")
    await terminal.shows(/test\/m/)
    terminal.type("go on\r")
    await eventually(() => model.requests.length === 1)
    const [host = 0] = hostsOf(home)
    server.process.kill("SIGKILL")
    await terminal.shows(/disconnected, shown as last known/)
    const next = home.start(["serve", "--port", new URL(server.url).port, "--json"])
    await next.seen(/"resumed":1/)
    await terminal.shows(/an answer after all/)
    expect(isAlive(host)).toBe(false)
    expect(model.requests).toHaveLength(2)
    terminal.type("\u0004")
    await terminal.ended
  })

  it("says what is wrong: no server, a wrong token, nobody there, no address", async () => {
    const home = makeHome()
    const fails = async (line: string, expected: RegExp, code = 2) => {
      const terminal = runInTerminal(home, line)
      const ended = await terminal.ended
      expect(terminal.text().replaceAll("\n", " ")).toMatch(expected)
      expect(ended.code).toBe(code)
    }
    await fails("bezel attach", /no server of this user runs here; bezel serve starts one/)
    await fails("bezel attach http://127.0.0.1:9", /which token does http:\/\/127\.0\.0\.1:9 take\?/)
    await fails("bezel attach 'not an address'", /is no address of a server/)
    await fails("bezel attach http://127.0.0.1:9 --token x", /No Bezel server answers on http:\/\/127\.0\.0\.1:9/, 1)
    const server = await startServer(home)
    await fails(`bezel attach ${server.url} --token wrong`, /does not know this token/, 1)
    await fails(`bezel attach --session ses_unknown`, /ses_unknown/, 1)
    expect((await server.call("GET", "/session")).body.items).toEqual([])
  })
})

describe("bezel where a server runs", { timeout: 120_000 }, () => {
  it("shows the server's sessions and says so; leaves no session in which nothing was said", async () => {
    const home = makeHome()
    const server = await startServer(home)
    const terminal = runInTerminal(home, "bezel")
    await terminal.shows(/Attached to the server on http:\/\/127\.0\.0\.1:\d+; bezel --inline does without/)
    await terminal.shows(/bezel\/offline/)
    expect((await server.call("GET", "/session")).body.items).toHaveLength(1)
    terminal.type("\u0004")
    expect((await terminal.ended).code).toBe(0)
    expect((await server.call("GET", "/session")).body.items).toEqual([])
  })

  it("asks whether to trust a project, and has the host that is up take the answer in", async () => {
    const home = makeHome()
    home.write("work/bezel.jsonc", JSON.stringify({ permissions: { bash: "allow" } }))
    const server = await startServer(home)
    // The host of the folder is up before anybody trusts it.
    await server.prompt(await server.create(), "list")
    const terminal = runInTerminal(home, "bezel")
    await terminal.shows(/Trust them\? \[y\/N\]/)
    terminal.type("y\r")
    await terminal.shows(/bezel\/offline/)
    terminal.type("run touch made\r")
    await terminal.shows(/✓ bash touch made/)
    expect(existsSync(join(home.work, "made"))).toBe(true)
    terminal.type("\u0004")
    await terminal.ended
  })

  it.each(["none", "location"])(
    "loads the plugins of a trusted project, wherever it was started itself (isolation %s)",
    async (isolation) => {
      const home = makeHome()
      home.write(
        "work/.bezel/plugins/ticket.ts",
        'import { Plugin } from "@bezel/core/host"\nimport * as Effect from "effect/Effect"\n' +
          'export default Plugin.define({ id: "test.ticket", session: () => Effect.void })\n'
      )
      const terminal = runInTerminal(home, "bezel")
      await terminal.shows(/Trust them\? \[y\/N\]/)
      terminal.type("y\r")
      await terminal.shows(/bezel\/offline/)
      terminal.type("\u0004")
      await terminal.ended
      const server = await startServer(home, ["--isolation", isolation], {}, home.folder)
      await server.create()
      const { body } = await server.call("GET", `/plugin?location=${encodeURIComponent(home.work)}`)
      expect(body.items).toContainEqual(expect.objectContaining({ id: "test.ticket", state: "loaded" }))
    }
  )

  it("runs by itself with --inline, and with what is said for this run alone", async () => {
    const home = makeHome()
    await startServer(home)
    for (const line of ["bezel --inline", "bezel --set theme=dark", "bezel --trust"]) {
      const terminal = runInTerminal(home, line)
      await terminal.shows(/bezel\/offline/)
      expect(terminal.text()).not.toContain("Attached")
      terminal.type("\u0004")
      await terminal.ended
    }
    expect(hostsOf(home)).toEqual([])
  })

  it("does without one whose note was left behind", async () => {
    const home = makeHome()
    const server = await startServer(home)
    server.process.kill("SIGKILL")
    await server.ended
    expect(readdirSync(join(home.folder, ".local/state/bezel/server"))).toHaveLength(2)
    const terminal = runInTerminal(home, "bezel")
    await terminal.shows(/bezel\/offline/)
    expect(terminal.text()).not.toContain("Attached")
    terminal.type("\u0004")
    await terminal.ended
  })

  it("bezel run says that a session is open there, and who has it", async () => {
    const home = makeHome()
    const server = await startServer(home)
    const id = await server.create()
    const terminal = runInTerminal(home, `bezel attach --session ${id}`)
    await terminal.shows(/bezel\/offline/)
    const run = await home.run(["run", "--session", id, "list"])
    expect(run.code).toBe(1)
    expect(run.stderr).toContain(`the session ${id} is open in the server on ${server.url}`)
    terminal.type("\u0004")
    await terminal.ended
    await eventually(async () => (await home.run(["run", "--session", id, "list"])).code === 0)
  })
})
