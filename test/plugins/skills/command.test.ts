import { describe, expect, it } from "vitest"
import { makeHome } from "../../e2e/command.ts"
import { messagesOf, serve } from "../../e2e/run-fixture.ts"
import { runInTerminal } from "../../e2e/terminal.ts"

const skill = (name: string) => `---\nname: ${name}\ndescription: About ${name}\n---\nRead more.md of ${name}.\n`

describe("bezel run with skills", () => {
  it("tells the model which there are, loads the one that it asks for and lets it read what is in it", async () => {
    const home = makeHome()
    home.write(".config/bezel/skills/mine/SKILL.md", skill("mine"))
    const more = home.write(".config/bezel/skills/mine/more.md", "the rest of it")
    const server = await serve(
      { calls: [{ name: "skill", args: { name: "mine" } }] },
      { calls: [{ name: "read", args: { path: more } }] },
      { text: "done" }
    )
    home.useServer(server)
    expect(await home.run(["run", "go"])).toMatchObject({ code: 0, stdout: "done\n" })
    const [first, second, third] = server.requests.map(({ body }) => JSON.stringify(messagesOf(body)))
    expect(first).toContain("- mine: About mine")
    expect(second).toContain("Read more.md of mine.")
    expect(second).toContain("- more.md")
    expect(third).toContain("the rest of it")
  })

  it("tells an agent nothing of them that is not offered the tool", async () => {
    const home = makeHome()
    home.write(".config/bezel/skills/mine/SKILL.md", skill("mine"))
    home.write(".config/bezel/agents/plain.md", "---\ntools: { skill: false }\n---\nBe plain.")
    const server = await serve({ text: "ok" })
    home.useServer(server)
    await home.run(["run", "--agent", "plain", "hi"])
    const told = JSON.stringify(server.requests[0]?.body)
    expect(told).toContain("Be plain.")
    expect(told).not.toContain("mine")
  })

  it("leaves those of a project out until it is trusted, and says so", async () => {
    const home = makeHome()
    home.write("work/.claude/skills/theirs/SKILL.md", skill("theirs"))
    const server = await serve()
    server.always({ text: "ok" })
    home.useServer(server)
    const ended = await home.run(["run", "hi"])
    expect(ended.stderr).toContain(`${home.work}/.claude/skills is not trusted`)
    await home.run(["run", "--trust", "hi"])
    const [untrusted, trusted] = server.requests.map(({ body }) => JSON.stringify(messagesOf(body)))
    expect(untrusted).not.toContain("theirs")
    expect(trusted).toContain("- theirs: About theirs")
  })

  it("tells a broken one with file and line, and goes on without it", async () => {
    const home = makeHome()
    const file = home.write(".config/bezel/skills/bad/SKILL.md", "---\nname: bad\ndescription: a: b\n---\n")
    home.useServer(await serve({ text: "ok" }))
    const ended = await home.run(["run", "hi"])
    expect(ended).toMatchObject({ code: 0, stdout: "ok\n" })
    expect(ended.stderr).toContain(`${file}:3: its front matter is not YAML`)
  })
})

describe("bezel skill list", () => {
  it("shows the skills with where each is, those of a project once it is trusted", async () => {
    const home = makeHome()
    const mine = home.write(".config/bezel/skills/mine/SKILL.md", skill("mine"))
    const theirs = home.write("work/.bezel/skills/theirs/SKILL.md", skill("theirs"))
    expect(await home.run(["skill", "list"])).toMatchObject({ code: 0, stdout: `mine  ${mine}  About mine\n` })
    const { lines } = await home.run(["skill", "list", "--trust", "--json"])
    expect(lines()).toMatchObject([{ name: "mine", source: "user" }, {
      name: "theirs",
      source: "project",
      file: theirs
    }])
  })
})

describe("bezel in a terminal with skills", () => {
  it("asks for trust before a project's skills count, shows what there is, and asks again when one has changed", async () => {
    const home = makeHome()
    home.write("work/.agents/skills/theirs/SKILL.md", skill("theirs"))
    home.write("work/.agents/skills/theirs/picture.png", "\u0000\u0001")
    const first = runInTerminal(home, "bezel")
    await first.shows(/\.agents\/skills: skills[\s\S]*Trust them\? \[y\/N\]/)
    first.type("y\r")
    await first.shows(/bezel\/offline/)
    first.type("/skills\r")
    await first.shows(/theirs\s+About theirs/)
    first.kill("SIGTERM")
    await first.ended
    expect((await home.run(["skill", "list"])).stdout).toContain("About theirs")
    home.write("work/.agents/skills/theirs/picture.png", "other")
    expect((await home.run(["skill", "list"])).stdout).toContain("About theirs")
    home.write("work/.agents/skills/theirs/SKILL.md", skill("changed"))
    expect((await home.run(["skill", "list"])).stdout).toBe("")
  })
})
