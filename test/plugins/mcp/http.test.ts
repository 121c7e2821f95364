/** Servers at an address: streamable HTTP, what they are told of us, and what happens when they are not there any more. */
import { call } from "@bezel/core/testing"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import * as TestClock from "effect/testing/TestClock"
import * as http from "node:http"
import type { AddressInfo } from "node:net"
import { eventCounter } from "../../../packages/plugins/src/mcp/bounded-fetch.ts"
import { world } from "./world.ts"

interface Seen {
  readonly method: string
  readonly headers: http.IncomingHttpHeaders
  readonly body: { readonly method?: string; readonly id?: number; readonly params?: { readonly name?: string } }
}

interface Site {
  readonly url: string
  readonly port: number
  readonly seen: Array<Seen>
  readonly close: () => Promise<void>
}

type Answer = (seen: Seen, response: http.ServerResponse) => boolean

const json = (response: http.ServerResponse, body: unknown, headers = {}) => {
  response.writeHead(200, { "content-type": "application/json", ...headers })
  response.end(JSON.stringify(body))
}

/** A server over HTTP; `answer` says whether it has taken a request. */
const startSite = (answer: Answer, port = 0): Promise<Site> => {
  const seen: Array<Seen> = []
  const server = http.createServer((incoming, response) => {
    let text = ""
    incoming.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk
    })
    incoming.on("end", () => {
      const one = {
        method: incoming.method ?? "",
        headers: incoming.headers,
        body: text === "" ? {} : JSON.parse(text)
      }
      seen.push(one)
      if (answer(one, response)) return
      if (one.method !== "POST") {
        response.writeHead(405).end()
        return
      }
      const { id, method } = one.body
      if (id === undefined) {
        response.writeHead(202).end()
        return
      }
      const result = method === "initialize"
        ? { protocolVersion: "2025-06-18", serverInfo: { name: "site", version: "1" }, capabilities: { tools: {} } }
        : method === "tools/list"
        ? { tools: ["echo", "big", "events"].map((name) => ({ name, inputSchema: { type: "object" } })) }
        : method === "tools/call"
        ? { content: [{ type: "text", text: `called ${one.body.params?.name}` }] }
        : {}
      json(response, { jsonrpc: "2.0", id, result }, method === "initialize" ? { "mcp-session-id": "s-1" } : {})
    })
  })
  return new Promise((resolve) => {
    server.listen(port, "127.0.0.1", () => {
      const address = server.address() as AddressInfo
      resolve({
        url: `http://127.0.0.1:${address.port}/mcp`,
        port: address.port,
        seen,
        close: () =>
          new Promise((done) => {
            server.close(() => done())
            server.closeAllConnections()
          })
      })
    })
  })
}

const site = (answer: Answer = () => false, port = 0) =>
  Effect.acquireRelease(Effect.promise(() => startSite(answer, port)), (one) => Effect.promise(() => one.close()))

