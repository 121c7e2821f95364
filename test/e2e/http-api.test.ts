/** The HTTP API over session hosts in processes of their own, through the client of the SDK. */
import { createClient } from "@bezel/sdk"
import { findServer } from "@bezel/sdk/node"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { makeHome } from "./command.ts"
import { eventually, hostsOf, startServer } from "./serve-fixture.ts"

describe("the HTTP API of bezel serve", { timeout: 120_000 }, () => {
  it("is found by scripts of this user, and its sessions ask whoever follows them", async () => {
    const home = makeHome()
    home.write("work/note.txt", "Bezels hold stones.\n")
    const server = await startServer(home)
    const found = findServer({
      dataFolder: join(home.folder, ".local/share/bezel"),
      stateFolder: join(home.folder, ".local/state/bezel")
    })
    expect(found).toEqual({ url: server.url, token: server.token })

    const client = createClient(found)
    const { id } = await client.session.create({ location: home.work })
    const seen: Array<string> = []
    for await (const event of client.session.events(id)) {
      seen.push(event.type)
      if (event.type === "ready") await client.session.prompt(id, "read note.txt then run touch made")
      if (event.type === "interaction.opened") {
        const [asked] = await client.session.interactions(id)
        expect(asked).toMatchObject({ interaction: "bezel.approval", request: { tool: "bash" } })
        await client.session.answer(id, asked?.id ?? "", { response: { decision: "once" } })
      }
      if (event.type === "turn.ended") break
    }
    expect(seen).toContain("interaction.closed")
    expect((await client.session.wait(id)).text).toContain("Bezels hold stones.")
    expect((await client.location.findFiles("made", { location: home.work })).items).toEqual([{ path: "made" }])
    expect((await client.location.agents(home.work)).map(({ name }) => name)).toContain("plan")
    expect(await client.location.skills(home.work)).toEqual([])
    expect((await client.session.revert(id, "last", { dryRun: true })).status).toBe("planned")
    await client.session.remove(id)
    await expect(client.session.get(id)).rejects.toMatchObject({ code: "not_found" })
  })

  it("goes on behind a host that was killed, and behind a server that was, for clients that were reading", async () => {
    const home = makeHome()
    const first = await startServer(home)
    const { port } = new URL(first.url)
    const client = createClient({ url: first.url, token: first.token })
    const { id } = await client.session.create({ location: home.work })
    const turns: Array<number> = []
    const gaps: Array<unknown> = []
    let isFollowing = () => {}
    const following = new Promise<void>((resolve) => {
      isFollowing = resolve
    })
    const reading = (async () => {
      for await (const event of client.session.events(id)) {
        if (event.type === "ready") isFollowing()
        if (event.type === "gap") gaps.push(event)
        if (event.type === "turn.ended" && "sequence" in event) turns.push(Number(event.sequence))
        if (turns.length === 3) break
      }
    })()
    await following
    await client.session.ask(id, "list")
    const [host = 0] = hostsOf(home)
    process.kill(host, "SIGKILL")
    await eventually(() => !hostsOf(home).includes(host))
    await client.session.ask(id, "list")
    first.process.kill("SIGTERM")
    expect((await first.ended).code).toBe(0)
    await startServer(home, ["--port", port])
    await client.session.ask(id, "list")
    await reading
    expect(gaps).toEqual([])
    const { items } = await client.session.history(id, { limit: 1_000 })
    const ended = items.filter(({ events }) => JSON.stringify(events).includes("turn.ended")).map(({ sequence }) =>
      sequence
    )
    expect(turns).toEqual(ended)
  })
})
