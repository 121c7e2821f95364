import { describe, expect, it } from "vitest"
import { makeHome } from "../../e2e/command.ts"

describe("bezel run", () => {
  it("gives a task to a sub-agent and answers with what it found", async () => {
    const home = makeHome()
    home.write("work/a.txt", "from the file")
    const ended = await home.run(["run", "task look: read a.txt"])
    expect(ended).toMatchObject({ code: 0, stdout: "from the file\n" })
    expect(ended.stderr).toContain("✓ subagent look")
  })

  it("ends with 3 where a sub-agent was denied something because nobody could be asked, and answers all the same", async () => {
    const home = makeHome()
    const ended = await home.run(["run", "task outer: task inner: run touch x"])
    expect(ended.code).toBe(3)
    expect(ended.stdout).toContain("needs a user's approval and nobody is here")
  })

  it("lets a sub-agent do what the rules on the command line allow", async () => {
    const home = makeHome()
    const ended = await home.run(["run", "--allow", "bash(echo *)", "task say: run echo from below"])
    expect(ended.code).toBe(0)
    expect(ended.stdout).toContain("from below")
  })

  it("does not offer what a rule denies", async () => {
    const home = makeHome()
    const ended = await home.run(["run", "--deny", "subagent", "task look: list"])
    expect(ended.code).toBe(0)
    expect(ended.stdout).toContain("needs the tool subagent, which is not offered here")
  })
})
