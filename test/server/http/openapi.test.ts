/** The description of the API: that it is one, that somebody else's client works with it, and that people can read it. */
import { describe, expect, it } from "@effect/vitest"
import { Validator } from "@seriousme/openapi-schema-validator"
import { Effect } from "effect"
import { OpenAPIClientAxios } from "openapi-client-axios"
import { startTestServer, tokens } from "./fixture.ts"

describe("the OpenAPI document", () => {
  it.live("is OpenAPI 3.1 to a validator, and names the token and the scope that each route takes", () =>
    Effect.scoped(Effect.gen(function*() {
      const { call } = yield* startTestServer()
      yield* Effect.promise(async () => {
        const { json, status } = await call("GET", "/openapi.json", { token: null })
        expect(status).toBe(200)
        const validator = new Validator()
        expect(await validator.validate(structuredClone(json))).toEqual({ valid: true })
        expect(validator.version).toBe("3.1")
        const paths = json.paths as Record<string, Record<string, { security: unknown; description?: string }>>
        expect(paths["/health"]?.get?.security).toEqual([])
        expect(paths["/session/{id}"]?.delete).toMatchObject({
          security: [{ bearer: [] }],
          description: expect.stringContaining("`admin`")
        })
      })
    })))

  it.live("is enough for a client that somebody else derives from it: a whole turn, and errors", () =>
    Effect.scoped(Effect.gen(function*() {
      const { call, url } = yield* startTestServer(["Hello."])
      yield* Effect.promise(async () => {
        const { json } = await call("GET", "/openapi.json", { token: null })
        const api = new OpenAPIClientAxios({
          definition: structuredClone(json) as never,
          axiosConfigDefaults: {
            baseURL: url,
            headers: { authorization: `Bearer ${tokens.admin}` },
            validateStatus: () => true
          }
        })
        const client = await api.init()
        const run = async (operation: string, parameters?: Record<string, string | number>, body?: unknown) => {
          const method = client[operation]
          if (typeof method !== "function") throw new Error(`no operation ${operation}`)
          return await method(parameters, body) as { status: number; data: Record<string, unknown> }
        }
        const created = await run("session.create", undefined, { title: "foreign" })
        expect([created.status, created.data.title]).toEqual([201, "foreign"])
        const id = String(created.data.id)
        const prompted = await run("session.prompt", { id }, { text: "Hi" })
        expect(prompted.status).toBe(202)
        const waited = await run("session.wait", { id, timeout: 20, input: String(prompted.data.inputID) })
        expect(waited.data).toMatchObject({ status: "done", text: "Hello." })
        expect((await run("session.messages", { id, limit: 5 })).data.items).toHaveLength(2)
        expect(await run("session.get", { id: "ses_none" })).toMatchObject({
          status: 404,
          data: { error: { code: "not_found" } }
        })
        expect((await run("session.remove", { id })).status).toBe(204)
      })
    })))

  it.live("is a page for people that loads nothing and runs nothing", () =>
    Effect.scoped(Effect.gen(function*() {
      const { call } = yield* startTestServer()
      yield* Effect.promise(async () => {
        const { headers, text } = await call("GET", "/docs", { token: null })
        expect(headers.get("content-type")).toContain("text/html")
        expect(headers.get("content-security-policy")).toContain("default-src 'none'")
        expect(text).not.toMatch(/<script|<link|<img|https?:\/\/|src=/i)
        for (const path of ["/session/{id}/prompt", "/file/search", "/event"]) expect(text).toContain(path)
      })
    })))
})
