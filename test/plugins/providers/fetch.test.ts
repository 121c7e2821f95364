import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import type { Scope } from "effect"
import * as http from "node:http"
import type { AddressInfo, Socket } from "node:net"
import * as zlib from "node:zlib"
import { makeProviderFetch } from "../../../packages/plugins/src/providers/ai-sdk-fetch.ts"
import { httpFetch } from "../../../packages/plugins/src/providers/http-fetch.ts"

interface Served {
  readonly url: string
  readonly connections: Array<Socket>
  readonly requests: Array<http.IncomingMessage & { readonly text: string }>
}

/** A real server, whose connections are counted. */
const serve = (answer: (request: http.IncomingMessage, response: http.ServerResponse) => void) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const served: Served & { server: http.Server } = {
        url: "",
        connections: [],
        requests: [],
        server: http.createServer()
      }
      const { server } = served
      server.on("connection", (socket: Socket) => served.connections.push(socket))
      server.on("request", (request: http.IncomingMessage, response: http.ServerResponse) => {
        const chunks: Array<Buffer> = []
        request.on("data", (chunk: Buffer) => chunks.push(chunk))
        request.on("end", () => {
          served.requests.push(Object.assign(request, { text: Buffer.concat(chunks).toString() }))
          answer(request, response)
        })
      })
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
      return { ...served, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
    }),
    ({ server }) =>
      Effect.promise(async () => {
        server.closeAllConnections()
        await new Promise((resolve) => server.close(resolve))
      })
  ) satisfies Effect.Effect<Served, never, Scope.Scope>

const text = "an answer — naïve 🙂\n".repeat(2_000)

