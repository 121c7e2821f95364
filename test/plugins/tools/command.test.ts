import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { makeHome } from "../../e2e/command.ts"
import { messagesOf, serve } from "../../e2e/run-fixture.ts"

const toolNames = (body: { readonly [key: string]: unknown } | undefined) =>
  ((body?.tools ?? []) as ReadonlyArray<{ readonly function: { readonly name: string } }>).map((tool) =>
    tool.function.name
  )

describe("bezel run with apply_patch", () => {
  const patch = "*** Begin Patch\n*** Update File: a.txt\n-one\n+eins\n*** Add File: b.txt\n+new\n*** End Patch"

  it("changes files as the rules allow, and is not offered to an agent that may not write", async () => {
    const home = makeHome()
    home.write("work/a.txt", "one\ntwo\n")
    const server = await serve(
      { calls: [{ name: "apply_patch", args: { patch } }] },
      { text: "denied" },
      { calls: [{ name: "apply_patch", args: { patch } }] },
      { text: "done" },
      { text: "planned" }
    )
    home.useServer(server)
    const denied = await home.run(["run", "go"])
    expect(denied.code).toBe(3)
    expect(existsSync(join(home.work, "b.txt"))).toBe(false)
    expect(JSON.stringify(messagesOf(server.requests[1]?.body))).toContain("No rule allows write of")
    expect(await home.run(["run", "--allow", "write", "go"])).toMatchObject({ code: 0, stdout: "done\n" })
    expect(readFileSync(join(home.work, "a.txt"), "utf8")).toBe("eins\ntwo\n")
    await home.run(["run", "--agent", "plan", "--allow", "write", "go"])
    expect(toolNames(server.requests[0]?.body)).toContain("apply_patch")
    expect(toolNames(server.requests[4]?.body)).not.toContain("apply_patch")
  })
})
