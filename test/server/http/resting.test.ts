/** Sessions with work that nobody has resumed: to look at one, or to follow it, starts nothing. */
import { never } from "@bezel/core/testing"
import { createClient } from "@bezel/sdk"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { startTestServer, tokens } from "./fixture.ts"

describe("a session at rest", () => {
  it.live("stays so for followers, for who waits, looks, configures and answers, until it is given work", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* startTestServer(["The answer.", "Another."])
      const client = createClient({ url: server.url, token: tokens.admin })
      yield* Effect.promise(async () => {
        const { id } = await client.session.create({})
        const { inputID } = await client.session.prompt(id, { text: "Later", resume: false })
        const leaving = new AbortController()
        const events = client.with({ signal: leaving.signal }).session.events(id)[Symbol.asyncIterator]()
        expect((await events.next()).value).toMatchObject({ type: "ready" })
        // Each of these goes to the session's host and back, while the follower is attached.
        expect(await client.session.wait(id, { input: inputID, timeout: 0.3 })).toMatchObject({ status: "running" })
        expect(await client.session.wait(id, { timeout: 0.3 })).toMatchObject({ status: "running" })
        const { view } = await client.session.view(id)
        expect(view).toMatchObject({ turn: { inputs: [inputID], generation: { stage: "preparing" } } })
        expect(await client.session.interactions(id)).toEqual([])
        expect((await server.call("PATCH", `/session/${id}/config`, { body: { thinking: "high" } })).status).toBe(204)
        expect((await client.session.get(id)).status).not.toBe("active")
        expect(server.model.requests).toHaveLength(0)

        await client.session.resume(id)
        expect(await client.session.wait(id, { input: inputID, timeout: 20 })).toMatchObject({
          status: "done",
          text: "The answer."
        })
        expect(server.model.requests).toHaveLength(1)
        for (let type = ""; type !== "turn.ended";) type = (await events.next()).value?.type ?? "turn.ended"
        leaving.abort()
      })
    })))

  it.live("goes on with all that waits once a prompt is sent without `resume: false`", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* startTestServer(["One.", "Two."])
      const client = createClient({ url: server.url, token: tokens.admin })
      yield* Effect.promise(async () => {
        const { id } = await client.session.create({})
        const first = await client.session.prompt(id, { text: "Later", resume: false })
        const second = await client.session.prompt(id, { text: "Now" })
        for (const { inputID } of [first, second]) {
          expect(await client.session.wait(id, { input: inputID, timeout: 20 })).toMatchObject({ status: "done" })
        }
        expect(server.model.requests.length).toBeGreaterThan(0)
      })
    })))

  it.live("that was given work is waited for also by who comes when nobody holds it any more", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* startTestServer([[never]])
      const client = createClient({ url: server.url, token: tokens.admin })
      yield* Effect.promise(async () => {
        const { id } = await client.session.create({})
        await client.session.prompt(id, "Go on")
        const held = async () => (await server.call("GET", "/metrics")).text
        await expect.poll(held, { timeout: 10_000 }).toContain("bezel_sessions_held 0")
        expect(await client.session.wait(id, { timeout: 0.3 })).toEqual({ status: "running" })
      })
    })))

  it.live("is summarized when that is asked for, which is work", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* startTestServer(["One.", "A summary."])
      const client = createClient({ url: server.url, token: tokens.admin })
      yield* Effect.promise(async () => {
        const { id } = await client.session.create({})
        await client.session.ask(id, "First")
        // Closed by now, so that the next one who comes opens it anew.
        const held = async () => (await server.call("GET", "/metrics")).text
        await expect.poll(held, { timeout: 10_000 }).toContain("bezel_sessions_held 0")
        expect(await client.session.compact(id)).toMatchObject({ status: "completed" })
      })
    })))
})
