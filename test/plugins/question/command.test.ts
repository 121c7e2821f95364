import { describe, expect, it } from "vitest"
import { makeHome } from "../../e2e/command.ts"

const source = { env: { BEZEL_SOURCE: "1" } }

describe("bezel run", () => {
  it("asks nobody, tells the model so at once, answers, and ends with 3", async () => {
    const home = makeHome()
    const ended = await home.run(["run", "ask Which colour? red | green | blue"], source)
    expect(ended.code).toBe(3)
    expect(ended.stdout).toContain("Nobody is here to answer")
    expect(ended.stderr).toContain("✗ question Which colour? (failed)")
  })

  it("does so with --yes too, which allows and does not answer", async () => {
    const home = makeHome()
    expect(await home.run(["run", "--yes", "ask Which? a | b"], source)).toMatchObject({ code: 3 })
  })

  it("has the question, its options and its outcome among the events", async () => {
    const home = makeHome()
    const ended = await home.run(["run", "--json", "ask Which? a | b"], source)
    expect(ended.code).toBe(3)
    expect(ended.lines()).toContainEqual(
      expect.objectContaining({ type: "tool.finished", name: "question", code: "unattended", isError: true })
    )
    expect(ended.lines().at(-1)).toMatchObject({ type: "result", status: "done" })
  })
})
