/** A session that is larger than any message: what is shown of it is the same as of a small one. */
import { describe, expect, it } from "vitest"
import { makeHome } from "./command.ts"
import { startServer } from "./serve-fixture.ts"
import { runInTerminal } from "./terminal.ts"

const mebibyte = 1024 * 1024

const file = (data: string) => ({ type: "file", mediaType: "application/pdf", fileName: "a.pdf", data })

describe("a session of 34 MiB", { timeout: 120_000 }, () => {
  it("is shown by a terminal of its own, and by one that is attached to a server", async () => {
    const home = makeHome()
    await home.run(["run", "--model", "bezel/offline", "list"])
    const [id = ""] = (await home.run(["session", "list"])).stdout.match(/ses_\w+/) ?? []
    const session = JSON.parse((await home.run(["session", "export", id])).stdout)
    const [question] = session.entries
    const last = Math.max(...session.entries.map(({ ordinal }: { ordinal: number }) => ordinal))
    for (let number = 1; number <= 34; number++) {
      const data = "JVBERi0x".repeat(mebibyte / 8)
      session.entries.push({
        ...question,
        id: `e${last + number}`,
        ordinal: last + number,
        data: { input: `i${last + number}` },
        model: [{ role: "user", content: [{ type: "text", text: `number ${number}` }, file(data)] }]
      })
    }
    const path = home.write("large.json", JSON.stringify(session))
    const imported = await home.run(["session", "import", path])
    expect(imported.code).toBe(0)
    const large = imported.stdout.trim()
    const alone = runInTerminal(home, `bezel --session ${large}`)
    await alone.shows(/number 34/)
    alone.type("\u0004")
    await alone.ended
    const server = await startServer(home, ["--isolation", "session"])
    const attached = runInTerminal(home, `bezel attach ${server.url} --session ${large}`)
    await attached.shows(/number 34/)
  })
})
