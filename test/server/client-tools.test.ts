/** Tools of clients over each kind of placement: the call reaches the program through whatever is between. */
import { createClient } from "@bezel/sdk"
import { serveHttp } from "@bezel/server/http"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { offerTool } from "../../packages/cli/src/host/offered-lists.ts"
import { fleetOver, type Isolation } from "./deployment.ts"

const served = (isolation: Isolation) =>
  Effect.gen(function*() {
    const { fleet, work } = yield* fleetOver(isolation, "tools")
    const { url } = yield* serveHttp({
      fleet,
      version: "test",
      defaultLocation: work,
      offerTool,
      tokens: { find: () => ({ name: "owner", scope: "admin" }) }
    })
    return createClient({ url, token: "any" })
  })

describe.each<Isolation>(["none", "location", "session"])(
  "a server with isolation %s",
  { timeout: 60_000 },
  (isolation) => {
    it.live("has the model call a tool that a program offers, and lets the session be deleted beside it", () =>
      Effect.gen(function*() {
        const client = yield* served(isolation)
        yield* Effect.promise(async () => {
          const { id } = await client.session.create()
          const calls: Array<string> = []
          const offer = await client.session.tool(id, "stock", {
            description: "Says how many stones there are.",
            execute: (_, { sessionID }) => {
              calls.push(sessionID)
              return "3 stones"
            }
          })
          expect(await client.session.ask(id, "How many?")).toMatchObject({ status: "done", text: "Three." })
          expect(calls).toEqual([id])
          expect(JSON.stringify(await client.session.context(id))).toContain("3 stones")
          await client.session.remove(id)
          await expect(offer.closed).rejects.toMatchObject({ code: "not_found" })
        })
      }).pipe(Effect.scoped))

    it.live("only accepts a prompt that is not to be worked on, until it is resumed", () =>
      Effect.gen(function*() {
        const client = yield* served(isolation)
        yield* Effect.promise(async () => {
          const { id } = await client.session.create()
          const { inputID } = await client.session.prompt(id, { text: "Later", resume: false, requestID: "one" })
          // Sent again it is the same prompt, and has waited until then.
          expect(await client.session.prompt(id, { text: "Later", resume: false, requestID: "one" })).toMatchObject({
            inputID
          })
          expect((await client.session.get(id)).status).not.toBe("active")
          expect((await client.session.messages(id)).items.map(({ kind }) => kind)).not.toContain("bezel.assistant")
          await client.session.tool(id, "stock", { description: "Says how many.", execute: () => "3 stones" })
          await client.session.resume(id)
          expect(await client.session.wait(id, { input: inputID })).toMatchObject({ status: "done", text: "Three." })
        })
      }).pipe(Effect.scoped))
  }
)
