import { readdirSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { makeHome } from "../../e2e/command.ts"

describe("what did not fit a result", () => {
  it("is kept in a file that the model can read without a rule, in that session and as long as nothing denies it", async () => {
    const home = makeHome()
    const first = await home.run(["run", "--json", "--allow", "bash(seq *)", "run seq 1 30000"])
    const sessionID = String(first.lines()[0]?.sessionID)
    const folder = join(home.folder, ".local/share/bezel/sessions", sessionID, "files")
    const [name = ""] = readdirSync(folder)
    const file = join(folder, name)
    expect(String(first.lines().at(-1)?.text)).toContain(file)

    const again = await home.run(["run", "--continue", `read ${file}`])
    expect(again).toMatchObject({ code: 0, stderr: expect.stringMatching(/^✓ read /) })
    expect(again.stdout).toMatch(/^1999$/m)
    const denied = await home.run(["run", "--continue", "--deny", `read(${folder}/**)`, `read ${file}`])
    expect(denied.stdout).toContain("A permission rule denies this call")
    const other = await home.run(["run", `read ${file}`])
    expect(other.code).toBe(3)
    expect(other.stdout).toContain("which is outside the location")
  })
})
