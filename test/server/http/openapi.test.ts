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

  it.live("is a page for people that loads and runs nothing but its own script", () =>
    Effect.scoped(Effect.gen(function*() {
      const { call } = yield* startTestServer()
      yield* Effect.promise(async () => {
        const { headers, text } = await call("GET", "/docs", { token: null })
        expect(headers.get("content-type")).toContain("text/html")
        expect(headers.get("content-security-policy")).toContain("default-src 'none'")
        expect(headers.get("content-security-policy")).toContain("script-src 'self'")
        expect(text.match(/<script[^>]*>[^<]*<\/script>/gi)).toEqual(['<script type="module" src="/docs.js"></script>'])
        expect(text.replace(/<script[^>]*>/, "")).not.toMatch(/<script|<link|<img|https?:\/\/|src=/i)
        for (const path of ["/session/{id}/prompt", "/file/search", "/event"]) expect(text).toContain(path)
      })
    })))

  it.live("signs its page in by a one-time code, which leaves the address, and tells of one that is void", () =>
    Effect.scoped(Effect.gen(function*() {
      const { logs, url } = yield* startTestServer()
      yield* Effect.promise(async () => {
        const script = await (await fetch(`${url}/docs.js`)).text()
        const opened = async (hash: string) => {
          const said = { textContent: "" }
          const kept = new Map<string, string>()
          const addresses: Array<string> = []
          const names = ["document", "location", "history", "sessionStorage", "fetch"]
          const run = new Function(...names, `return (async () => {${script}})()`)
          await run(
            { getElementById: () => said, querySelectorAll: () => [] },
            { hash, pathname: "/docs" },
            { replaceState: (_state: null, _title: string, address: string) => addresses.push(address) },
            {
              getItem: (name: string) => kept.get(name) ?? null,
              setItem: (name: string, value: string) => kept.set(name, value)
            },
            // As a browser sends it from the page.
            (path: string, init: RequestInit) =>
              fetch(url + path, { ...init, headers: { ...init.headers as Record<string, string>, origin: url } })
          )
          return { said: said.textContent, kept: Object.fromEntries(kept), addresses }
        }
        expect(await opened("#code=a-code")).toEqual({
          said: expect.stringContaining("scope read"),
          kept: { "bezel.token": JSON.stringify({ token: tokens.read, scope: "read" }) },
          addresses: ["/docs"]
        })
        expect(await opened("#code=void")).toMatchObject({ said: expect.stringContaining("not valid"), kept: {} })
        expect(await opened("")).toEqual({ said: "", kept: {}, addresses: [] })
        const foreign = await fetch(`${url}/login`, {
          method: "POST",
          headers: { "content-type": "application/json", origin: "http://elsewhere.test" },
          body: JSON.stringify({ code: "a-code" })
        })
        expect(foreign.status).toBe(403)
        expect(logs.join("\n")).not.toMatch(/a-code|void/)
      })
    })))
})
