import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { type Home, makeHome } from "./command.ts"
import { serve, until } from "./run-fixture.ts"
import { runInTerminal, type TerminalRun } from "./terminal.ts"

const sessionOf = async (home: Home): Promise<string> =>
  String(JSON.parse((await home.run(["session", "list", "--json"])).stdout.split("\n")[0] ?? "{}").id)

/** A dialog takes no keys of somebody who is still typing, and says when it does. */
const listens = (terminal: TerminalRun) => terminal.shows(/enter choose · esc cancel/)

/** A path with all that the command needs but git. */
const withoutGit = (home: Home): string => {
  const folder = join(home.folder, "programs")
  mkdirSync(folder)
  for (const program of ["sh", "bash", "env", "node", "dirname", "readlink", "uname", "cat", "ls"]) {
    const found = (process.env.PATH ?? "").split(":").map((part) => join(part, program)).find((path) =>
      existsSync(path)
    )
    if (found !== undefined) symlinkSync(found, join(folder, program))
  }
  return folder
}

const read = (home: Home, name: string) => readFileSync(join(home.work, name), "utf8")

describe("bezel session revert", () => {
  it("shows what it would take back, takes it back with the files, and brings it back", async () => {
    const home = makeHome()
    home.write("work/a.txt", "one\n")
    await home.run(["run", "--yes", "list"])
    const id = await sessionOf(home)
    await home.run([
      "run",
      "--yes",
      "--session",
      id,
      "edit a.txt: one => two then run echo new > b.txt; mkdir d; echo x > d/e"
    ])
    const planned = await home.run(["session", "revert", id, "--to", "last", "--dry-run"])
    expect(planned.code).toBe(0)
    expect(planned.stdout).toMatch(
      /-two\n\+one\n[\s\S]*would be taken back: everything from "edit a\.txt.*, and 3 files\n$/
    )
    expect(read(home, "a.txt")).toBe("two\n")
    const taken = await home.run(["session", "revert", id, "--to", "last"])
    expect([taken.code, taken.stdout]).toEqual([0, expect.stringContaining("\ntaken back: everything")])
    expect(read(home, "a.txt")).toBe("one\n")
    expect(existsSync(join(home.work, "d"))).toBe(false)
    const shown = await home.run(["session", "revert", id, "--to", "last", "--dry-run", "--json"])
    expect(JSON.parse(shown.stdout)).toMatchObject({ status: "planned", prompt: "list", files: [] })
    const back = await home.run(["session", "revert", id, "--clear"])
    expect([back.code, back.stdout]).toEqual([0, expect.stringContaining("brought back: everything")])
    expect(read(home, "d/e")).toBe("x\n")
  })

  it("does nothing where somebody else has changed a file, says which, and leaves it alone with --keep", async () => {
    const home = makeHome()
    await home.run(["run", "--yes", "write a.txt: mine then write b.txt: mine"])
    const id = await sessionOf(home)
    writeFileSync(join(home.work, "a.txt"), "by hand")
    const refused = await home.run(["session", "revert", id, "--to", "last"])
    expect(refused).toMatchObject({ code: 1, stdout: "" })
    expect(refused.stderr).toMatch(
      /a\.txt: it has been changed since this session changed it\n.*nothing was taken back/
    )
    expect(read(home, "b.txt")).toBe("mine")
    expect((await home.run(["session", "revert", id, "--to", "last", "--keep"])).code).toBe(0)
    expect(read(home, "a.txt")).toBe("by hand")
    expect(existsSync(join(home.work, "b.txt"))).toBe(false)
  })

  it("says what is wrong with what it is asked for", async () => {
    const home = makeHome()
    await home.run(["run", "list"])
    const id = await sessionOf(home)
    expect(await home.run(["session", "revert", id])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("--to")
    })
    expect(await home.run(["session", "revert", id, "--to", "e999"])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('no entry "e999"')
    })
    expect(await home.run(["session", "revert", id, "--clear"])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("Nothing has been taken back")
    })
    expect((await home.run(["session", "revert", "nope", "--to", "last"])).stderr).toContain("there is no session")
  })

  it("of a session whose process was killed in a command leaves alone what that may have changed, and says so", async () => {
    const home = makeHome()
    const running = home.start(["run", "--yes", "write b.txt: mine then run echo half > a.txt; sleep 60"])
    await until(() => existsSync(join(home.work, "a.txt")))
    running.process.kill("SIGKILL")
    await running.ended
    const id = await sessionOf(home)
    const refused = await home.run(["session", "revert", id, "--to", "last"])
    expect(refused.code).toBe(1)
    expect(refused.stderr).toMatch(/a\.txt: it changed while something of this session was cut off/)
    expect((await home.run(["session", "revert", id, "--to", "last", "--keep"])).code).toBe(0)
    expect(read(home, "a.txt")).toBe("half\n")
    expect(existsSync(join(home.work, "b.txt"))).toBe(false)
    expect((await home.run(["session", "show", id])).stdout).toBe("")
  })

  it("in a repository without git takes back what the tools wrote, and says that it does not know what commands changed", async () => {
    const home = makeHome()
    home.write("work/.git/HEAD", "ref: refs/heads/main\n")
    const env = { PATH: withoutGit(home) }
    await home.run(["run", "--yes", "write a.txt: mine then run echo command > b.txt"], { env })
    const id = await sessionOf(home)
    const taken = await home.run(["session", "revert", id, "--to", "last"], { env })
    expect(taken.code).toBe(0)
    expect(taken.stderr).toContain(
      "What commands changed in files is not known, so it is not taken back: git is not installed."
    )
    expect(existsSync(join(home.work, "a.txt"))).toBe(false)
    expect(read(home, "b.txt")).toBe("command\n")
  })
})

