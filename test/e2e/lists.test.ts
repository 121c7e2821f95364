/** What commands say of a place: what is missing from a list, where there is nothing to list, and what stands in the way. */
import { spawnSync } from "node:child_process"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { makeHome, root } from "./command.ts"

const options = { env: { BEZEL_SOURCE: "1" } }

describe("a list", { timeout: 60_000 }, () => {
  it("is of what there is, and names the plugins that have failed beside it", async () => {
    const home = makeHome()
    home.settings({ plugins: [home.write("broken.ts", 'throw new Error("no ticket system")\n')] })
    const lists = [["tool", "apply_patch"], ["model", "bezel/offline"], ["agent", "build"], ["plugin", "bezel.tools"]]
    for (const [list = "", first = ""] of lists) {
      const { code, stderr, stdout } = await home.run([list, "list"], options)
      expect([list, code]).toEqual([list, 0])
      expect(stdout).toMatch(new RegExp(`^${first}\\b`, "m"))
      expect(stderr).toMatch(
        /^bezel: Plugin broken\.ts failed in the session host during load: .*no ticket system.*\n$/
      )
    }
    const plugins = await home.run(["plugin", "list"], options)
    expect(plugins.stdout).toMatch(/^broken\.ts\s+failed\s.*no ticket system/m)
  })

  it("says which agents cannot be used and why, and what of a project is not trusted", async () => {
    const home = makeHome()
    const file = home.write(".config/bezel/agents/mine.md", "---\ndescripton: Reviews\n---\nReview.\n")
    home.write("work/.bezel/agents/theirs.md", "Work.\n")
    home.write("work/.bezel/commands/theirs.md", "Work.\n")
    const broken =
      `bezel: The agent "mine" in ${file} cannot be used: line 2: its front matter has a member that is not ` +
      "known here: descripton.\n"
    const { stderr } = await home.run(["agent", "list"], options)
    expect(stderr).toContain(broken)
    expect(stderr).toContain(
      `bezel: ${home.work}/.bezel/agents, ${home.work}/.bezel/commands are not trusted, so what is in them has no effect ` +
        "(--trust takes it all for this run)\n"
    )
    expect(await home.run(["agent", "list", "--trust"], options)).toMatchObject({
      stderr: broken,
      stdout: expect.stringMatching(/^theirs\s/m)
    })
  })

  it("tells that a list of models cannot be read", async () => {
    const home = makeHome()
    const file = home.write(".config/bezel/models.json", '{ "mine": { "a": { "contextwindow": 1 } } }')
    expect((await home.run(["model", "list"], options)).stderr).toBe(
      `bezel: ${file} is not used: expected no member of this name at mine.a.contextwindow\n`
    )
  })

  it("of no skills says where they are looked for, and leaves stdout to lists", async () => {
    const home = makeHome()
    const none = await home.run(["skill", "list"], options)
    expect(none).toMatchObject({ code: 0, stdout: "" })
    expect(none.stderr).toBe(
      `bezel: there are no skills here; they are looked for as NAME/SKILL.md in ${
        join(home.folder, ".config/bezel/skills")
      } and, where the project is trusted, in its .agents/skills, .claude/skills, .bezel/skills\n`
    )
    home.write(".config/bezel/skills/a/SKILL.md", "---\ndescription: Does a\n---\nDo a.")
    expect(await home.run(["skill", "list"], options)).toMatchObject({
      stderr: "",
      stdout: expect.stringMatching(/^a\s/)
    })
  })
})

describe("bezel session list", { timeout: 60_000 }, () => {
  it("has the time of where one is", async () => {
    const home = makeHome()
    await home.run(["run", "hello"], options)
    const [record] = (await home.run(["session", "list", "--json"], options)).lines()
    const at = new Date(Number(record?.["updatedAt"]))
    for (const [zone, locale] of [["Asia/Tokyo", "sv"], ["America/St_Johns", "sv"]] as const) {
      const shown = at.toLocaleString(locale, { timeZone: zone, dateStyle: "short", timeStyle: "short" })
      expect((await home.run(["session", "list"], { env: { ...options.env, TZ: zone } })).stdout).toContain(
        `  ${shown}  `
      )
    }
  })

  it("says where there is none", async () => {
    const home = makeHome()
    expect(await home.run(["session", "list"], options)).toMatchObject({
      code: 0,
      stdout: "",
      stderr: "bezel: there is no session in this folder; bezel session list --all shows those of every folder\n"
    })
    expect(await home.run(["session", "list", "--all", "--search", "shop"], options)).toMatchObject({
      code: 0,
      stdout: "",
      stderr: 'bezel: there is no session with "shop" in its title\n'
    })
  })
})