describe("the fetch of providers", () => {
  it.live("answers as the platform's does", () =>
    Effect.scoped(Effect.gen(function*() {
      const statuses = [200, 201, 204, 304, 404, 500]
      const { url } = yield* serve((request, response) => {
        const status = Number(request.url?.slice(1))
        response.writeHead(
          status,
          [
            ["X-Many", "a"],
            ["X-Many", "b"],
            ["Set-Cookie", "a=1"],
            ["Set-Cookie", "b=2"],
            ["Content-Type", "text/plain"],
            ["Date", "today"]
          ].flat()
        )
        response.end(text)
      })
      for (const status of statuses) {
        for (const method of ["GET", "POST", "HEAD"]) {
          const told = yield* Effect.forEach([httpFetch, globalThis.fetch], (fetch) =>
            Effect.promise(async () => {
              const response = await fetch(`${url}/${status}`, { method })
              const { headers, ok, redirected, statusText } = response
              return {
                status: response.status,
                statusText,
                ok,
                redirected,
                url: response.url,
                headers: [...headers].filter(([name]) => name !== "connection" && name !== "keep-alive"),
                cookies: headers.getSetCookie(),
                many: headers.get("x-MANY"),
                none: headers.get("x-none"),
                bodiless: response.body === null,
                text: await response.text(),
                used: response.bodyUsed
              }
            }))
          const [ours, theirs] = told
          // The platform calls a body that is empty unused.
          expect({ ...ours, used: null }, `${method} ${status}`).toEqual({ ...theirs, used: null })
        }
      }
    })))

  it.live("sends what it is told to", () =>
    Effect.scoped(Effect.gen(function*() {
      const { requests, url } = yield* serve((_, response) => response.end("ok"))
      for (const body of ["ä text", new TextEncoder().encode("ä text")]) {
        yield* Effect.promise(() =>
          httpFetch(`${url}/path?query=1`, { method: "post", body, headers: { "X-Team": "a", "user-agent": "me" } })
        )
      }
      const form = new FormData()
      form.set("field", "value")
      yield* Effect.promise(() => httpFetch(new URL(url), { method: "POST", body: form }))
      expect(requests.map(({ method, text, url: path }) => ({ method, path, text }))).toMatchObject([
        { method: "POST", path: "/path?query=1", text: "ä text" },
        { method: "POST", path: "/path?query=1", text: "ä text" },
        { method: "POST", path: "/", text: expect.stringContaining("value") }
      ])
      expect(requests[0]?.headers).toMatchObject({
        "x-team": "a",
        "user-agent": "me",
        accept: "*/*",
        "content-length": "7"
      })
    })))

  it.live("reads what a server or proxy has compressed, piece by piece", () =>
    Effect.scoped(Effect.gen(function*() {
      const packers = {
        gzip: () => zlib.createGzip(),
        deflate: () => zlib.createDeflate(),
        br: () => zlib.createBrotliCompress()
      }
      const finish: Array<() => void> = []
      const { url } = yield* serve((request, response) => {
        const encoding = request.url?.slice(1) as keyof typeof packers
        response.writeHead(200, { "content-encoding": encoding })
        const packer = packers[encoding]()
        packer.pipe(response)
        packer.write("first ")
        packer.flush()
        finish.push(() => packer.end("second"))
      })
      for (const encoding of Object.keys(packers)) {
        const seen = yield* Effect.promise(async () => {
          const reader = (await httpFetch(`${url}/${encoding}`)).body?.getReader()
          const first = Buffer.from((await reader?.read())?.value ?? []).toString()
          finish.shift()?.()
          const second = Buffer.from((await reader?.read())?.value ?? []).toString()
          return [first, second, (await reader?.read())?.done]
        })
        expect(seen, encoding).toEqual(["first ", "second", true])
      }
    })))

  it.live("gives what has arrived together in one read", () =>
    Effect.scoped(Effect.gen(function*() {
      const { url } = yield* serve((_, response) => {
        response.writeHead(200)
        response.flushHeaders()
        response.socket?.cork()
        for (let index = 0; index < 500; index++) response.write("piece ")
        response.end()
        response.socket?.uncork()
      })
      const reads = yield* Effect.promise(async () => {
        const sizes: Array<number> = []
        const body = (await httpFetch(url)).body ?? []
        for await (const chunk of body) sizes.push(chunk.length)
        return sizes
      })
      expect(reads.reduce((sum, size) => sum + size, 0)).toBe(3_000)
      expect(reads.length).toBeLessThan(20)
    })))

  it.live("stops the connection's flow while nobody reads", () =>
    Effect.scoped(Effect.gen(function*() {
      const blocked = Promise.withResolvers<void>()
      const { url } = yield* serve((_, response) => {
        // Until the kernel takes no more: the other side has stopped reading.
        while (response.writableLength < 4_000_000) response.write("x".repeat(64_000))
        const before = response.writableLength
        setTimeout(() => response.writableLength > before - 4_000_000 / 2 ? blocked.resolve() : undefined, 200)
        response.on("drain", () => response.end("end"))
      })
      const total = yield* Effect.promise(async () => {
        const response = await httpFetch(url)
        await blocked.promise
        return (await response.text()).endsWith("end")
      })
      expect(total).toBe(true)
    })))

  it.live("is aborted before and within an answer, and closes the connection", () =>
    Effect.scoped(Effect.gen(function*() {
      const gone: Array<Promise<void>> = []
      const { url } = yield* serve((request, response) => {
        gone.push(new Promise((resolve) => response.once("close", resolve)))
        if (request.url === "/within") response.write("some")
      })
      for (const path of ["before", "within", "cancel"]) {
        const controller = new AbortController()
        const reason = new Error(`stopped ${path}`)
        const outcome = yield* Effect.promise(async () => {
          const asked = httpFetch(`${url}/${path === "cancel" ? "within" : path}`, { signal: controller.signal })
          if (path === "before") {
            while (gone.length === 0) await new Promise((resolve) => setImmediate(resolve))
            controller.abort(reason)
            return asked.catch((error: unknown) => error)
          }
          const reader = (await asked).body?.getReader()
          await reader?.read()
          if (path === "cancel") return reader?.cancel()
          controller.abort(reason)
          return reader?.read().catch((error: unknown) => error)
        })
        expect(outcome).toBe(path === "cancel" ? undefined : reason)
        yield* Effect.promise(() => gone.at(-1) ?? Promise.reject(new Error("no request came")))
      }
      const early = yield* Effect.promise(() =>
        httpFetch(url, { signal: AbortSignal.abort("no") }).catch((error: unknown) => error)
      )
      expect(early).toBe("no")
    })))

  it.live("tells a connection that breaks from an answer that ends", () =>
    Effect.scoped(Effect.gen(function*() {
      const { url } = yield* serve((request, response) => {
        response.writeHead(200, request.url === "/length" ? { "content-length": "100" } : {})
        response.write("some", () => response.destroy())
      })
      for (const path of ["length", "chunked"]) {
        const error = yield* Effect.promise(async () => {
          const response = await httpFetch(`${url}/${path}`)
          return response.text().catch((cause: unknown) => cause)
        })
        expect(error, path).toBeInstanceOf(Error)
      }
    })))

  it.live("has the answer again in a copy, as bytes, as JSON and as a form", () =>
    Effect.scoped(Effect.gen(function*() {
      const { url } = yield* serve((request, response) => {
        response.writeHead(200, {
          "content-type": request.url === "/form" ? "application/x-www-form-urlencoded" : "text/plain"
        })
        response.end(request.url === "/form" ? "a=1" : '{"a":1}')
      })
      const seen = yield* Effect.promise(async () => {
        const first = await httpFetch(url)
        const copy = first.clone()
        const other = first.clone()
        const once = await first.text()
        return [
          once,
          await copy.json(),
          Buffer.from(await other.arrayBuffer()).toString(),
          await first.text().catch((error: unknown) => error instanceof TypeError),
          (await (await httpFetch(`${url}/form`)).formData()).get("a"),
          (await (await httpFetch(url)).blob()).size
        ]
      })
      expect(seen).toEqual(['{"a":1}', { a: 1 }, '{"a":1}', true, "1", 7])
    })))

  it.live("uses the connection again after an answer that ended with [DONE]", () =>
    Effect.scoped(Effect.gen(function*() {
      const { connections, url } = yield* serve((_, response) => {
        response.writeHead(200, { "content-type": "text/event-stream" })
        response.write('data: {"x":1}\n\ndata: [DONE]\n\n')
        // A little later, as over a network.
        setTimeout(() => response.end(), 20)
      })
      const fetch = makeProviderFetch()
      for (let round = 0; round < 3; round++) {
        const body = yield* Effect.promise(async () => (await fetch(url)).text())
        expect(body).toBe('data: {"x":1}\n\ndata: [DONE]\n\n')
        // The answer is given before the server has ended it: a next request that comes at once needs a connection.
        yield* Effect.sleep(60)
      }
      expect(connections).toHaveLength(1)
    })))

  it.live("asks again where the server has closed the kept connection, and tells where a new one breaks", () =>
    Effect.scoped(Effect.gen(function*() {
      const seen = new Map<Socket, number>()
      const { connections, requests, url } = yield* serve((request, response) => {
        const count = (seen.get(request.socket) ?? 0) + 1
        seen.set(request.socket, count)
        if (request.url === "/within") response.write("some", () => request.socket.resetAndDestroy())
        else if (count > 1 || request.url === "/never") request.socket.destroy()
        else response.end("ok")
      })
      for (let round = 0; round < 3; round++) {
        expect(yield* Effect.promise(async () => (await httpFetch(url, { method: "POST", body: "x" })).text())).toBe(
          "ok"
        )
      }
      expect(connections).toHaveLength(3)
      const error = yield* Effect.promise(() => httpFetch(`${url}/never`).catch((cause: unknown) => cause))
      expect(error).toMatchObject({ message: "fetch failed", cause: { code: "ECONNRESET" } })
      // Within an answer nothing is asked again, also over a kept connection.
      const kept = yield* Effect.promise(async () => (await httpFetch(url)).text())
      expect(kept).toBe("ok")
      const before = requests.length
      const broken = yield* Effect.promise(async () => {
        const response = await httpFetch(`${url}/within`)
        return response.text().catch((cause: unknown) => cause)
      })
      expect(broken).toBeInstanceOf(Error)
      yield* Effect.promise(async () => (await httpFetch(url)).text())
      expect(requests.slice(before).map((request) => request.url)).toEqual(["/within", "/"])
    })))
})
