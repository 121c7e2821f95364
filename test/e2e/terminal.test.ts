import { copyFileSync, existsSync, mkdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it, onTestFinished, vi } from "vitest"
import { startModelServer } from "../../packages/core/src/testing/model-server.ts"
import { isAlive } from "../tui/terminal.ts"
import { makeHome, root } from "./command.ts"
import { runInTerminal, type TerminalRun } from "./terminal.ts"

/** Prints the terminal's modes before and after, so that a difference shows. */
const around = (line: string) =>
  `stty -g > before; ${line}; code=$?; stty -g > after; cmp before after && echo "same modes, code $code"; exit $code`

/** A dialog takes no keys of somebody who is still typing, and says when it does. */
const listens = (terminal: TerminalRun) => terminal.shows(/enter choose · esc cancel/)

const until = (holds: () => boolean) => vi.waitFor(() => expect(holds()).toBe(true), { timeout: 20_000, interval: 25 })

describe("bezel in a terminal", () => {
  it("shows an answer as it was asked for, and leaves the terminal as it was", async () => {
    const home = makeHome()
    home.write("work/note.txt", "Bezels hold stones.\n")
    const terminal = runInTerminal(home, around("bezel"))
    await terminal.shows(/bezel\/offline/)
    terminal.type("read note.txt\r")
    await terminal.shows(/✓ read note\.txt/)
    await terminal.shows(/Bezels hold stones/)
    terminal.type("\u0004")
    const { code } = await terminal.ended
    expect([code, terminal.text()]).toEqual([0, expect.stringContaining("same modes, code 0")])
    expect((await home.run(["session", "list"])).stdout).toMatch(/^ses_\S+ .*\n$/)
  })

  it("asks before a command runs, and takes no for an answer", async () => {
    const home = makeHome()
    const terminal = runInTerminal(home, "bezel")
    await terminal.shows(/bezel\/offline/)
    terminal.type("run touch made\r")
    await terminal.shows(/Allow bash\?/)
    await listens(terminal)
    terminal.type("\r")
    await terminal.shows(/✓ bash touch made/)
    terminal.type("run touch other\r")
    await terminal.shows(/Allow bash\?[\s\S]*touch other/)
    await listens(terminal)
    terminal.type("\u001b")
    await terminal.shows(/✗ bash touch other/)
    terminal.type("\u0004")
    await terminal.ended
    expect((await home.run(["run", "list"])).stdout).toMatch(/made/)
    expect((await home.run(["run", "list"])).stdout).not.toMatch(/other/)
  })

  it.each(["bezel", "bezel --full-screen"])("restores the terminal when %s is told to stop", async (command) => {
    const home = makeHome()
    const terminal = runInTerminal(home, around(`sh -c 'echo $$ > pid; exec ${command}'`))
    await terminal.shows(/bezel\/offline/)
    process.kill(Number(readFileSync(join(home.work, "pid"), "utf8")), "SIGTERM")
    await terminal.ended
    expect(terminal.text()).toContain("same modes")
  })

  it("ends what it has started when its terminal is closed", async () => {
    const home = makeHome()
    const terminal = runInTerminal(home, "trap : HUP; bezel 2> err; echo $? > code; mv code ended")
    await terminal.shows(/bezel\/offline/)
    terminal.type("run echo $$ > sleeper; exec sleep 341\r")
    await terminal.shows(/Allow bash\?/)
    await listens(terminal)
    terminal.type("\r")
    const sleeper = join(home.work, "sleeper")
    await until(() => existsSync(sleeper) && readFileSync(sleeper, "utf8") !== "")
    terminal.kill("SIGKILL")
    await until(() => existsSync(join(home.work, "ended")))
    expect(readFileSync(join(home.work, "ended"), "utf8")).toBe("129\n")
    expect(readFileSync(join(home.work, "err"), "utf8")).toBe("")
    expect(isAlive(Number(readFileSync(sleeper, "utf8")))).toBe(false)
  })

  it("asks whether to trust a project's settings before any of them takes effect, and remembers a yes", async () => {
    const home = makeHome()
    mkdirSync(join(home.work, ".bezel/plugins"), { recursive: true })
    copyFileSync(join(root, "examples/plugin/ticket.ts"), join(home.work, ".bezel/plugins/ticket.ts"))
    const terminal = runInTerminal(home, "bezel")
    await terminal.shows(/Trust them\? \[y\/N\]/)
    terminal.type("y\r")
    await terminal.shows(/bezel\/offline/)
    // What a terminal says of itself when the screen asks: nobody who read the answer may still be there to echo it.
    terminal.type("\u001b[?1;2c")
    terminal.type("hello\r")
    await terminal.shows(/I am bezel\/offline/)
    terminal.type("\u0004")
    expect((await terminal.ended).raw).not.toContain("1;2c")
    expect((await home.run(["plugin", "list"])).stdout).toMatch(/example\.ticket +1\.0\.0 +loaded/)
  })

  it("takes only an answer for an answer to that question, and leaves at ctrl+c", async () => {
    const home = makeHome()
    mkdirSync(join(home.work, ".bezel/plugins"), { recursive: true })
    copyFileSync(join(root, "examples/plugin/ticket.ts"), join(home.work, ".bezel/plugins/ticket.ts"))
    const terminal = runInTerminal(home, around("bezel"))
    // Ahead of the question, so it answers nothing.
    terminal.type("y\r")
    await terminal.shows(/Trust them\? \[y\/N\]/)
    terminal.type("run touch made\r")
    await terminal.shows(/Please answer y or n/)
    terminal.type("\u0003")
    const { code } = await terminal.ended
    expect([code, terminal.text()]).toEqual([130, expect.stringContaining("same modes, code 130")])
    expect((await home.run(["plugin", "list"])).stdout).not.toMatch(/example\.ticket +1\.0\.0 +loaded/)
  })

  it("leaves at that question when its terminal is closed", async () => {
    const home = makeHome()
    mkdirSync(join(home.work, ".bezel/plugins"), { recursive: true })
    copyFileSync(join(root, "examples/plugin/ticket.ts"), join(home.work, ".bezel/plugins/ticket.ts"))
    const terminal = runInTerminal(home, "trap : HUP; bezel 2> err; echo $? > code; mv code ended")
    await terminal.shows(/Trust them\?/)
    terminal.kill("SIGKILL")
    await until(() => existsSync(join(home.work, "ended")))
    expect(readFileSync(join(home.work, "ended"), "utf8")).toBe("129\n")
    expect(readFileSync(join(home.work, "err"), "utf8")).toBe("")
  })

  it("sends what was typed before the session has come to the screen, once it has", async () => {
    const home = makeHome()
    home.write("work/note.txt", "Bezels hold stones.\n")
    const terminal = runInTerminal(home, "bezel")
    await terminal.shows(/ctrl\+d quits/)
    terminal.type("read note.txt\r")
    await terminal.shows(/Bezels hold stones/)
    terminal.type("\u0004")
    expect((await terminal.ended).code).toBe(0)
  })

  it("shows a call of a plugin's tool through the plugin's own renderer", async () => {
    const home = makeHome()
    mkdirSync(join(home.folder, ".config/bezel/plugins"), { recursive: true })
    copyFileSync(join(root, "examples/plugin/ticket.ts"), join(home.folder, ".config/bezel/plugins/ticket.ts"))
    home.write("work/tickets.json", JSON.stringify([{ id: "SHOP-12", title: "Cart loses items", status: "open" }]))
    const server = await startModelServer({ calls: [{ name: "ticket", args: { id: "SHOP-12" } }] }, {
      text: "It is open."
    })
    onTestFinished(() => server.close())
    home.useServer(server, { permissions: { ticket: "allow" } })
    const terminal = runInTerminal(home, "bezel")
    await terminal.shows(/test\/m/)
    terminal.type("what is SHOP-12?\r")
    await terminal.shows(/SHOP-12 Cart loses items open/)
    await terminal.shows(/It is open\./)
    terminal.type("\u0004")
    expect((await terminal.ended).code).toBe(0)
  })

  it("is made by plugins that are not part of a session, which the list of plugins says", async () => {
    expect((await makeHome().run(["plugin", "list"])).stdout).toMatch(
      /^bezel\.chat +\S+ +absent +built in: it has nothing for sessions, only for other hosts such as the screen$/m
    )
  })

  it("needs a terminal, and says so where there is none", async () => {
    expect(await makeHome().run([])).toMatchObject({
      code: 2,
      stdout: "",
      stderr: expect.stringMatching(/^bezel: this needs a terminal; bezel run .*\n$/)
    })
  })

  it.each([["bezel --full-screen", {}], ["bezel", { screen: "full" }]] as const)(
    "fills the terminal where that is asked for (%s), and leaves nothing of it behind",
    async (command, settings) => {
      const home = makeHome()
      home.settings(settings)
      const terminal = runInTerminal(home, `echo before; ${around(command)}`)
      await terminal.shows(/bezel\/offline$/)
      terminal.type("list\r")
      await terminal.shows(/✓ list/)
      terminal.type("\u0004")
      const { code, raw } = await terminal.ended
      expect(code).toBe(0)
      expect(raw).toContain("\u001b[?1049h")
      expect(terminal.text()).toMatch(/^before\s+same modes, code 0$/)
    }
  )

  it("says so of a terminal that shows lines only", async () => {
    const terminal = runInTerminal(makeHome(), "TERM=dumb bezel; echo code $?")
    const { raw } = await terminal.ended
    expect(raw.replaceAll("\r", "")).toBe(
      'bezel: this terminal shows lines only (TERM=dumb); bezel run "…" answers a prompt in one\ncode 2\n'
    )
  })

  it("says where the locale names letters that are not written, and works", async () => {
    const terminal = runInTerminal(makeHome(), "LC_ALL=de_DE.ISO-8859-1 bezel")
    await terminal.shows(/The locale says ISO-8859-1/)
    terminal.type("\u0004")
    expect((await terminal.ended).code).toBe(0)
  })

  it("takes a path, and one that is none may be a command that is written wrong", async () => {
    const home = makeHome()
    expect(await home.run(["docter"])).toMatchObject({
      code: 2,
      stderr: "bezel: there is no folder and no command docter; did you mean bezel doctor?\n"
    })
    expect((await home.run([home.write("file", "")])).stderr).toMatch(/is not a folder\n$/)
  })
})