describe("bezel session export and import", () => {
  it("give markdown and a page to read, and JSON that comes back as it was; what is no session is refused", async () => {
    const home = makeHome()
    home.write("work/a.txt", "<b>A</b>\n")
    await home.run(["run", "read a.txt"])
    const id = await sessionOf(home)
    expect((await home.run(["session", "export", id, "--format", "markdown"])).stdout).toMatch(
      /^# read a\.txt\n[\s\S]*> read a\.txt[\s\S]*<details><summary>✓ read a\.txt<\/summary>/
    )
    const page = (await home.run(["session", "export", id, "--format", "html"])).stdout
    expect(page).toMatch(/^<!doctype html>[\s\S]*&lt;b&gt;A&lt;\/b&gt;[\s\S]*<\/html>\n$/)
    expect(page).not.toContain("<b>A")
    expect((await home.run(["session", "export", id, "--format", "pdf"])).code).toBe(2)
    const document = (await home.run(["session", "export", id])).stdout
    const copy = (await home.run(["session", "import"], { stdin: document })).stdout.trim()
    expect((await home.run(["session", "show", copy])).stdout).toBe((await home.run(["session", "show", id])).stdout)
    const broken = JSON.parse(document)
    broken.entries[1].conversation = "c99"
    for (const input of [page, document.slice(0, -20), "{}", JSON.stringify(broken)]) {
      const refused = await home.run(["session", "import"], { stdin: input })
      expect(refused.code).toBeGreaterThan(0)
      expect(refused.stderr).toMatch(
        /^bezel: (stdin cannot be read as JSON|this is no session that Bezel can import): .+\n$/
      )
    }
    expect((await home.run(["session", "list", "--json"])).lines()).toHaveLength(2)
  })
})

describe("in the terminal", () => {
  it("/undo shows the diff, takes back the turn and gives the prompt back; /redo brings it back", async () => {
    const home = makeHome()
    home.write("work/a.txt", "one\n")
    const terminal = runInTerminal(home, "bezel")
    await terminal.shows(/bezel\/offline/)
    terminal.type("edit a.txt: one => two\r")
    await terminal.shows(/Allow edit\?/)
    await listens(terminal)
    terminal.type("\r")
    await terminal.shows(/Edited a\.txt \(line 1\)/)
    terminal.type("/undo\r")
    await terminal.shows(/Take this back\?[\s\S]*-two[\s\S]*\+one/)
    await listens(terminal)
    terminal.type("\r")
    await terminal.shows(/Taken back, with 1 file/)
    await terminal.shows(/taken back: edit a\.txt: one => two, 1 file/)
    expect(read(home, "a.txt")).toBe("one\n")
    terminal.type("\u0015/redo\r")
    await terminal.shows(/Bring this back\?/)
    await listens(terminal)
    terminal.type("\r")
    await terminal.shows(/Brought back, with 1 file/)
    expect(read(home, "a.txt")).toBe("two\n")
    // Two keys of their own, as terminals with the newer protocol send them.
    terminal.type("\u001b[27u\u001b[27u")
    await terminal.shows(/Go back to before which prompt\?[\s\S]*edit a\.txt/)
    terminal.type("\u001b[27u\u0004")
    await terminal.ended
  })

  it("a session is renamed, forks stand below what they came from, and sessions begun in vain are gone", async () => {
    const home = makeHome()
    await home.run(["run", "list"])
    const first = await sessionOf(home)
    const terminal = runInTerminal(home, "bezel --continue")
    await terminal.shows(/› list/)
    terminal.type("/rename The shop\r")
    await terminal.shows(/called The shop now/)
    const busy = await home.run(["session", "revert", first, "--to", "last"])
    expect(busy.code).toBe(1)
    expect(busy.stderr).toMatch(/^bezel: .*in use|open in|process \d+/)
    expect(await home.run(["session", "fork", first])).toMatchObject({ code: 0 })
    terminal.type("/new One more\r")
    // The new one has used nothing of the model's context yet.
    await terminal.shows(/~\/work +bezel\/offline/)
    terminal.type("/sessions shop\r")
    await terminal.shows(/1\. The shop[\s\S]*2\. └ The shop/)
    terminal.type("\u001b[27u\u0004")
    await terminal.ended
    const left = (await home.run(["session", "list", "--json"])).lines()
    expect(left.map(({ title }) => title)).toEqual(["The shop", "The shop"])
    expect(left.map(({ forkedFrom }) => forkedFrom)).toEqual(expect.arrayContaining([first, undefined]))
    expect((await home.run(["session", "list", "--search", "SHOP"])).stdout.split("\n")).toHaveLength(3)
    expect((await home.run(["session", "list", "--search", "nothing"])).stdout).toBe("")
  })
})

describe("bezel session export", () => {
  it.each(["json", "markdown", "html"])(
    "as %s hands a terminal nothing to obey, and a file every byte",
    async (format) => {
      const home = makeHome()
      const evil = "before \u001b]0;evil\u0007 \u009b2J after"
      home.useServer(await serve({ text: evil }))
      await home.run(["run", "hi"])
      const id = await sessionOf(home)
      const { code, raw } = await runInTerminal(home, `bezel session export ${id} --format ${format}`).ended
      expect(code).toBe(0)
      expect(raw).toContain("before ")
      // oxlint-disable-next-line no-control-regex
      expect(raw).not.toMatch(/[\u001b\u0007\u009b]/)
      if (format === "markdown") {
        expect((await home.run(["session", "export", id, "--format", format])).stdout)
          .toContain(evil)
      }
    }
  )
})
