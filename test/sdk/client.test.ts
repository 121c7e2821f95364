import { call, say, wait } from "@bezel/core/testing"
import { BezelError, createClient, makeEffectClient } from "@bezel/sdk"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { createServer, type Server } from "node:http"
import { asking, startTestServer, tokens } from "../server/http/fixture.ts"

const collected = async <A>(events: AsyncIterable<A>, isLast: (event: A) => boolean): Promise<ReadonlyArray<A>> => {
  const seen: Array<A> = []
  for await (const event of events) {
    seen.push(event)
    if (isLast(event)) break
  }
  return seen
}

describe("the client in promises", () => {
  it.live("creates a session, prompts it and gets the answer", () =>
    Effect.scoped(Effect.gen(function*() {
      const { url } = yield* startTestServer(["Hello."])
      yield* Effect.promise(async () => {
        const client = createClient({ url, token: tokens.admin })
        const session = await client.session.create({ title: "one" })
        const { inputID } = await client.session.prompt(session.id, "Hi")
        expect(await client.session.wait(session.id, { input: inputID })).toMatchObject({
          status: "done",
          text: "Hello."
        })
        expect((await client.session.wait(session.id)).text).toBe("Hello.")
        const kinds = (await client.session.transcript(session.id)).map(({ kind }) => kind)
        expect(kinds).toEqual(["bezel.user", "bezel.assistant"])
      })
    })))

  it.live("iterates over events, the text of the answer among them, and ends when the reader does", () =>
    Effect.scoped(Effect.gen(function*() {
      const { url } = yield* startTestServer([[
        say("One, "),
        wait("150 millis"),
        say("two."),
        wait("150 millis"),
        say(" Three.")
      ]])
      yield* Effect.promise(async () => {
        const client = createClient({ url, token: tokens.admin })
        const { id } = await client.session.create()
        const iterator = client.session.events(id)[Symbol.asyncIterator]()
        expect((await iterator.next()).value).toMatchObject({ type: "ready" })
        await client.session.prompt(id, "Count")
        const texts: Array<string> = []
        for (;;) {
          const { value } = await iterator.next()
          if (value.type === "delta") {
            texts[value.part] = `${(texts[value.part] ?? "").slice(0, value.offset)}${value.text}`
          }
          if (value.type === "turn.ended") break
        }
        await iterator.return?.()
        expect(texts.join("")).toBe("One, two. Three.")
      })
    })))

  it.live("says with a code what was refused, and that nobody answers", () =>
    Effect.scoped(Effect.gen(function*() {
      const { url } = yield* startTestServer()
      yield* Effect.promise(async () => {
        const reader = createClient({ url, token: tokens.read })
        await expect(reader.session.create()).rejects.toMatchObject({ code: "forbidden", status: 403 })
        await expect(reader.session.get("ses_none")).rejects.toBeInstanceOf(BezelError)
        await expect(reader.session.get("ses_none")).rejects.toMatchObject({ code: "not_found", status: 404 })
        await expect(createClient({ url: "http://127.0.0.1:9", token: "x" }).health()).rejects.toMatchObject({
          code: "unreachable"
        })
        await expect(collected(reader.session.events("ses_none"), () => true)).rejects.toMatchObject({
          code: "not_found"
        })
      })
    })))

  it.live("knows what is no Bezel from what does not answer", () =>
    Effect.scoped(Effect.gen(function*() {
      for (const [status, text] of [[200, "hello"], [404, "<html>"], [200, "{}"], [500, ""]] as const) {
        const server = yield* Effect.acquireRelease(
          Effect.promise(() =>
            new Promise<Server>((resolve) => {
              const made = createServer((_, response) => {
                response.writeHead(status, { "content-type": "application/json" }).end(text)
              }).listen(0, "127.0.0.1", () => resolve(made))
            })
          ),
          (made) =>
            Effect.sync(() => {
              made.close()
              made.closeAllConnections()
            })
        )
        const address = server.address()
        const port = typeof address === "object" && address !== null ? address.port : 0
        const client = createClient({ url: `http://127.0.0.1:${port}`, token: "x" })
        yield* Effect.promise(() => expect(client.health()).rejects.toMatchObject({ code: "malformed" }))
      }
    })))

  it.live("ends calls and iterations with a signal", () =>
    Effect.scoped(Effect.gen(function*() {
      const { url } = yield* startTestServer([[wait("1 hour"), say("late")]])
      yield* Effect.promise(async () => {
        const client = createClient({ url, token: tokens.admin })
        const { id } = await client.session.create()
        await client.session.prompt(id, "Hi")
        const aborting = new AbortController()
        const bound = client.with({ signal: aborting.signal })
        const waiting = bound.session.wait(id)
        aborting.abort(new Error("enough"))
        await expect(waiting).rejects.toThrow("enough")
        expect(await collected(bound.session.events(id), () => false)).toEqual([])
        await client.session.interrupt(id)
        expect((await client.session.wait(id)).status).toBe("idle")
      })
    })))

  it.live("is the person whom a session asks", () =>
    Effect.scoped(Effect.gen(function*() {
      const { url } = yield* startTestServer([[call("ask", { text: "Really?" })], "Done."], { plugins: [] })
      expect(asking.id).toBe("test.asking")
      yield* Effect.promise(async () => {
        const client = createClient({ url, token: tokens.prompt })
        const { id } = await client.session.create()
        const events = client.session.events(id)[Symbol.asyncIterator]()
        await events.next()
        const { inputID } = await client.session.prompt(id, "Go")
        let opened: { readonly type: string; readonly id?: unknown } = { type: "" }
        while (opened.type !== "interaction.opened") opened = (await events.next()).value
        const [asked] = await client.session.interactions(id)
        expect(opened.id).toBe(asked?.id)
        expect(asked).toMatchObject({ interaction: "test.ask", sessionID: id, request: { text: "Really?" } })
        const interactionID = asked?.id ?? ""
        await expect(client.session.answer(id, interactionID, { response: { yes: "maybe" } })).rejects.toMatchObject({
          code: "invalid_arguments"
        })
        await client.session.answer(id, interactionID, { response: { yes: true } })
        await expect(client.session.answer(id, interactionID, { response: { yes: false } })).rejects.toMatchObject({
          code: "already_settled",
          data: { outcome: "answered" }
        })
        expect(await client.session.wait(id, { input: inputID })).toMatchObject({ status: "done", text: "Done." })
        expect(await client.session.interactions(id)).toEqual([])
        expect(JSON.stringify(await client.session.transcript(id))).toContain('{\\"yes\\":true}')
      })
    })))
})

describe("the client in effects", () => {
  it.live("reads the same events as a stream", () =>
    Effect.scoped(Effect.gen(function*() {
      const { url } = yield* startTestServer(["Hello."])
      const client = makeEffectClient({ url, token: tokens.admin })
      const { id } = yield* client.session.create()
      yield* client.session.ask(id, "Hi")
      const seen = yield* client.session.events(id, { after: "0" }).pipe(
        Stream.takeUntil(({ type }) => type === "turn.ended"),
        Stream.runCollect
      )
      expect(seen.map(({ type }) => type)).toEqual([
        "ready",
        "entry.added",
        "input.placed",
        "turn.started",
        "generation.started",
        "entry.added",
        "generation.completed",
        "turn.ended"
      ])
    })))
})
