import { describe, expect, it } from "vitest"
import { makeHome } from "../../e2e/command.ts"
import { runInTerminal } from "../../e2e/terminal.ts"

const short = `---
description: Answers shortly
permissions:
  bash:
    "rm *": deny
---
Be short.
`

describe("bezel agent list", () => {
  it("shows the agents with where each is from, those of a project once it is trusted", async () => {
    const home = makeHome()
    home.write(".config/bezel/agents/mine.md", short)
    home.settings({ agents: { other: { description: "Something else", model: "bezel/offline" } } })
    home.write("work/.bezel/agents/theirs.md", short)
    const { code, stdout } = await home.run(["agent", "list"])
    expect(code).toBe(0)
    expect(stdout).toMatch(/^build +built-in +\S/m)
    expect(stdout).toMatch(/^mine +\S+\/\.config\/bezel\/agents\/mine\.md +Answers shortly$/m)
    expect(stdout).toMatch(/^other +settings +Something else$/m)
    expect(stdout).not.toContain("theirs")
    const trusted = await home.run(["agent", "list", "--trust", "--json"])
    expect(trusted.lines().find((line) => line.name === "theirs")).toMatchObject({
      description: "Answers shortly",
      source: `${home.work}/.bezel/agents/theirs.md`,
      permissions: { bash: { "rm *": "deny" } },
      readOnly: false
    })
    expect(trusted.lines().find((line) => line.name === "other")).toMatchObject({ model: "bezel/offline" })
  })
})

describe("bezel run --agent", () => {
  it("refuses an agent that there is not, before it writes anything", async () => {
    const home = makeHome()
    expect(await home.run(["run", "--agent", "nope", "hi"])).toMatchObject({
      code: 2,
      stdout: "",
      stderr: 'bezel: There is no agent "nope" here; there are build, plan, review, explore.\n'
    })
    expect((await home.run(["session", "list"])).stdout).toBe("")
  })

  it("plans without changing anything, whatever is allowed, and goes on with another agent", async () => {
    const home = makeHome()
    const planned = await home.run(["run", "--yes", "--agent", "plan", "write a: x then run touch b then run ls"])
    expect(planned.stderr).toBe("✗ bash touch b (denied)\n✓ bash ls\n")
    expect(planned.stdout).toContain('The agent plan only reads, and the command "touch b" is not known to only read')
    expect(planned.code).toBe(0)
    const same = await home.run(["run", "--yes", "--continue", "run touch b"])
    expect(same.stderr).toBe("✗ bash touch b (denied)\n")
    const done = await home.run(["run", "--yes", "--continue", "--agent", "build", "run touch b then list"])
    expect(done.stdout).toMatch(/^b$/m)
  })

  it("says which of a project's agents it leaves out", async () => {
    const home = makeHome()
    home.write("work/.bezel/agents/theirs.md", short)
    const ended = await home.run(["run", "--agent", "theirs", "hi"])
    expect(ended.code).toBe(2)
    expect(ended.stderr).toContain(`${home.work}/.bezel/agents is not trusted`)
    const trusted = await home.run(["run", "--trust", "--yes", "--agent", "theirs", "run rm x"])
    expect(trusted.stderr).toBe("✗ bash rm x (denied)\n")
  })
})

describe("bezel in a terminal", () => {
  it("refuses an agent or a model that there is not, and changes the agent by /agent", async () => {
    const home = makeHome()
    const refused = runInTerminal(home, "bezel --agent nope; echo code $?")
    await refused.shows(/there is no agent "nope" here; there are build, plan[\s\S]*code 2/)
    const unknown = runInTerminal(home, "bezel --model nope/x; echo code $?")
    await unknown.shows(/There is no provider "nope" for the model nope\/x[\s\S]*code 2/)
    expect((await home.run(["session", "list"])).stdout).toBe("")
    const terminal = runInTerminal(home, "bezel --agent review")
    await terminal.shows(/bezel\/offline/)
    await terminal.shows(/review/)
    terminal.type("/agent nope\r")
    await terminal.shows(/There is no agent nope; there are build, plan/)
    terminal.type("/agent plan\r")
    await terminal.shows(/· plan|plan ·|\bplan\b\s*$/m)
    terminal.type("run touch b\r")
    await terminal.shows(/The agent plan only reads/)
    expect(terminal.text()).toContain("touch b")
  })
})
