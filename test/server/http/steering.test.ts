/** What lists find, what interrupting ends, and what who answers late is told. */
import { call as callTool, never } from "@bezel/core/testing"
import { createClient } from "@bezel/sdk"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { mkdirSync } from "node:fs"
import { join } from "node:path"
import { startTestServer, tokens } from "./fixture.ts"

describe("sessions", () => {
  it.live("are found by where they are, whose children they are, what they are called, and whether they are put away", () =>
    Effect.scoped(Effect.gen(function*() {
      const { call, directory } = yield* startTestServer()
      yield* Effect.promise(async () => {
        const other = join(directory, "other")
        mkdirSync(other)
        const create = async (body: object) => (await call("POST", "/session", { body })).json.id
        const parent = await create({ title: "Parent" })
        const child = await create({ title: "A child", parentID: parent })
        const far = await create({ title: "Far away", location: other })
        const away = await create({ title: "Put away" })
        expect((await call("PATCH", `/session/${away}`, { body: { archived: true } })).json.archived).toBe(true)
        const found = async (query: string) =>
          (await call("GET", `/session?${query}`)).json.items.map(({ id }) => id).toSorted()
        const sorted = (...ids: ReadonlyArray<string>) => ids.toSorted()
        expect(await found("")).toEqual(sorted(parent, child, far, away))
        expect(await found(`location=${encodeURIComponent(other)}`)).toEqual([far])
        expect(await found(`location=${encodeURIComponent(directory)}`)).toEqual(sorted(parent, child, away))
        expect(await found(`parent=${parent}`)).toEqual([child])
        expect(await found("parent=none")).toEqual(sorted(parent, far, away))
        expect(await found("text=AWAY")).toEqual(sorted(far, away))
        expect(await found("archived=true")).toEqual([away])
        expect(await found("archived=false")).toEqual(sorted(parent, child, far))
        await call("PATCH", `/session/${away}`, { body: { archived: false } })
        expect(await found("archived=true")).toEqual([])
        expect((await call("GET", `/location?directory=${encodeURIComponent(directory)}`)).json.sessions).toBe(3)
      })
    })))

  it.live("that work are listed as active, and those alone, until they are interrupted, which ends their turn", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* startTestServer([[never]])
      const client = createClient({ url: server.url, token: tokens.admin })
      yield* Effect.promise(async () => {
        await client.session.create({ title: "resting" })
        const { id } = await client.session.create({})
        const active = async () => (await server.call("GET", "/session/active")).json.items
        expect(await active()).toEqual([])
        const { inputID } = await client.session.prompt(id, "Go on")
        await expect.poll(() => server.model.requests.length).toBe(1)
        await expect.poll(active).toEqual([id])
        expect((await server.call("POST", `/session/${id}/interrupt`, { body: {} })).status).toBe(204)
        expect(await client.session.wait(id, { input: inputID, timeout: 10 })).toMatchObject({
          status: "unanswered",
          reason: "aborted"
        })
        await expect.poll(active).toEqual([])
      })
    })))

  it.live("tell who answers a question late how it was settled, and nothing of a question that there never was", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* startTestServer([[callTool("ask", { text: "Well?" })], "Done."])
      const client = createClient({ url: server.url, token: tokens.admin })
      yield* Effect.promise(async () => {
        const { id } = await client.session.create({})
        const { inputID } = await client.session.prompt(id, "Ask")
        const open = async () => (await client.session.interactions(id)).map((one) => one.id)
        await expect.poll(open).toHaveLength(1)
        const [question = ""] = await open()
        const answer = (body: object, name = question) =>
          server.call("POST", `/session/${id}/interaction/${name}`, { body })
        expect((await answer({ response: { yes: true } })).status).toBe(204)
        for (const late of [{ response: { yes: false } }, { declined: true }]) {
          const refused = await answer(late)
          expect(refused.status).toBe(409)
          expect(refused.json.error).toMatchObject({ code: "already_settled", data: { outcome: "answered" } })
        }
        expect((await answer({ declined: true }, "nobody-asked")).json.error.code).toBe("not_found")
        expect(await client.session.wait(id, { input: inputID, timeout: 10 })).toMatchObject({ text: "Done." })
        expect(JSON.stringify(await client.session.context(id))).toContain('\\"yes\\":true')
      })
    })))
})
