/** Lists come in pages that are bounded, whatever is in them, and quick. */
import { createClient } from "@bezel/sdk"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { startTestServer, type TestServer, tokens } from "./fixture.ts"

const mebibyte = 1_048_576

/** A session of so many entries, made by importing one. */
const importedSession = async (server: TestServer, entries: number, bytes: number): Promise<string> => {
  const { json: empty } = await server.call("POST", "/session", { body: { title: "large" } })
  const { json: document } = await server.call("GET", `/session/${empty.id}/export`)
  const text = "x".repeat(Math.floor(bytes / entries))
  const large = {
    ...document,
    conversations: [{ id: "c1", parent: null, createdAt: 1 }],
    entries: Array.from({ length: entries }, (_, index) => ({
      id: `e${index + 2}`,
      ordinal: index + 2,
      conversation: "c1",
      kind: "bezel.user",
      data: null,
      model: [{ role: "user", content: [{ type: "text", text: `${index} ${text}` }] }],
      head: null,
      edits: null,
      createdAt: 1_000 + index
    }))
  }
  const { json, status } = await server.call("POST", "/session/import", { body: { session: large } })
  expect(status).toBe(201)
  return json.id
}

describe("pages", () => {
  it.live(
    "begin at the end of a session of 5,000 entries and 8 MB, are capped by bytes, and lead through all of it",
    () =>
      Effect.scoped(Effect.gen(function*() {
        const server = yield* startTestServer()
        yield* Effect.promise(async () => {
          const id = await importedSession(server, 5_000, 8_000_000)
          await server.call("GET", `/session/${id}/message?limit=1`)
          const began = performance.now()
          const first = await server.call("GET", `/session/${id}/message?limit=1000`)
          expect(performance.now() - began).toBeLessThan(1_000)
          expect(first.text.length).toBeLessThan(1.5 * mebibyte)
          expect(first.json.items.at(-1)?.id).toBe("e5001")
          expect(first.json.items.length).toBeLessThan(1_000)
          expect(typeof first.json.next).toBe("string")

          const ids: Array<string> = []
          let pages = 0
          for (let cursor: string | undefined = "", path = ""; cursor !== undefined; pages++) {
            path = `/session/${id}/message?limit=1000${cursor === "" ? "" : `&cursor=${cursor}`}`
            const { json } = await server.call("GET", path)
            ids.unshift(...json.items.map(({ id }) => String(id)))
            cursor = json.next
          }
          expect(pages).toBeGreaterThan(5)
          expect(ids).toEqual(Array.from({ length: 5_000 }, (_, index) => `e${index + 2}`))
        })
      })),
    30_000
  )

  it.live("of sessions lead through all of them, newest activity first, each once", () =>
    Effect.scoped(Effect.gen(function*() {
      const { url } = yield* startTestServer()
      yield* Effect.promise(async () => {
        const client = createClient({ url, token: tokens.admin })
        const made: Array<string> = []
        for (let index = 0; index < 25; index++) made.unshift((await client.session.create({ title: `s${index}` })).id)
        const seen: Array<string> = []
        for (let cursor: string | undefined, isFirst = true; isFirst || cursor !== undefined; isFirst = false) {
          const page: { readonly items: ReadonlyArray<{ readonly id: string }>; readonly next?: string } = await client
            .session
            .list({ limit: 10, ...(cursor === undefined ? {} : { cursor }) })
          seen.push(...page.items.map(({ id }) => id))
          cursor = page.next
        }
        expect(seen).toEqual(made)
        expect((await client.session.list({ text: "S1" })).items.length).toBe(11)
        expect((await client.session.list({ parent: "none" })).items.length).toBe(25)
      })
    })))
})

describe("a prompt that is sent again", () => {
  it.live("with the same id is the same prompt, also while the first is being answered", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* startTestServer(["Once.", "Twice."])
      yield* Effect.promise(async () => {
        const { json: { id } } = await server.call("POST", "/session", { body: {} })
        const send = () => server.call("POST", `/session/${id}/prompt`, { body: { text: "Hi", requestID: "mine" } })
        const answers = await Promise.all([send(), send(), send()])
        expect(new Set(answers.map(({ json }) => json.inputID)).size).toBe(1)
        await server.call("POST", `/session/${id}/wait`)
        expect((await send()).json.inputID).toBe(answers[0]?.json.inputID)
        const { json } = await server.call("GET", `/session/${id}/message`)
        expect(json.items.map(({ kind }) => kind)).toEqual(["bezel.user", "bezel.assistant"])
      })
    })))
})

describe("nothing that is answered", () => {
  it.live("carries what the environment of the server holds", () =>
    Effect.scoped(Effect.gen(function*() {
      process.env.TEST_API_KEY_CANARY = "canary-of-the-environment"
      yield* Effect.addFinalizer(() => Effect.sync(() => delete process.env.TEST_API_KEY_CANARY))
      const server = yield* startTestServer(["Hello."])
      yield* Effect.promise(async () => {
        const { json: { id } } = await server.call("POST", "/session", { body: {} })
        await server.call("POST", `/session/${id}/prompt`, { body: { text: "Hi" } })
        await server.call("POST", `/session/${id}/wait`)
        const paths = ["", "/message", "/context", "/view", "/history", "/export", "/interaction"].map((path) =>
          `/session/${id}${path}`
        )
        for (
          const path of [
            ...paths,
            "/session",
            "/location",
            "/tool",
            "/model",
            "/agent",
            "/plugin",
            "/metrics",
            "/health",
            "/openapi.json"
          ]
        ) {
          const { status, text } = await server.call("GET", path)
          expect([path, status]).toEqual([path, 200])
          expect(text).not.toContain("canary")
          expect(text).not.toContain(tokens.admin)
        }
      })
    })))
})