describe("bezel plugin add", () => {
  it("says of a file that is no plugin what one is", async () => {
    const home = makeHome()
    const file = home.write("work/note.txt", "a note\n")
    expect(await home.run(["plugin", "add", "./note.txt"], options)).toMatchObject({
      code: 2,
      stdout: "",
      stderr:
        `bezel: ${file} is no plugin; name a file that ends in .ts, .mts, .js or .mjs, a folder or an archive (.tgz) of ` +
        `a package, or a package of the registry\n`
    })
  })
})

describe("bezel doctor", { timeout: 60_000 }, () => {
  it("counts the plugins that bezel plugin list lists", async () => {
    const home = makeHome()
    home.settings({ plugins: [home.write("broken.ts", "throw new Error('no')\n")] })
    const rows = (await home.run(["plugin", "list"], options)).stdout.trim().split("\n")
    const state = (name: string) => rows.filter((row) => new RegExp(`\\s${name}\\s`).test(row)).length
    const { stdout } = await home.run(["doctor"], options)
    const line = /^✓ plugins: (\d+) \(bezel plugin list\): (.*)$/m.exec(stdout)
    expect(Number(line?.[1])).toBe(rows.length)
    expect(line?.[2]?.split(", ").sort()).toEqual(
      [`${state("loaded")} loaded`, `${state("absent")} only for the screen`, "1 failed"].sort()
    )
  })

  it("finds out by writing that nothing can be kept, and says why", () => {
    const home = makeHome()
    // No file may grow beyond a few kilobytes, which is how a full disk looks to a program.
    const { status, stdout } = spawnSync("/bin/sh", ["-c", `ulimit -f 16; exec ${join(root, "bin/bezel")} doctor`], {
      cwd: home.work,
      encoding: "utf8",
      env: { HOME: home.folder, PATH: process.env.PATH ?? "", LANG: "C.UTF-8", ...options.env }
    })
    expect(status).toBe(1)
    for (const name of ["data", "config", "state", "cache"]) {
      expect(stdout).toMatch(
        new RegExp(
          `^✗ folders: ${name}: nothing can be kept in \\S+ \\(this process may write no files of this size\\); ` +
            `make room or make it writable, or set BEZEL_${name.toUpperCase()}_DIR$`,
          "m"
        )
      )
    }
  })

  it("leaves nothing behind in the folders that it tries", async () => {
    const home = makeHome()
    const { code, stdout } = await home.run(["doctor"], options)
    expect(code).toBe(0)
    expect(stdout).toMatch(/^✓ folders: data: /m)
    const found = spawnSync("find", [home.folder, "-name", ".doctor*"], { encoding: "utf8" })
    expect(found).toMatchObject({ status: 0, stdout: "" })
  })
})

describe("bezel session show", { timeout: 60_000 }, () => {
  it("says of a turn that was interrupted that it was, and of one without an answer why", async () => {
    const home = makeHome()
    expect(await home.run(["run", "--yes", "--timeout", "2", "run sleep 30"], options)).toMatchObject({ code: 124 })
    expect(await home.run(["run", "--continue", "--max-steps", "1", "--yes", "run true"], options)).toMatchObject({
      code: 1
    })
    const [id = ""] = (await home.run(["session", "list"], options)).stdout.split(" ")
    expect((await home.run(["session", "show", id], options)).stdout).toMatch(
      /^> run sleep 30\n\n(\* bash sleep 30\n\n)?\(interrupted\)\n\n> run true\n\n\* bash true\n\n\(no answer: The turn ended because /
    )
  })
})
