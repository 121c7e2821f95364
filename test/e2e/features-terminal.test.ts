/** What the screen shows of features beside the answer, with a model that looks at what it is sent: git, notices, sessions. */
import { execFileSync } from "node:child_process"
import { rmSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it, onTestFinished } from "vitest"
import { PseudoTerminal } from "../tui/terminal.ts"
import { makeHome, root } from "./command.ts"
import { messagesOf, serve, until } from "./run-fixture.ts"
import { startServer } from "./serve-fixture.ts"
import { runInTerminal } from "./terminal.ts"

const contentOf = (message: unknown): string => JSON.stringify(Object(message)["content"] ?? "")

/** How often a terminal was rung: what ends an escape sequence rings nothing. */
const bells = (raw: string): number =>
  // oxlint-disable-next-line no-control-regex
  raw.replaceAll(/\x1b\][^\x07\x1b]*(\x07|\x1b\\)/g, "").split("\u0007").length - 1

describe("bezel in a repository", { timeout: 60_000 }, () => {
  it("shows what the model changes and commits, and rings when its turn has ended", async () => {
    const home = makeHome()
    const who = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    const git = (...args: ReadonlyArray<string>) =>
      execFileSync("git", [...who, ...args], { cwd: home.work, encoding: "utf8" })
    git("init", "-q", "-b", "main")
    git("commit", "-q", "--allow-empty", "-m", "first")
    const commit = `git add . && git ${who.join(" ")} commit -q -m second && git checkout -q -b other && echo committed`
    const server = await serve(
      { calls: [{ name: "write", args: { path: "new.txt", content: "new\n" } }] },
      { text: "Written." },
      { calls: [{ name: "bash", args: { command: commit } }] },
      { text: "It is on another branch." }
    )
    home.useServer(server, { permissions: { write: "allow", bash: "allow" }, notify: "bell" })
    const terminal = runInTerminal(home, "bezel")
    await terminal.shows(/~\/work\s+main\s[\s\S]*test\/m/)
    terminal.type("write it\r")
    await terminal.shows(/Written\.[\s\S]*~\/work\s+main \?1\s/)
    terminal.type("commit it\r")
    await terminal.shows(/It is on another branch\.[\s\S]*~\/work\s+other\s+[^?]*test\/m/)
    expect(contentOf(messagesOf(server.requests[3]?.body).at(-1))).toContain("committed")
    // Also the end of the turn, which the words come before.
    await until(() => bells(terminal.raw()) === 2)
    terminal.type("\u0004")
    expect(bells((await terminal.ended).raw)).toBe(2)
    expect(git("log", "--format=%s").trim().split("\n")).toEqual(["second", "first"])
  })
})

describe("the sessions of a server", { timeout: 90_000 }, () => {
  it("are shown with those that work, and the one that is chosen is the one that is spoken to", async () => {
    const home = makeHome()
    const gate = home.write("gate", "")
    const model = await serve(
      { calls: [{ name: "bash", args: { command: `while [ -e ${gate} ]; do sleep 0.05; done; echo built` } }] },
      { text: "It is built." },
      { text: "You are welcome." }
    )
    home.useServer(model, { permissions: { bash: "allow" } })
    const server = await startServer(home)
    const builds = await server.create({ title: "The build" })
    const other = await server.create({ title: "The other" })
    await server.say(builds, "build it")
    const terminal = PseudoTerminal.open({
      command: `bezel attach ${server.url} --session ${other}`,
      cwd: home.work,
      env: { HOME: home.folder, PATH: `${join(root, "bin")}:${process.env["PATH"]}` }
    })
    onTestFinished(() => terminal.close())
    await terminal.until(/test\/m$/m)
    terminal.write("/sessions\r")
    await terminal.until(/The build\s+active, just now[\s\S]*enter choose/)
    expect(terminal.text()).toMatch(/The other\s+this one, just now/)
    terminal.write("build")
    await terminal.until((now) => !/The other\s+this one/.test(now.screen().join("\n")))
    terminal.write("\r")
    await terminal.until(/› build it/)
    rmSync(gate)
    await terminal.until(/It is built\./)
    terminal.write("thank you\r")
    await terminal.until(/You are welcome\./)
    expect(
      messagesOf(model.requests[2]?.body).filter(({ role }) => role === "user").map(contentOf)
    ).toEqual(['"build it"', '"thank you"'])
    terminal.write("/sessions\r")
    await terminal.until(/The build\s+this one, just now[\s\S]*enter choose/)
    terminal.write("\x1b")
    await terminal.until((now) => !now.screen().join("\n").includes("enter choose"))
    terminal.write("\u0004")
    expect((await terminal.exit()).code).toBe(0)
  })
})

