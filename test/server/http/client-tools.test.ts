/** Tools that programs offer to sessions over HTTP: what the model gets, and what of it when the program is slow or gone. */
import { Plugin } from "@bezel/core/host"
import { call, say } from "@bezel/core/testing"
import { permissionsSession } from "@bezel/plugins/permissions"
import type { BezelError } from "@bezel/sdk"
import { type ClientTool, createClient } from "@bezel/sdk"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { startTestServer, type TestServer, tokens } from "./fixture.ts"

const stock: ClientTool = {
  description: "Says how many stones there are.",
  inputSchema: { type: "object", properties: { stone: { type: "string" } }, required: ["stone"] },
  execute: (input) => ({ of: input, left: 3 })
}

const clientOf = ({ url }: Pick<TestServer, "url">) => createClient({ url, token: tokens.admin })

/** What the model was told of the calls of a session's turns, and whether that was an error. */
const results = async (client: ReturnType<typeof clientOf>, id: string) =>
  (await client.session.context(id)).flatMap((message) =>
    message.role === "tool"
      ? message.content.map(({ isFailure, modelOutput, result }) => ({
        isFailure,
        text: JSON.stringify(modelOutput ?? result)
      }))
      : []
  )

const never = new Promise<never>(() => {})

describe("a tool that a program offers to a session", () => {
  it.live("is told to the model, runs in the program, and its result is the model's", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* startTestServer([[call("stock", { stone: "ruby" })], "Three."])
      yield* Effect.promise(async () => {
        const client = clientOf(server)
        const { id } = await client.session.create()
        const seen: Array<unknown> = []
        const offer = await client.session.tool(id, "stock", {
          ...stock,
          execute: (input, { callID, sessionID }) => {
            seen.push({ input, sessionID, callID: typeof callID })
            return { left: 3 }
          }
        })
        expect(await client.session.ask(id, "How many?")).toMatchObject({ status: "done", text: "Three." })
        expect(seen).toEqual([{ input: { stone: "ruby" }, sessionID: id, callID: "string" }])
        const [first] = server.model.requests
        expect(first?.tools.find(({ name }) => name === "stock")).toMatchObject({
          description: stock.description,
          inputSchema: { type: "object", required: ["stone"] }
        })
        const [result] = await results(client, id)
        expect(result).toMatchObject({ isFailure: false, text: expect.stringContaining("left") })
        await offer.close()
        expect((await client.location.tools()).map(({ name }) => name)).not.toContain("stock")
      })
    })))

  it.live("is given only arguments that its schema takes; the model is told what was wrong with others", () =>
    Effect.scoped(Effect.gen(function*() {
      const wrong = [{}, { stone: 7 }, { stone: "ruby", count: 0 }, { stone: "ruby", nested: { deep: ["x", 1] } }]
      const right = { stone: "ruby", count: 2, more: [1] }
      const server = yield* startTestServer([...[...wrong, right].map((input) => [call("stock", input)]), "Done."])
      yield* Effect.promise(async () => {
        const client = clientOf(server)
        const { id } = await client.session.create()
        const seen: Array<unknown> = []
        await client.session.tool(id, "stock", {
          description: stock.description,
          inputSchema: {
            type: "object",
            properties: {
              stone: { type: "string", pattern: "(((" },
              count: { type: "integer", minimum: 1 },
              nested: { type: "object", properties: { deep: { type: "array", items: { $ref: "#/$defs/Word" } } } }
            },
            required: ["stone"],
            $defs: { Word: { type: "string" } }
          },
          execute: (input) => {
            seen.push(input)
            return "3"
          }
        })
        await client.session.ask(id, "How many?")
        expect(seen).toEqual([right])
        const told = await results(client, id)
        expect(told.map(({ isFailure }) => isFailure)).toEqual([true, true, true, true, false])
        const words = [
          "stone: is required",
          "stone: expected string, got 7",
          "count: expected a value",
          "nested.deep.1"
        ]
        for (const [index, text] of words.entries()) expect(told[index]?.text).toContain(text)
      })
    })))

  it.live("is refused with a schema that cannot be checked, with what it is", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* startTestServer()
      yield* Effect.promise(async () => {
        const client = clientOf(server)
        const { id } = await client.session.create()
        for (const stone of [{ not: { type: "string" } }, { $ref: "https://example.com/stone.json" }]) {
          const inputSchema = { type: "object", properties: { stone } }
          await expect(client.session.tool(id, "stock", { ...stock, inputSchema })).rejects.toMatchObject({
            code: "invalid_arguments",
            message: expect.stringMatching(/cannot be checked.*(not|example\.com)/)
          })
        }
      })
    })))

  it.live("whose result is nothing, or what is no value in JSON, has null for it", () =>
    Effect.scoped(Effect.gen(function*() {
      const script = [null, undefined, false, 0, ""].flatMap(() => [[call("stock", { stone: "ruby" })], "Done."])
      const server = yield* startTestServer(script)
      yield* Effect.promise(async () => {
        const client = clientOf(server)
        const { id } = await client.session.create()
        const values: Array<unknown> = [null, undefined, false, 0, ""]
        await client.session.tool(id, "stock", { ...stock, execute: () => values.shift() as null })
        for (let turn = 0; turn < 5; turn++) await client.session.ask(id, "Take it.")
        expect((await results(client, id)).map(({ isFailure, text }) => `${isFailure} ${text}`)).toEqual(
          ["null", "null", "false", "0", "(no output)"].map((text) => `false ${JSON.stringify(text)}`)
        )
      })
    })))

  it.live("that throws is an error result with its message", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* startTestServer([[call("stock", { stone: "ruby" })], "So be it."])
      yield* Effect.promise(async () => {
        const client = clientOf(server)
        const { id } = await client.session.create()
        await client.session.tool(id, "stock", {
          ...stock,
          execute: () => Promise.reject(new Error("The shelf is locked."))
        })
        await client.session.ask(id, "How many?")
        expect(await results(client, id)).toMatchObject([
          { isFailure: true, text: expect.stringContaining("The shelf is locked.") }
        ])
      })
    })))

  it.live("that does not answer in time is an error result, and the program is told to stop", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* startTestServer([[call("stock", { stone: "ruby" })], "Then not."])
      yield* Effect.promise(async () => {
        const client = clientOf(server)
        const { id } = await client.session.create()
        const aborted = Promise.withResolvers<void>()
        await client.session.tool(id, "stock", {
          ...stock,
          timeout: 1,
          execute: (_, { signal }) => {
            signal.addEventListener("abort", () => aborted.resolve())
            return never
          }
        })
        expect(await client.session.ask(id, "How many?")).toMatchObject({ text: "Then not." })
        expect(await results(client, id)).toMatchObject([
          { isFailure: true, text: expect.stringContaining("did not answer within 1 seconds") }
        ])
        await aborted.promise
      })
    })))

  it.live("whose program leaves in the middle of a call is an error result, and the tool is gone", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* startTestServer([[call("stock", { stone: "ruby" })], "Gone."])
      yield* Effect.promise(async () => {
        const client = clientOf(server)
        const { id } = await client.session.create()
        const called = Promise.withResolvers<void>()
        const offer = await client.session.tool(id, "stock", {
          ...stock,
          execute: () => {
            called.resolve()
            return never
          }
        })
        const asked = client.session.ask(id, "How many?")
        await called.promise
        await offer.close()
        expect(await asked).toMatchObject({ text: "Gone." })
        expect(await results(client, id)).toMatchObject([
          { isFailure: true, text: expect.stringContaining("has left before it answered") }
        ])
        expect(server.model.requests.at(-1)?.tools.map(({ name }) => name)).not.toContain("stock")
      })
    })))

  it.live("has one owner, and takes no other tool's name", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* startTestServer()
      yield* Effect.promise(async () => {
        const client = clientOf(server)
        const { id } = await client.session.create()
        const offer = await client.session.tool(id, "stock", stock)
        const refused = async (name: string) =>
          client.session.tool(id, name, stock).then(() => "offered", (error: BezelError) => error.code)
        expect([await refused("stock"), await refused("ask"), await refused("no name")]).toEqual([
          "conflict",
          "conflict",
          "invalid_arguments"
        ])
        await offer.close()
        const again = async (): Promise<string> => {
          const answer = await refused("stock")
          return answer === "conflict" ? again() : answer
        }
        expect(await again()).toBe("offered")
      })
    })))

  it.live("is each session's own under one name, with its own words, arguments and code", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* startTestServer([
        [call("stock", { stone: "ruby" })],
        "First.",
        [call("stock", { stone: "ruby" })],
        [call("stock", { shelf: 2 })],
        "Second."
      ])
      yield* Effect.promise(async () => {
        const client = clientOf(server)
        const [one, two] = [await client.session.create(), await client.session.create()]
        const seen: Array<unknown> = []
        const offer = (id: string, description: string, name: string, type: string) =>
          client.session.tool(id, "stock", {
            description,
            inputSchema: { type: "object", properties: { [name]: { type } }, required: [name] },
            execute: (input) => {
              seen.push([description, input])
              return description
            }
          })
        const first = await offer(one.id, "By stones.", "stone", "string")
        await offer(two.id, "By shelves.", "shelf", "integer")
        await client.session.ask(one.id, "How many?")
        await client.session.ask(two.id, "How many?")
        expect(seen).toEqual([["By stones.", { stone: "ruby" }], ["By shelves.", { shelf: 2 }]])
        const told = server.model.requests.map(({ tools }) => tools.find(({ name }) => name === "stock")?.description)
        expect(told).toEqual(["By stones.", "By stones.", "By shelves.", "By shelves.", "By shelves."])
        expect((await results(client, two.id))[0]?.text).toContain("shelf: is required")
        // One that ends leaves the other.
        await first.close()
        const isThere = () => server.model.requests.at(-1)?.tools.some(({ name }) => name === "stock")
        // The server notices a moment later that its client has left.
        do {
          server.model.add("None.")
          await client.session.ask(one.id, "And now?")
        } while (isThere())
        server.model.add([call("stock", { shelf: 3 })], "Third.")
        await client.session.ask(two.id, "And now?")
        expect(seen.at(-1)).toEqual(["By shelves.", { shelf: 3 }])
      })
    })))

  it.live("is hidden from other sessions", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* startTestServer(["Nothing."])
      yield* Effect.promise(async () => {
        const client = clientOf(server)
        const { id } = await client.session.create()
        const other = await client.session.create()
        await client.session.tool(id, "stock", stock)
        await client.session.ask(other.id, "What is there?")
        expect(server.model.requests[0]?.tools.map(({ name }) => name)).toEqual(["ask"])
      })
    })))

  it.live("is asked for like any other tool where rules say nothing", () =>
    Effect.scoped(Effect.gen(function*() {
      const permissions = Plugin.define({ id: "bezel.permissions", session: permissionsSession })
      const server = yield* startTestServer([[call("stock", { stone: "ruby" })], [say("Done.")]], {
        plugins: [permissions]
      })
      yield* Effect.promise(async () => {
        const client = clientOf(server)
        const { id } = await client.session.create()
        await client.session.tool(id, "stock", stock)
        const asked = client.session.ask(id, "How many?")
        for await (const event of client.session.events(id, { after: "0" })) {
          if (event.type !== "interaction.opened") continue
          const [approval] = await client.session.interactions(id)
          expect(approval).toMatchObject({ interaction: "bezel.approval", request: { tool: "stock" } })
          await client.session.answer(id, String(event.id), { response: { decision: "deny" } })
          break
        }
        expect(await asked).toMatchObject({ text: "Done." })
        expect(await results(client, id)).toMatchObject([{ isFailure: true }])
      })
    })))

  it.live("ends with its session", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* startTestServer()
      yield* Effect.promise(async () => {
        const client = clientOf(server)
        const { id } = await client.session.create()
        const offer = await client.session.tool(id, "stock", stock)
        await client.session.remove(id)
        await expect(offer.closed).rejects.toMatchObject({ code: "not_found" })
      })
    })))
})
