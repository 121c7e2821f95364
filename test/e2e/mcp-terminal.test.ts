/** Servers of the Model Context Protocol in a real terminal: the list, a call that asks, a prompt, and hooks and notices with them. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { makeHome, root } from "./command.ts"
import { isAlive, messagesOf, serve, until } from "./run-fixture.ts"
import { runInTerminal } from "./terminal.ts"

const scripted = join(root, "test/plugins/mcp/server-program.ts")

describe("bezel in a terminal with a server", () => {
  it("shows it, asks before its tools run, sends its prompts, and ends it", async () => {
    const home = makeHome()
    const marks = join(home.folder, "marks")
    home.write("marks/.keep", "")
    const server = await serve(
      { calls: [{ name: "own_echo", args: { text: "hello" } }] },
      { text: "Echoed." },
      { text: "Reviewed." }
    )
    home.useServer(server, {
      mcp: {
        own: { command: [process.execPath, "--no-warnings", scripted, "plain", marks] },
        gone: { command: ["/no/such/program"] }
      },
      notify: "osc9"
    })
    const terminal = runInTerminal(home, "bezel")
    await terminal.shows(/test\/m/)
    await terminal.shows(/The MCP server gone is not connected/)
    // The list is of the moment in which it was opened: a server may be starting still.
    for (let isUp = false; !isUp;) {
      terminal.type("/mcp\r")
      await terminal.shows(
        /MCP servers[\s\S]*1\. own {2}[\s\S]*2\. gone {2}not connected[\s\S]*enter choose · esc cancel/
      )
      isUp = /1\. own {2}\d+ tools, 1 prompt/.test(terminal.text())
      terminal.type("\u001b")
      await terminal.shows(/^(?![\s\S]*MCP servers)/)
    }
    terminal.type("go\r")
    await terminal.shows(/Allow own_echo\?[\s\S]*enter choose/)
    terminal.type("\r")
    await terminal.shows(/✓ own_echo text=hello[\s\S]*Echoed\./)
    terminal.type("/own:review a.ts\r")
    await terminal.shows(/Reviewed\./)
    const prompt = messagesOf(server.requests[2]?.body).at(-1)
    expect(JSON.stringify(prompt)).toContain(JSON.stringify('Review {"file":"a.ts"}').slice(1, -1))
    terminal.type("\u0004")
    const { code, raw } = await terminal.ended
    expect(code).toBe(0)
    expect(raw).toContain("\u001b]9;Bezel: waits for you\u0007")
    expect(raw).toContain("\u001b]9;Bezel: Reviewed.\u0007")
    const pid = Number(readFileSync(join(marks, "started"), "utf8"))
    await until(() => !isAlive(pid))
  }, 60_000)
})