describe("a session of a server that nobody attends", { timeout: 60_000 }, () => {
  it.each([["wait", false], ["deny", true]] as const)(
    "with %s as what becomes of its questions",
    async (unattended, isSettled) => {
      const home = makeHome()
      const model = await serve(
        { calls: [{ name: "bash", args: { command: "touch made" } }] },
        { text: "I may not." }
      )
      home.useServer(model, { unattended })
      const server = await startServer(home)
      const id = await server.create()
      const input = await server.say(id, "go")
      const wait = async (seconds: number) =>
        (await server.call("POST", `/session/${id}/wait?timeout=${seconds}&input=${input}`)).body
      if (isSettled) expect(await wait(30)).toMatchObject({ status: "done", text: "I may not." })
      else {
        // Who only waits is nobody to ask.
        expect(await wait(1)).toMatchObject({ status: "running" })
        const { items } = (await server.call("GET", `/session/${id}/interaction`)).body
        expect(items).toHaveLength(1)
        await server.call("POST", `/session/${id}/interaction/${items[0]?.id}`, { declined: true })
        expect(await wait(30)).toMatchObject({ status: "done", text: "I may not." })
      }
      expect(contentOf(messagesOf(model.requests[1]?.body).at(-1))).toContain(
        isSettled ? "nobody is here" : "said no"
      )
    }
  )
})

describe("trust in a project", { timeout: 60_000 }, () => {
  it("that was given on the screen holds for runs too, until what the project sets has changed, which is asked about", async () => {
    const home = makeHome()
    const server = await serve()
    const project = (word: string) =>
      home.write(
        "work/bezel.jsonc",
        JSON.stringify({ hooks: { beforeTool: [{ command: `echo ${word} >&2; exit 2` }] } })
      )
    project("no")
    home.useServer(server)
    server.reply({ calls: [{ name: "list", args: {} }] }, { text: "one" })
    const before = await home.run(["run", "go"])
    expect(before.stderr).toContain("is not trusted, so hooks in it has no effect")
    expect(contentOf(messagesOf(server.requests[1]?.body).at(-1))).not.toContain("blocked")
    const terminal = runInTerminal(home, "bezel")
    await terminal.shows(/bezel\.jsonc: hooks[\s\S]*Trust them\? \[y\/N\]/)
    terminal.type("y\r")
    await terminal.shows(/test\/m/)
    terminal.type("\u0004")
    await terminal.ended
    server.reply({ calls: [{ name: "list", args: {} }] }, { text: "two" })
    const trusted = await home.run(["run", "go"])
    expect(trusted.stderr).not.toContain("not trusted")
    expect(contentOf(messagesOf(server.requests.at(-1)?.body).at(-1))).toContain(
      "A hook of the user blocked this call: no"
    )
    project("never")
    server.reply({ calls: [{ name: "list", args: {} }] }, { text: "three" })
    expect((await home.run(["run", "go"])).stderr).toContain("is not trusted, so hooks in it has no effect")
    expect(contentOf(messagesOf(server.requests.at(-1)?.body).at(-1))).not.toContain("blocked")
    const again = runInTerminal(home, "bezel")
    await again.shows(/have changed since you trusted it[\s\S]*Trust them\? \[y\/N\]/)
    again.type("\u0003")
    await again.ended
  })
})
