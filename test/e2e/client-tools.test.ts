/** A tool that a program offers to a session of `bezel serve`, with a model that looks at what it is sent. */
import { createClient } from "@bezel/sdk"
import { expect, it } from "vitest"
import { makeHome } from "./command.ts"
import { messagesOf, serve } from "./run-fixture.ts"
import { startServer } from "./serve-fixture.ts"

it(
  "a program's tool is offered to the model of the session, runs in the program, and is gone when it is taken back",
  async () => {
    const home = makeHome()
    const model = await serve(
      { calls: [{ name: "stock", args: { stone: "ruby" } }] },
      { text: "There are three." },
      { text: "I cannot know." }
    )
    home.useServer(model, { permissions: { stock: "allow" } })
    const { token, url } = await startServer(home)
    const client = createClient({ url, token })
    const { id } = await client.session.create({ location: home.work })
    const offer = await client.session.tool(id, "stock", {
      description: "Says how many stones there are.",
      inputSchema: { type: "object", properties: { stone: { type: "string" } }, required: ["stone"] },
      execute: (input) => ({ of: input, left: 3 })
    })
    expect(await client.session.ask(id, "How many?")).toMatchObject({ status: "done", text: "There are three." })
    await offer.close()
    expect(await client.session.ask(id, "And now?")).toMatchObject({ text: "I cannot know." })
    const offered = model.requests.map(({ body }) => JSON.stringify(body["tools"]).includes("Says how many stones"))
    expect(offered).toEqual([true, true, false])
    const [first, second] = model.requests
    expect(JSON.stringify(first?.body["tools"])).toContain('"required":["stone"]')
    expect(JSON.parse(String(messagesOf(second?.body).at(-1)?.content))).toEqual({ of: { stone: "ruby" }, left: 3 })
  },
  60_000
)
