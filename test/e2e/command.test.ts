import { spawnSync } from "node:child_process"
import { readdirSync, symlinkSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { makeHome, root } from "./command.ts"

const version = /^\d+\.\d+\.\d+\n$/

describe("bin/bezel", () => {
  it("prints its version, from any folder and through a symbolic link", async () => {
    const home = makeHome()
    const link = join(home.folder, "link")
    symlinkSync(join(root, "bin/bezel"), link)
    const relative = join(home.folder, "relative")
    symlinkSync("link", relative)
    for (const command of [join(root, "bin/bezel"), link, relative]) {
      const { status, stderr, stdout } = spawnSync(command, ["--version"], { cwd: home.work, encoding: "utf8" })
      expect({ status, stderr, stdout }).toEqual({ status: 0, stderr: "", stdout: expect.stringMatching(version) })
    }
  })

  it("runs the source with BEZEL_SOURCE=1, with the same result", async () => {
    const { code, stdout } = await makeHome().run(["--version"], { env: { BEZEL_SOURCE: "1" } })
    expect([code, version.test(stdout)]).toEqual([0, true])
  })

  it("replaces the shell, so a signal to it reaches the program", async () => {
    const home = makeHome()
    const running = home.start(["run", "run sleep 30", "--yes", "--json"])
    await running.seen(/tool\.started/)
    running.process.kill("SIGINT")
    expect((await running.ended).code).toBe(130)
  })

  it("prints help on stdout, for every command, with examples", async () => {
    const home = makeHome()
    for (const command of [[], ["run"], ["session"], ["session", "list"], ["doctor"]]) {
      const { code, stderr, stdout } = await home.run([...command, "--help"])
      expect([code, stderr, stdout.includes("Examples:")]).toEqual([0, "", true])
    }
  })
})

describe("what goes wrong is told in one line, without a stack:", () => {
  it("a data folder that cannot be made", async () => {
    const home = makeHome()
    const ended = await home.run(["run", "hello"], { env: { BEZEL_DATA_DIR: home.write("file", "") + "/data" } })
    expect(ended).toMatchObject({
      code: 1,
      stdout: "",
      stderr: expect.stringMatching(/^bezel: [^\n]*file\/data[^\n]*\n$/)
    })
  })

  it("also by the doctor, who says what to do", async () => {
    const home = makeHome()
    home.settings('{ "modle": 1 }')
    const ended = await home.run(["doctor"])
    expect([ended.code, ended.stderr]).toEqual([1, ""])
    expect(ended.stdout).toMatch(/^✗ settings: .*bezel\.jsonc:1.*model/m)
    home.settings({})
    expect(await home.run(["doctor"])).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^! model: bezel\/offline/m)
    })
  })

  it("output that cannot be written, whichever command it is of", async () => {
    const home = makeHome()
    for (const argv of [["--help"], ["doctor"]]) {
      const ended = await home.run(argv, { stdoutTo: "/dev/full" })
      expect([ended.code, ended.stderr]).toEqual([
        1,
        expect.stringMatching(/^bezel: stdout cannot be written: [^\n]*\n$/)
      ])
    }
  })

  it("a file to import that is no JSON, whatever is in it", async () => {
    const home = makeHome()
    expect(await home.run(["session", "import"], { stdin: "\u001b[31mred\n\u0007" })).toMatchObject({
      code: 2,
      stdout: "",
      stderr: expect.stringMatching(/^bezel: stdin cannot be read as JSON: [^\u0000-\u001f]*\n$/)
    })
  })

  it("and a HOME that is no absolute path leaves nothing in the folder of work", async () => {
    const home = makeHome()
    const folders = { BEZEL_DATA_DIR: join(home.folder, "data"), BEZEL_STATE_DIR: join(home.folder, "state") }
    for (const HOME of ["", "relative"]) {
      const env = { HOME, ...folders, BEZEL_CONFIG_DIR: "", BEZEL_CACHE_DIR: "" }
      expect(await home.run(["run", "list"], { env })).toMatchObject({ code: 0 })
    }
    expect(readdirSync(home.work)).toEqual([])
  })

  it("and nothing when the reader of the output goes away; what would run is not run to its end", () => {
    const home = makeHome()
    const line = `${
      join(root, "bin/bezel")
    } run --json --yes "run sleep 1; touch went-on then run sleep 60" | head -n 1`
    const { stderr, stdout } = spawnSync("bash", ["-c", line], {
      cwd: home.work,
      env: { HOME: home.folder, PATH: process.env.PATH },
      encoding: "utf8",
      timeout: 25_000
    })
    expect([stderr, stdout]).toEqual(["", expect.stringMatching(/^{"type":"session".*\n$/)])
    expect(readdirSync(home.work)).toEqual([])
  })
})

describe("a wrong command line ends with 2 and one line that names the fault", () => {
  it.each([
    [["run", "--modle", "x"], "bezel: bezel run has no option --modle; did you mean --model?\n"],
    [["sessoin", "list"], "bezel: there is no command bezel sessoin; did you mean bezel session?\n"],
    [["version"], "bezel: there is no folder and no command version; did you mean bezel --version?\n"],
    [["run", "--timeout", "soon", "hi"], 'bezel: --timeout takes a number over 0, not "soon"\n'],
    [["serve", "--isolation", "all"], 'bezel: --isolation takes one of none, location, session, not "all"\n'],
    [["session", "import", "/dev/zero"], "bezel: /dev/zero cannot be read: it is larger than 256 MiB\n"],
    [
      ["run", "--model", "x/\u001b[31my", "hi"],
      expect.stringMatching(/^bezel: There is no provider "x" for the model x\/\[31my;/)
    ],
    [["\u001b]0;title\u0007"], "bezel: there is no folder and no command ]0;title; bezel --help lists the commands\n"],
    [["acp"], "bezel: bezel acp is not built yet in version 0.1.0\n"],
    [["session", "revert"], "bezel: bezel session revert needs ID (bezel session revert --help shows how)\n"]
  ])("%j", async (argv, stderr) => {
    expect(await makeHome().run(argv)).toMatchObject({ code: 2, stdout: "", stderr })
  })

  it("also a folder that is not there, and a run without a prompt", async () => {
    const home = makeHome()
    expect(await home.run(["run", "--dir", "nowhere", "hi"])).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/^bezel: .*nowhere.* does not exist.*\n$/)
    })
    expect(await home.run(["run"], { stdin: "  \n" })).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/^bezel: .*prompt.*\n$/)
    })
  })
})
