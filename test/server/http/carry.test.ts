/** Sessions that are carried elsewhere: exported, imported, forked. */
import { call as callTool, wait } from "@bezel/core/testing"
import { createClient, type SessionMessage } from "@bezel/sdk"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { sink, startTestServer, tokens } from "./fixture.ts"

const said = (transcript: ReadonlyArray<SessionMessage>) => transcript.map(({ kind, model }) => ({ kind, model }))

describe("a session", () => {
  it.live("exported and imported is the same to read, and goes on by itself", () =>
    Effect.scoped(Effect.gen(function*() {
      const { directory, url } = yield* startTestServer(
        [[callTool("sink", { text: "U+2028 \u2028, U+0085 \u0085, \r\n, \ud83d\ude00" })], "One.", "Two."],
        { plugins: [sink] }
      )
      yield* Effect.promise(async () => {
        const client = createClient({ url, token: tokens.admin })
        const { id } = await client.session.create({ title: "kept" })
        await client.session.ask(id, "First")
        const copy = await client.session.import(await client.session.export(id), directory)
        expect(copy).toMatchObject({ title: "kept", status: "idle" })
        expect(said(await client.session.transcript(copy.id))).toEqual(said(await client.session.transcript(id)))
        expect(await client.session.context(copy.id)).toEqual(await client.session.context(id))
        expect((await client.session.ask(copy.id, "Second")).text).toBe("Two.")
        expect((await client.session.transcript(id)).length).toBe(4)
      })
    })))

  it.live("forked is a session of its own that ends with the entry, and neither knows of the other's turns", () =>
    Effect.scoped(Effect.gen(function*() {
      const { model, url } = yield* startTestServer(["One.", "Two.", "Otherwise."])
      yield* Effect.promise(async () => {
        const client = createClient({ url, token: tokens.admin })
        const { id } = await client.session.create({ title: "first" })
        await client.session.ask(id, "A")
        const [, answer] = await client.session.transcript(id)
        await client.session.ask(id, "B")
        const before = await client.session.transcript(id)
        const fork = await client.session.fork(id, answer?.id ?? "")
        expect(fork).toMatchObject({ title: "first (fork)", parentID: null })
        expect(said(await client.session.transcript(fork.id))).toEqual(said(before.slice(0, 2)))
        expect((await client.session.ask(fork.id, "C")).text).toBe("Otherwise.")
        expect(JSON.stringify(model.requests[2]?.messages)).toContain("One.")
        expect(JSON.stringify(model.requests[2]?.messages)).not.toContain("Two.")
        expect(await client.session.transcript(id)).toEqual(before)
      })
    })))
})

describe("a prompt", () => {
  it.live("of more bytes than a session's host takes at once is too large, which is no matter of time", () =>
    Effect.scoped(Effect.gen(function*() {
      const { call } = yield* startTestServer(["One."])
      yield* Effect.promise(async () => {
        const { json: { id } } = await call("POST", "/session", { body: {} })
        const answer = await call("POST", `/session/${id}/prompt`, { body: { text: "x".repeat(17 * 1024 * 1024) } })
        expect(answer).toMatchObject({ status: 413, json: { error: { code: "too_large" } } })
        expect((await call("POST", `/session/${id}/prompt`, { body: { text: "x" } })).status).toBe(202)
      })
    })))
})

describe("waiting for no time", () => {
  it.live("says whether the session is idle", () =>
    Effect.scoped(Effect.gen(function*() {
      const { url } = yield* startTestServer(["One.", [wait("1 hour")]])
      yield* Effect.promise(async () => {
        const client = createClient({ url, token: tokens.admin })
        const { id } = await client.session.create()
        expect((await client.session.wait(id, { timeout: 0 })).status).toBe("idle")
        await client.session.ask(id, "A")
        expect(await client.session.wait(id, { timeout: 0 })).toEqual({ status: "idle", text: "One." })
        await client.session.prompt(id, "B")
        expect(await client.session.wait(id, { timeout: 0 })).toEqual({ status: "running" })
      })
    })))
})

describe("a prompt that is only accepted", () => {
  it.live("is worked on when its session is resumed", () =>
    Effect.scoped(Effect.gen(function*() {
      const { model, url } = yield* startTestServer(["Now."])
      yield* Effect.promise(async () => {
        const client = createClient({ url, token: tokens.admin })
        const { id } = await client.session.create()
        const { inputID } = await client.session.prompt(id, { text: "Later", resume: false })
        expect((await client.session.transcript(id)).map(({ kind }) => kind)).toEqual(["bezel.user"])
        expect(model.requests.length).toBe(0)
        await client.session.resume(id)
        expect(await client.session.wait(id, { input: inputID })).toMatchObject({ status: "done", text: "Now." })
      })
    })))
})
