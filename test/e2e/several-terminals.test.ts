/** Several people on one session of a server: what each sees of what the others do, row by row, in real terminals. */
import { existsSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it, onTestFinished } from "vitest"
import { startModelServer } from "../../packages/core/src/testing/model-server.ts"
import { PseudoTerminal } from "../tui/terminal.ts"
import { type Home, makeHome, root } from "./command.ts"
import { startServer } from "./serve-fixture.ts"

/** Another terminal on a session. */
const attach = async (
  home: Home,
  url: string,
  session: string,
  shows: Parameters<PseudoTerminal["until"]>[0] = /(offline|test\/m)$/m
): Promise<PseudoTerminal> => {
  const terminal = PseudoTerminal.open({
    command: `bezel attach ${url} --session ${session}`,
    cwd: home.work,
    env: { HOME: home.folder, PATH: `${join(root, "bin")}:${process.env["PATH"]}` }
  })
  onTestFinished(() => terminal.close())
  await terminal.until(shows)
  return terminal
}

const screenOf = (terminal: PseudoTerminal) => terminal.screen().join("\n").trimEnd()
const asks = (title: string) => (terminal: PseudoTerminal) =>
  screenOf(terminal).includes(title) && screenOf(terminal).includes("enter choose · esc cancel")
const asksNothing = (terminal: PseudoTerminal) => !screenOf(terminal).includes("esc cancel")

/** Where the conversation begins; above are the words of each terminal's own start. */
const conversation = (terminal: PseudoTerminal) => {
  const rows = terminal.screen()
  return rows.slice(Math.max(0, rows.findIndex((row) => row.startsWith("› ")))).join("\n").trimEnd()
}

/** The rows from where the conversation begins, cell by cell. */
const cellsOf = (terminal: PseudoTerminal) => {
  const at = terminal.screen().findIndex((row) => row.startsWith("› "))
  return Array.from({ length: 24 - at }, (_, row) => terminal.cells(at + row))
}

/** Both show the same cells, once the words for one of them have gone. */
const same = (one: PseudoTerminal, two: PseudoTerminal) =>
  one.until(() => {
    const [left, right] = [cellsOf(one), cellsOf(two)]
    const rows = Math.min(left.length, right.length)
    return conversation(one) === conversation(two) &&
      JSON.stringify(left.slice(0, rows)) === JSON.stringify(right.slice(0, rows))
  })

describe("people on one session", { timeout: 120_000 }, () => {
  it.each(["none", "session"])(
    "see what is asked in all their terminals, and that another one has answered it (isolation %s)",
    async (isolation) => {
      const home = makeHome()
      const server = await startServer(home, ["--isolation", isolation])
      const id = await server.create()
      const [one, two] = [await attach(home, server.url, id), await attach(home, server.url, id)]
      one.write("run touch made\r")
      await Promise.all([one.until(asks("Allow bash?")), two.until(asks("Allow bash?"))])
      const late = await attach(home, server.url, id, asks("Allow bash?"))
      two.write("1")
      await Promise.all([one, late].map((terminal) => terminal.until("Allow bash? was answered elsewhere.")))
      await Promise.all(
        [one, two, late].map((terminal) =>
          terminal.until((now) => asksNothing(now) && screenOf(now).includes("✓ bash touch made"))
        )
      )
      expect(two.text()).not.toContain("elsewhere")
      expect(existsSync(join(home.work, "made"))).toBe(true)
      await same(one, two)
      await same(late, two)
      // The same for a question, which a program answers.
      two.write("ask Which one? left | right\r")
      await Promise.all([one, two, late].map((terminal) => terminal.until(asks("Which one?"))))
      const [open] = (await server.call("GET", `/session/${id}/interaction`)).body.items
      const response = { response: { outcome: "selected", index: 1 } }
      expect((await server.call("POST", `/session/${id}/interaction/${open?.id}`, response)).status).toBeLessThan(300)
      await Promise.all([one, two, late].map((terminal) => terminal.until("Which one? was answered elsewhere.")))
      await Promise.all(
        [one, two, late].map((terminal) =>
          terminal.until((now) => asksNothing(now) && /Which one\?\n {2}right\n/.test(screenOf(now)))
        )
      )
      await same(one, two)
      await same(late, two)
      for (const terminal of [one, two, late]) {
        terminal.write("\u0004")
        expect((await terminal.exit()).code).toBe(0)
      }
    }
  )

  it("may all type and steer at once; each prompt comes once, in one order for all", async () => {
    const home = makeHome()
    const model = await startModelServer()
    onTestFinished(() => model.close())
    home.useServer(model)
    model.reply({ text: ["slow ", "but ", "sure"], delayMillis: 1_500 })
    model.always({ text: ["answered"] })
    const server = await startServer(home)
    const id = await server.create()
    const [one, two] = [await attach(home, server.url, id), await attach(home, server.url, id)]
    one.write("begin\r")
    await two.until("› begin")
    one.write("first of one\r")
    two.write("first of two\r")
    await Promise.all(
      [one, two].map((terminal) =>
        terminal.until((now) =>
          /↳ next: first of one/.test(screenOf(now)) && /↳ next: first of two/.test(screenOf(now))
        )
      )
    )
    one.write("half a thought")
    two.write("another half")
    await two.until((now) => now.screen().includes("another half"))
    // What one takes back is gone for the other.
    const inbox = [...screenOf(one).matchAll(/↳ next: (.*)/g)].map(([, words]) => words)
    two.write("\x1b[1;3A")
    await one.until((now) => !screenOf(now).includes(`↳ next: ${inbox[1]}`))
    await two.until((now) => now.screen().includes(`${inbox[1]}`) && now.screen().includes("another half"))
    await Promise.all([one, two].map((terminal) => terminal.until(new RegExp(`› ${inbox[0]}\\n+answered`))))
    expect(one.screen()).toContain("half a thought")
    expect(two.screen()).toContain("another half")
    for (const terminal of [one, two]) {
      terminal.write("\x03")
      await terminal.until("Press ctrl+c again to quit.")
    }
    await same(one, two)
    expect(one.text().split(`› ${inbox[0]}`)).toHaveLength(2)
  })

  it("see the last state pale while the server is away, and what a new terminal sees once it is back", async () => {
    const home = makeHome()
    home.write("work/note.txt", "Bezels hold stones.\n")
    const server = await startServer(home)
    const id = await server.create()
    const one = await attach(home, server.url, id)
    one.write("read note.txt\r")
    await one.until(/✓ read note\.txt[\s\S]*Bezels hold stones/)
    await one.settled()
    const row = () => one.screen().findIndex((line) => line.includes("✓ read note.txt"))
    const colored = one.cells(row()).map(({ color }) => color)
    expect(new Set(colored).size).toBeGreaterThan(1)
    server.process.kill("SIGKILL")
    await one.until("Disconnected; trying to connect again")
    await one.until((now) => new Set(now.cells(row()).map(({ color }) => color)).size === 1)
    one.write("list\r")
    await one.until("Not sent: there is no connection; it is tried again by itself.")
    const next = home.start(["serve", "--port", new URL(server.url).port, "--json"])
    await next.seen(/^\{.*\}\n/)
    await one.until((now) => JSON.stringify(now.cells(row()).map(({ color }) => color)) === JSON.stringify(colored))
    expect(screenOf(one)).not.toContain("Disconnected")
    expect(one.screen()).toContain("list")
    await one.settled()
    one.write("\r")
    await one.until(/✓ list/)
    const fresh = await attach(home, server.url, id)
    await fresh.until(/✓ list/)
    await same(one, fresh)
  })
})
