import { describe, expect, it } from "vitest"
import { makeHome } from "./command.ts"

const options = { env: { BEZEL_SOURCE: "1" } }

describe("bezel doctor", { timeout: 60_000 }, () => {
  it("says which session is in use by whom, which was left behind, and leaves both as they are", async () => {
    const home = makeHome()
    const locks = async () =>
      (await home.run(["doctor"], options)).stdout.split("\n").filter((line) => /locks:/.test(line))
    expect(await locks()).toEqual(["✓ locks: no session is in use"])
    const running = home.start(["run", "--json", "--yes", "run sleep 60"], options)
    await running.seen(/"tool.started"|sleep 60/)
    const pid = running.process.pid
    const [held, ...others] = await locks()
    expect(held).toMatch(
      new RegExp(`^✓ locks: session ses_\\S+ is in use by process ${pid} \\(node bezel.ts run\\), started 20`)
    )
    expect(others).toEqual([])
    expect(running.process.exitCode).toBe(null)
    running.process.kill("SIGKILL")
    await running.ended
    const stale = await locks()
    expect(stale).toEqual([
      expect.stringMatching(
        new RegExp(
          `^! locks: session ses_\\S+ was left behind by process ${pid} .*, which is gone; nothing is locked: `
        )
      )
    ])
    expect(await locks()).toEqual(stale)
  })
})
