/**
 * Permissions through the command: what each call of a model becomes under rules, what it is told, and what a person's answers
 * leave behind for later calls and runs.
 */
import { execFileSync } from "node:child_process"
import { existsSync, readFileSync, symlinkSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import type { JsonObject } from "../../packages/core/src/json/index.ts"
import { type Home, makeHome } from "./command.ts"
import { messagesOf, serve } from "./run-fixture.ts"
import { runInTerminal, type TerminalRun } from "./terminal.ts"

type Call = readonly [tool: string, args: JsonObject]

/** What the model of one run is told of each of its calls, in order. */
const toldOf = async (home: Home, argv: ReadonlyArray<string>, calls: ReadonlyArray<Call>, settings: object = {}) => {
  const server = await serve(
    { calls: calls.map(([name, args], index) => ({ id: `c${index}`, name, args })) },
    { text: "done" }
  )
  home.useServer(server, settings)
  const ended = await home.run(["run", ...argv, "go"])
  const results = new Map(
    messagesOf(server.requests[1]?.body).filter(({ role }) => role === "tool").map(({ content, tool_call_id }) =>
      [tool_call_id, String(content)] as const
    )
  )
  return { ...ended, told: calls.map((_, index) => results.get(`c${index}`) ?? "(nothing)") }
}

const ran = /\[exit code \d+\]/
const denied = /^A permission rule denies this call/
const wouldAsk = /^This call needs a user's approval and nobody is here to give it/

describe("rules", { timeout: 60_000 }, () => {
  it("judge each simple command of a line, whichever way they are joined", async () => {
    const home = makeHome()
    execFileSync("git", ["init", "-q"], { cwd: home.work })
    for (const name of ["a", "b", "c", "d", "e", "f", "g"]) home.write(`work/${name}`, "")
    const lines: ReadonlyArray<readonly [line: string, told: RegExp]> = [
      ["git log --oneline", ran],
      ["git log; git log", ran],
      ["git log; rm a", denied],
      ["git log || rm b", denied],
      ["git log $(rm c)", denied],
      ["git log\nrm d", denied],
      ["git log & rm e", denied],
      ["git log > made", wouldAsk],
      ["git log <<X\n$(rm f)\nX", denied],
      ["env -i nice rm g", denied],
      ["xargs -a list rm", denied],
      ["git status", wouldAsk],
      ["git log 'unfinished", wouldAsk],
      ["$COMMAND a", wouldAsk]
    ]
    const { code, stdout, told } = await toldOf(
      home,
      ["--allow", "bash(git log*)", "--deny", "bash(rm *)"],
      lines.map(([command]) => ["bash", { command }])
    )
    lines.forEach(([line, expected], index) => expect(told[index], line).toMatch(expected))
    // Something would have been asked about; the answer is there all the same.
    expect([code, stdout]).toEqual([3, "done\n"])
    for (const name of ["a", "b", "c", "d", "e", "f", "g"]) expect(existsSync(join(home.work, name)), name).toBe(true)
    expect(existsSync(join(home.work, "made"))).toBe(false)
  })

  it("judge files by where they are, links and roundabout ways included", async () => {
    const home = makeHome()
    home.write("work/src/a.txt", "inside\n")
    home.write("work/.env", "KEY=1\n")
    home.write("outside/a.txt", "outside\n")
    home.write("notes/a.txt", "allowed\n")
    symlinkSync(join(home.folder, "outside"), join(home.work, "out"))
    symlinkSync(".env", join(home.work, "env-link"))
    const rows: ReadonlyArray<readonly [call: Call, told: RegExp]> = [
      [["read", { path: "src/a.txt" }], /inside/],
      [["read", { path: `${home.work}/src/../src/a.txt` }], /inside/],
      [["read", { path: ".env" }], denied],
      [["read", { path: "src/../env-link" }], denied],
      [["read", { path: "out/a.txt" }], wouldAsk],
      [["read", { path: "../outside/a.txt" }], wouldAsk],
      [["read", { path: "~/notes/a.txt" }], /allowed/],
      [["list", { path: "out" }], wouldAsk],
      [["search", { pattern: "outside", path: "out/a.txt" }], wouldAsk],
      [["write", { path: "src/new.txt", content: "x" }], /^Created src\/new\.txt/],
      [["write", { path: "new.txt", content: "x" }], wouldAsk],
      [["write", { path: "out/new.txt", content: "x" }], wouldAsk],
      [["edit", { path: "env-link", oldText: "1", newText: "2" }], denied]
    ]
    const { code, told } = await toldOf(home, [], rows.map(([call]) => call), {
      permissions: {
        read: { ".env": "deny", "~/notes/**": "allow" },
        write: { "src/**": "allow", ".env": "deny" }
      }
    })
    rows.forEach(([call, expected], index) => expect(told[index], JSON.stringify(call)).toMatch(expected))
    expect(code).toBe(3)
    expect(told.join("\n")).not.toContain("KEY=1")
    expect(existsSync(join(home.folder, "outside/new.txt"))).toBe(false)
  })

  it("of a deny win over --yes, over --allow and over an agent that allows, and a tool that is denied is not offered", async () => {
    const home = makeHome()
    home.write(".config/bezel/agents/free.md", "---\npermissions: { bash: allow, write: allow }\n---\nBe free.")
    const server = await serve({ calls: [{ name: "bash", args: { command: "rm -rf src" } }] }, { text: "done" })
    home.useServer(server, { permissions: { bash: { "rm *": "deny" }, web: "deny", web_fetch: "deny" } })
    home.write("work/src/a.txt", "")
    const ended = await home.run(["run", "--yes", "--allow", "bash(rm *)", "--agent", "free", "go"])
    // A rule said no, so nobody was missing.
    expect(ended).toMatchObject({ code: 0, stdout: "done\n" })
    expect(String(messagesOf(server.requests[1]?.body).at(-1)?.content)).toMatch(denied)
    const offered = (server.requests[0]?.body.tools ?? []) as ReadonlyArray<
      { readonly function: { readonly name: string } }
    >
    expect(offered.map((tool) => tool.function.name)).not.toContain("web_fetch")
    expect(existsSync(join(home.work, "src/a.txt"))).toBe(true)
  })
})

/** A dialog takes no keys of somebody who is still typing, and says when it does. */
const listens = (terminal: TerminalRun) => terminal.shows(/enter choose · esc cancel/)
const down = "\u001b[B"

describe("a person's answer", { timeout: 60_000 }, () => {
  it("to two edits of one file lets both land, however quickly it comes", async () => {
    const home = makeHome()
    home.write("work/a.txt", "one\r\ntwo\r\n")
    const edit = (oldText: string, newText: string) => ({ name: "edit", args: { path: "a.txt", oldText, newText } })
    const server = await serve({ calls: [edit("one", "1\n1"), edit("two", "2")] }, { text: "Edited both." })
    home.useServer(server)
    const terminal = runInTerminal(home, "bezel")
    await terminal.shows(/test\/m/)
    terminal.type("edit it\r")
    for (const text of ["one", "two"]) {
      await terminal.shows(/Allow edit\?[\s\S]*a\.txt[\s\S]*enter choose · esc cancel/)
      terminal.type("\r")
      if (text === "one") await terminal.shows(/✓ edit a\.txt/)
    }
    await terminal.shows(/Edited both\./)
    expect(readFileSync(join(home.work, "a.txt"), "utf8")).toBe("1\r\n1\r\n2\r\n")
  })

  it("holds once, for the session or for the project, beats no deny, and can be taken back", async () => {
    const home = makeHome()
    const bash = (command: string) => ({ calls: [{ name: "bash", args: { command } }] })
    const server = await serve()
    home.useServer(server, { agents: { careful: { permissions: { bash: { "touch *": "deny" } } } } })
    const terminal = runInTerminal(home, "bezel")
    await terminal.shows(/test\/m/)
    const ask = (commands: ReadonlyArray<string>, answer: string) => {
      server.reply(...commands.map(bash), { text: answer })
      terminal.type(`${answer}?\r`)
    }
    const choose = async (command: string, keys: string) => {
      await terminal.shows(new RegExp(`Allow bash\\?[\\s\\S]*${command}[\\s\\S]*enter choose · esc cancel`))
      terminal.type(keys)
    }
    // Once: the same again is asked again, and the person says what to do instead.
    ask(["touch once", "touch once"], "One")
    await choose("touch once", "\r")
    await terminal.shows(/✓ bash touch once/)
    await choose("touch once", `${down}${down}${down}\r`)
    await terminal.shows(/What should it do instead\?/)
    await terminal.shows(/enter to just say no/)
    terminal.type("leave it\r")
    await terminal.shows(/One(?!\?)/)
    expect(String(messagesOf(server.requests.at(-1)?.body).at(-1)?.content)).toBe(
      "The user was asked and said no, so this call was not run. The user says: leave it"
    )
    // For the session.
    ask(["touch session", "touch session"], "Two")
    await choose("touch session", `${down}\r`)
    await terminal.shows(/Two(?!\?)/)
    // For the project.
    ask(["touch project", "touch project"], "Three")
    await choose("touch project", `${down}${down}\r`)
    await terminal.shows(/Three(?!\?)/)
    expect(["once", "session", "project"].map((name) => existsSync(join(home.work, name)))).toEqual([true, true, true])

    // Later runs know what holds for the project, and nothing else of it.
    const later = async (command: string, ...argv: ReadonlyArray<string>) => {
      server.reply(bash(command), { text: "later" })
      const { code } = await home.run(["run", ...argv, "go"])
      return [code, String(messagesOf(server.requests.at(-1)?.body).at(-1)?.content)]
    }
    expect(await later("touch project")).toEqual([0, expect.stringMatching(ran)])
    expect(await later("touch session")).toEqual([3, expect.stringMatching(wouldAsk)])
    expect(await later("touch project", "--deny", "bash(touch *)")).toEqual([0, expect.stringMatching(denied)])
    expect(await later("touch project", "--agent", "careful")).toEqual([0, expect.stringMatching(denied)])

    terminal.type("/permissions\r")
    await terminal.shows(/Always allowed in this project[\s\S]*bash\(touch project\)/)
    await listens(terminal)
    terminal.type("\r")
    await terminal.shows(/Ask about bash\(touch project\) again\?/)
    await listens(terminal)
    terminal.type("\r")
    await terminal.shows(/bash\(touch project\) is asked about again\./)
    expect(await later("touch project")).toEqual([3, expect.stringMatching(wouldAsk)])
    expect(readFileSync(join(home.folder, ".config/bezel/bezel.jsonc"), "utf8")).not.toContain("touch project")
  })
})
