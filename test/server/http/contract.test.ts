/**
 * The contract of every route: its right answer, each kind of wrong input, no token, and a token without the scope.
 *
 * The right answer is held against the schema that the definition gives for it. A route that has no set of cases here fails the
 * first test.
 */
import { call as callTool, say, wait } from "@bezel/core/testing"
import { BezelApi, RequiredScope } from "@bezel/sdk/api"
import { describe, expect, it } from "@effect/vitest"
import { Context, Effect, Exit, Schema } from "effect"
import { HttpApi, type HttpApiEndpoint } from "effect/http-api"
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { cases, exported, history, type World } from "./contract-cases.ts"
import { startTestServer, tokens } from "./fixture.ts"

interface Route {
  readonly name: string
  readonly endpoint: HttpApiEndpoint.Top
  readonly scope: RequiredScope
}

const routes: Array<Route> = []
HttpApi.reflect(BezelApi, {
  onGroup: () => {},
  onEndpoint: ({ endpoint, group, mergedAnnotations }) => {
    routes.push({
      name: `${group.identifier}.${endpoint.identifier}`,
      endpoint,
      scope: Context.get(mergedAnnotations, RequiredScope)
    })
  }
})

const streams = new Set(["session.events", "session.offerTool", "server.events"])
const weaker = { prompt: tokens.read, admin: tokens.prompt } as const

/** What stands in the world beside the one session. */
const makeWorld = Effect.gen(function*() {
  const server = yield* startTestServer([
    "First.",
    [callTool("ask", { text: "Well?" }), callTool("bell", { times: 2 })],
    ...Array.from({ length: 20 }, () => [wait(1), say("Later.")])
  ], { plugins: [history] })
  return yield* Effect.promise(async (): Promise<World> => {
    const { call } = server
    symlinkSync("/etc", join(server.directory, "out"))
    symlinkSync("/etc/passwd", join(server.directory, "secret"))
    mkdirSync(join(server.directory, "node_modules"))
    writeFileSync(join(server.directory, "node_modules", "hello.txt"), "")
    const create = async () => (await call("POST", "/session", { body: {} })).json.id
    const id = await create()
    const { json: { inputID } } = await call("POST", `/session/${id}/prompt`, { body: { text: "Hi" } })
    await call("POST", `/session/${id}/wait?input=${inputID}`)
    const asking = await create()
    const offer = await fetch(`${server.url}/session/${asking}/tool`, {
      method: "POST",
      headers: { authorization: `Bearer ${tokens.admin}`, "content-type": "application/json" },
      body: JSON.stringify({ name: "bell", description: "Rings a bell." })
    })
    const told = offer.body?.pipeThrough(new TextDecoderStream()).getReader()
    let heard = ""
    const toolCall = async () => {
      for (;;) {
        const id = /event: call\ndata: {"type":"call","id":"([^"]+)"/.exec(heard)?.[1]
        if (id !== undefined) return id
        const piece = await told?.read()
        if (piece?.value === undefined) throw new Error(`The offer has ended: ${heard}`)
        heard += piece.value
      }
    }
    await call("POST", `/session/${asking}/prompt`, { body: { text: "Ask" } })
    const question = await new Promise<string>((resolve) => {
      const look = async () => {
        const { json } = await call("GET", `/session/${asking}/interaction`)
        const found = json.items[0]?.id
        if (typeof found === "string") resolve(found)
        else setImmediate(look)
      }
      void look()
    })
    const reverted = await create()
    const { json: input } = await call("POST", `/session/${reverted}/prompt`, { body: { text: "Hi" } })
    await call("POST", `/session/${reverted}/wait?input=${input.inputID}`)
    await call("POST", `/session/${reverted}/revert`, { body: { to: "last" } })
    const { json: { items } } = await call("GET", `/session/${id}/message`)
    exported.set(id, (await call("GET", `/session/${id}/export`)).json)
    Object.assign(server.extra, {
      input: inputID,
      asking,
      question,
      toolCall: await toolCall(),
      removed: await create(),
      reset: await create(),
      compacted: await create(),
      reverted
    })
    return { server, id, entry: String(items.at(-1)?.id) }
  })
})

describe("every route", () => {
  it("has its set of cases here, and no set is of a route that there is not", () => {
    expect(Object.keys(cases).toSorted()).toEqual(routes.map(({ name }) => name).toSorted())
  })

  for (const { endpoint, name, scope } of routes) {
    const one = cases[name]
    if (one === undefined) continue
    it.live(`${name} answers what is right, and says what is wrong`, () =>
      Effect.scoped(Effect.gen(function*() {
        const world = yield* makeWorld
        yield* Effect.promise(async () => {
          const { server } = world
          const path = one.path(world)
          const body = one.body?.(world)
          const sent = body === undefined ? {} : { body }

          const refused = await server.call(endpoint.method, path, { ...sent, token: null })
          expect([refused.status, refused.json.error?.code]).toEqual(
            scope === "none" ? [one.status, undefined] : [401, "unauthorized"]
          )
          if (scope === "prompt" || scope === "admin") {
            const weak = await server.call(endpoint.method, path, { ...sent, token: weaker[scope] })
            expect([weak.status, weak.json.error.code]).toEqual([403, "forbidden"])
          }
          for (const wrong of one.wrong?.(world) ?? []) {
            const { json, status } = await server.call(endpoint.method, wrong.path ?? path, {
              ...(wrong.raw === undefined
                ? wrong.body === undefined ? sent : { body: wrong.body }
                : { raw: wrong.raw }),
              ...(wrong.headers === undefined ? {} : { headers: wrong.headers })
            })
            expect([wrong.what, status, json.error?.code]).toEqual([wrong.what, wrong.status, wrong.code])
            expect(json.error.message).toMatch(/^[A-Z"/].*[.!?]$/s)
          }

          if (streams.has(name)) {
            return expect(await firstPiece(server.url + path, endpoint.method, body)).toContain("event: ready")
          }
          const right = await server.call(endpoint.method, path, sent)
          expect([right.status, right.text]).toEqual([one.status, expect.anything()])
          if (right.headers.get("content-type")?.includes("json") === true && one.status < 300) {
            const [success = Schema.Never] = endpoint.success
            const decoded = Schema.decodeUnknownExit(success as Schema.Codec<unknown>, { onExcessProperty: "error" })(
              right.json
            )
            expect(Exit.isSuccess(decoded) ? null : String(decoded.cause)).toBe(null)
          }
          one.check?.(right.json, world)
        })
      })), 20_000)
  }
})

/** What a stream says first. */
const firstPiece = async (url: string, method: string, body: unknown): Promise<string> => {
  const response = await fetch(url, {
    method,
    headers: {
      authorization: `Bearer ${method === "GET" ? tokens.read : tokens.admin}`,
      "content-type": "application/json"
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) })
  })
  expect(response.headers.get("content-type")).toContain("text/event-stream")
  const reader = response.body?.getReader()
  const piece = await reader?.read()
  await reader?.cancel()
  return new TextDecoder().decode(piece?.value)
}