describe("a server at an address", () => {
  it.live("gets the headers of its setting and keeps one session, which it is told the end of", () =>
    Effect.gen(function*() {
      const one = yield* site()
      yield* Effect.scoped(Effect.gen(function*() {
        const { host, results, sessionID } = yield* world(
          () => ({ web: { url: one.url, headers: { Authorization: Redacted.make("Bearer t-1") } } }),
          [[call("web_echo", { text: "x" })], "ok"]
        )
        expect(yield* host.ask(sessionID, "go")).toBe("ok")
        expect(results()[0]).toMatchObject({ isFailure: false, result: "called echo" })
      }))
      expect(one.seen.every(({ headers }) => headers.authorization === "Bearer t-1")).toBe(true)
      expect(one.seen.filter(({ body }) => body.method === "initialize")).toHaveLength(1)
      expect(one.seen.find(({ body }) => body.method === "tools/call")?.headers["mcp-session-id"]).toBe("s-1")
      expect(one.seen.at(-1)?.method).toBe("DELETE")
    }).pipe(Effect.scoped))

  it.live("that does not take what its headers say is told with what to do", () =>
    Effect.gen(function*() {
      const one = yield* site((_, response) => {
        response.writeHead(401, { "www-authenticate": "Bearer" }).end("who?\u001b[2J")
        return true
      })
      const { until } = yield* world(() => ({ web: { url: one.url, headers: { authorization: Redacted.make("x") } } }))
      const { error } = yield* until("web", ({ status }) => status === "waiting")
      expect(error).toBe(
        "it answered with HTTP status 401; say who you are in its headers: Error POSTing to endpoint: who? [2J"
      )
    }).pipe(Effect.scoped))

  it.live("where nobody is, and one that is no such server, are told plainly", () =>
    Effect.gen(function*() {
      const page = yield* site((_, response) => {
        response.writeHead(200, { "content-type": "text/html" }).end("<html>")
        return true
      })
      const nobody = yield* Effect.promise(() => startSite(() => false))
      yield* Effect.promise(() => nobody.close())
      const { until } = yield* world(() => ({ gone: { url: nobody.url }, page: { url: page.url } }))
      expect((yield* until("gone", ({ status }) => status === "waiting")).error).toContain("ECONNREFUSED")
      expect((yield* until("page", ({ status }) => status === "waiting")).error).toBe(
        "Unexpected content type: text/html"
      )
    }).pipe(Effect.scoped))

  it.effect("that forgets the session or goes away and comes back is connected again, and keeps its tools", () =>
    Effect.gen(function*() {
      let forgotten = false
      const answer: Answer = ({ body, headers }, response) => {
        if (!forgotten || body.method === "initialize" || headers["mcp-session-id"] === undefined) return false
        response.writeHead(404).end("no such session")
        return true
      }
      const first = yield* Effect.promise(() => startSite(answer))
      const { host, model, results, sessionID, until } = yield* world(() => ({ web: { url: first.url } }), [
        [call("web_echo", {})],
        "one",
        [call("web_echo", {})],
        "two"
      ])
      yield* until("web", ({ status }) => status === "ready")
      forgotten = true
      yield* host.ask(sessionID, "go")
      expect(results()[0]).toMatchObject({ isFailure: true, result: expect.stringContaining("HTTP status 404") })
      yield* until("web", ({ status }) => status === "waiting")
      yield* Effect.promise(() => first.close())
      const second = yield* site(() => false, first.port)
      expect(yield* host.ask(sessionID, "again")).toBe("two")
      expect(results()[0]).toMatchObject({ isFailure: false, result: "called echo" })
      expect(model.requests.every(({ tools }) => tools.length === 3)).toBe(true)
      expect(second.seen.filter(({ body }) => body.method === "initialize")).toHaveLength(1)
      yield* TestClock.adjust("1 minute")
    }).pipe(Effect.scoped))

  it.live("that goes away in the middle of a call fails it at once, as JSON and as events", () =>
    Effect.gen(function*() {
      const gone: { close: () => void } = { close: () => {} }
      const one = yield* Effect.promise(() =>
        startSite(({ body: { params } }, response) => {
          if (params?.name !== "big" && params?.name !== "events") return false
          if (params.name === "events") {
            response.writeHead(200, { "content-type": "text/event-stream" })
            response.write(": working\n\n")
            gone.close()
          }
          return true
        })
      )
      gone.close = () => void one.close()
      const { host, results, sessionID } = yield* world(() => ({ web: { url: one.url } }), [[
        call("web_big", {}),
        call("web_events", {})
      ], "ok"])
      expect(yield* host.ask(sessionID, "go")).toBe("ok")
      for (const result of results()) {
        expect(result).toMatchObject({ isFailure: true, result: expect.stringMatching(/^The MCP server web: /) })
        expect(result.result).not.toContain("did not answer within")
      }
    }).pipe(Effect.scoped))

  it.live.each([["answer", "big"], ["event", "events"]])(
    "cannot fill the memory with one %s",
    ([, name]) =>
      Effect.gen(function*() {
        let sent = 0
        const one = yield* site(({ body: { id, params } }, response) => {
          if (params?.name !== "big" && params?.name !== "events") return false
          const events = params.name === "events"
          response.writeHead(200, { "content-type": events ? "text/event-stream" : "application/json" })
          response.write(events ? "data: " : `{"jsonrpc":"2.0","id":${id},"result":{"content":[{"type":"text","text":"`)
          const piece = "x".repeat(1_000_000)
          const more = () => {
            while (!response.destroyed && sent < 500_000_000) {
              sent += piece.length
              if (!response.write(piece)) {
                response.once("drain", more)
                return
              }
            }
          }
          more()
          return true
        })
        const { host, model, sessionID } = yield* world(() => ({ web: { url: one.url, timeout: 25 } }), [[
          call(`web_${name}`, {}),
          call("web_echo", {})
        ], "ok"])
        expect(yield* host.ask(sessionID, "go")).toBe("ok")
        const told = JSON.stringify(model.requests.at(-1)?.messages.at(-1))
        expect(told).toContain("its answer was over the limit of 32 MiB")
        expect(told).toContain("called echo")
        expect(sent).toBeLessThan(200_000_000)
      }).pipe(Effect.scoped),
    30_000
  )
})

describe("the size of events", () => {
  it("is counted over chunks that are cut anywhere", () => {
    const stream = Buffer.from(`data: ${"a".repeat(100)}\n\n: ping\r\n\r\ndata: ${"b".repeat(50)}\ndata: c\n\n`)
    for (const size of [1, 2, 3, 7, stream.length]) {
      const count = eventCounter()
      let largest = 0
      for (let at = 0; at < stream.length; at += size) {
        largest = Math.max(largest, count(stream.subarray(at, at + size)))
      }
      expect(largest).toBe(108)
    }
  })
})
