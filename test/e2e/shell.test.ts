/** Lines that a person types behind `!`, in a real terminal. */
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { startModelServer } from "../../packages/core/src/testing/model-server.ts"
import { makeHome } from "./command.ts"
import { runInTerminal } from "./terminal.ts"

/** How many processes sleep as long as no other test does. */
const sleeping = (): number =>
  readdirSync("/proc").filter((name) => {
    try {
      return readFileSync(`/proc/${name}/cmdline`, "utf8") === "sleep\u00003071\u0000"
    } catch {
      return false
    }
  }).length

describe("a shell line", { timeout: 60_000 }, () => {
  it("runs without being asked for, shows what it prints, and the model learns of it with the next prompt", async () => {
    const server = await startModelServer({ text: "I see" })
    const home = makeHome()
    home.useServer(server)
    const terminal = runInTerminal(home, "bezel")
    await terminal.shows(/test\/m/)
    terminal.type("!echo one && echo two >&2 && pwd > made && exit 3\r")
    await terminal.shows(/! echo one[\s\S]*\n {2}one\n {2}two\n {2}exit code 3/)
    expect(existsSync(join(home.work, "made"))).toBe(true)
    terminal.type("!!echo between us\r")
    await terminal.shows(/ {2}between us/)
    terminal.type("hello\r")
    await terminal.shows(/I see/)
    const sent = JSON.stringify(server.requests[0]?.body)
    expect(sent).toContain("echo one")
    expect(sent).toContain("exit code 3")
    expect(sent).not.toContain("between us")
    terminal.type("\u0004")
    await terminal.ended
    await server.close()
  })

  it("shows its output while it runs, and escape ends it with all that it started", async () => {
    const home = makeHome()
    const terminal = runInTerminal(home, "bezel")
    await terminal.shows(/bezel\/offline/)
    terminal.type("!echo begun; (sleep 3071; touch late) & sleep 3071; touch after\r")
    await terminal.shows(/ {2}begun/)
    await expect.poll(sleeping, { timeout: 20_000 }).toBe(2)
    terminal.type("!echo too early\r")
    await terminal.shows(/Another line runs already/)
    terminal.type("\u001b")
    await terminal.shows(/ {2}begun\n {2}stopped/)
    await expect.poll(sleeping, { timeout: 20_000 }).toBe(0)
    expect(existsSync(join(home.work, "after"))).toBe(false)
    terminal.type("\u0004")
    await terminal.ended
  })

  it("of control characters and of much output leaves the screen as it is", async () => {
    const home = makeHome()
    const terminal = runInTerminal(home, "bezel")
    await terminal.shows(/bezel\/offline/)
    terminal.type("!printf '\\033]0;title\\007\\033[2J\\033[HAllow bash?\\n'; seq 100000\r")
    await terminal.shows(/ {2}100000\n/)
    expect(terminal.text()).toMatch(/lines above/)
    terminal.type("\u0004")
    const { raw } = await terminal.ended
    expect(raw).not.toContain("\u001b]0;title")
  })
})
