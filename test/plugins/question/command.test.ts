import { describe, expect, it } from "vitest"
import { makeHome } from "../../e2e/command.ts"
import { runInTerminal, type TerminalRun } from "../../e2e/terminal.ts"

describe("bezel run", () => {
  it("asks nobody, tells the model so at once, answers, and ends with 3", async () => {
    const home = makeHome()
    const ended = await home.run(["run", "ask Which colour? red | green | blue"])
    expect(ended.code).toBe(3)
    expect(ended.stdout).toContain("Nobody is here to answer")
    expect(ended.stderr).toContain("✗ question Which colour? (nobody could be asked)")
  })

  it("does so with --yes too, which allows and does not answer", async () => {
    const home = makeHome()
    expect(await home.run(["run", "--yes", "ask Which? a | b"])).toMatchObject({ code: 3 })
  })

  it("has the question, its options and its outcome among the events", async () => {
    const home = makeHome()
    const ended = await home.run(["run", "--json", "ask Which? a | b"])
    expect(ended.code).toBe(3)
    expect(ended.lines()).toContainEqual(
      expect.objectContaining({ type: "tool.finished", name: "question", code: "unattended", isError: true })
    )
    expect(ended.lines().at(-1)).toMatchObject({ type: "result", status: "done" })
  })
})

/** A dialog takes no keys of somebody who is still typing, and says when it does. */
const listens = (terminal: TerminalRun) => terminal.shows(/enter choose · esc cancel/)

describe("bezel in a terminal", () => {
  it("puts a question to the person, also one of a sub-agent, and goes on with the answer", async () => {
    const home = makeHome()
    const terminal = runInTerminal(home, "bezel")
    await terminal.shows(/bezel\/offline/)
    terminal.type("ask Which colour? red | green\r")
    await terminal.shows(/1\. red[\s\S]*2\. green/)
    await listens(terminal)
    terminal.type("2")
    await terminal.shows(/✓ question Which colour\?\s+green/)
    await terminal.shows(/The user chose: green/)
    terminal.type("task below: ask How many? one | two\r")
    await terminal.shows(/question How many\?[\s\S]*1\. one[\s\S]*3\. Something else/)
    await listens(terminal)
    terminal.type("3")
    await terminal.shows(/your answer/)
    terminal.type("seven\r")
    await terminal.shows(/✓ subagent below/)
    await terminal.shows(/The user answered: seven/)
    terminal.type("\u0004")
    expect((await terminal.ended).code).toBe(0)
  })
})
