/** Who may call: what is refused before anything of the API is reached. */
import { wait } from "@bezel/core/testing"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { request } from "node:http"
import { connect } from "node:net"
import { startTestServer, tokens } from "./fixture.ts"

interface Raw {
  readonly status: number
  readonly headers: Record<string, string | ReadonlyArray<string> | undefined>
  readonly body: string
}

/** A request whose headers are exactly these. */
const raw = (url: string, method: string, path: string, headers: Record<string, string>, body = ""): Promise<Raw> =>
  new Promise((resolve, reject) => {
    const { hostname, port } = new URL(url)
    const sent = request({ hostname, port, method, path, headers, setHost: false }, (response) => {
      let text = ""
      response.setEncoding("utf8").on("data", (chunk: string) => {
        text += chunk
      }).on("end", () => resolve({ status: response.statusCode ?? 0, headers: response.headers, body: text }))
    })
    sent.on("error", reject)
    sent.on("upgrade", (response, socket) => {
      socket.destroy()
      resolve({ status: response.statusCode ?? 0, headers: response.headers, body: "" })
    })
    sent.end(body)
  })

const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
const codeOf = ({ body, status }: Raw) => [status, JSON.parse(body).error?.code]

/** What everything that reaches the port is asked for. */
const doors: ReadonlyArray<readonly [string, string]> = [
  ["GET", "/session"],
  ["POST", "/session"],
  ["GET", "/event"],
  ["GET", "/openapi.json"],
  ["GET", "/docs"],
  ["GET", "/health"],
  ["GET", "/nowhere"]
]

const upgrade = {
  connection: "Upgrade",
  upgrade: "websocket",
  "sec-websocket-version": "13",
  "sec-websocket-key": "AAAAAAAAAAAAAAAAAAAAAA=="
}

describe("the guard", () => {
  it.live("refuses pages of foreign origins on every door: preflight, request and WebSocket", () =>
    Effect.scoped(Effect.gen(function*() {
      const { url } = yield* startTestServer([], { onUpgrade: (_, socket) => socket.end() })
      const host = new URL(url).host
      yield* Effect.promise(async () => {
        for (const origin of ["https://evil.example", "null", `${url}.evil.example`]) {
          for (const [method, path] of doors) {
            const answer = await raw(url, method, path, { host, origin, ...bearer(tokens.admin) })
            expect([method, path, ...codeOf(answer)]).toEqual([method, path, 403, "forbidden"])
            expect(answer.headers["access-control-allow-origin"]).toBeUndefined()
          }
          const preflight = await raw(url, "OPTIONS", "/session", {
            host,
            origin,
            "access-control-request-method": "POST"
          })
          expect([preflight.status, preflight.headers["access-control-allow-origin"]]).toEqual([403, undefined])
          const socket = await raw(url, "GET", "/rpc?session=x", { host, origin, ...upgrade, ...bearer(tokens.admin) })
          expect(codeOf(socket)).toEqual([403, "forbidden"])
        }
      })
    })))

  it.live("admits an origin that is named exactly, and says so to its browser", () =>
    Effect.scoped(Effect.gen(function*() {
      const { url } = yield* startTestServer([], { allowedOrigins: ["https://app.example"] })
      const host = new URL(url).host
      yield* Effect.promise(async () => {
        const origin = "https://app.example"
        const preflight = await raw(url, "OPTIONS", "/session", {
          host,
          origin,
          "access-control-request-method": "POST"
        })
        expect(preflight).toMatchObject({
          status: 204,
          headers: {
            "access-control-allow-origin": origin,
            "access-control-allow-headers": expect.stringContaining("authorization")
          }
        })
        const answer = await raw(url, "GET", "/session", { host, origin, ...bearer(tokens.read) })
        expect(answer).toMatchObject({
          status: 200,
          headers: { "access-control-allow-origin": origin, vary: "Origin" }
        })
        // An allowed origin is no token.
        expect(codeOf(await raw(url, "GET", "/session", { host, origin }))).toEqual([401, "unauthorized"])
        for (const other of ["https://app.example.evil.example", "http://app.example", "https://APP.example"]) {
          expect(codeOf(await raw(url, "GET", "/session", { host, origin: other, ...bearer(tokens.read) }))).toEqual([
            403,
            "forbidden"
          ])
        }
      })
    })))

  it.live("refuses names that were pointed at this machine, with and without a token", () =>
    Effect.scoped(Effect.gen(function*() {
      const { url } = yield* startTestServer([], { allowedHosts: ["bezel.example"] })
      const { port } = new URL(url)
      yield* Effect.promise(async () => {
        for (
          const host of [
            "evil.example",
            `evil.example:${port}`,
            "127.0.0.1.evil.example",
            "localhost@evil.example",
            "",
            "0.0.0.0"
          ]
        ) {
          for (const [method, path] of doors) {
            const answer = await raw(url, method, path, { host, ...bearer(tokens.admin) })
            expect([host, path, ...codeOf(answer)]).toEqual([host, path, 403, "forbidden"])
          }
        }
        expect(codeOf(await raw(url, "GET", "/session", bearer(tokens.admin)))).toEqual([403, "forbidden"])
        for (
          const host of [
            `127.0.0.1:${port}`,
            "localhost",
            `LOCALHOST:${port}`,
            "[::1]:1",
            "bezel.example",
            "Bezel.Example:80"
          ]
        ) {
          expect([host, (await raw(url, "GET", "/session", { host, ...bearer(tokens.admin) })).status]).toEqual([
            host,
            200
          ])
        }
      })
    })))

  it.live("takes a token on loopback too, and only a whole one", () =>
    Effect.scoped(Effect.gen(function*() {
      const { url } = yield* startTestServer()
      const host = new URL(url).host
      const given = [
        {},
        bearer(""),
        bearer(tokens.admin.slice(0, -1)),
        bearer(`${tokens.admin}x`),
        { authorization: `Basic ${Buffer.from(`x:${tokens.admin}`).toString("base64")}` },
        { authorization: tokens.admin },
        { cookie: `token=${tokens.admin}` }
      ]
      yield* Effect.promise(async () => {
        for (const headers of given) {
          const answer = await raw(url, "GET", "/session", { host, ...headers })
          expect([JSON.stringify(headers), ...codeOf(answer)]).toEqual([JSON.stringify(headers), 401, "unauthorized"])
          expect(answer.headers["www-authenticate"]).toBe("Bearer")
        }
        expect(codeOf(await raw(url, "GET", `/session?token=${tokens.admin}`, { host }))).toEqual([401, "unauthorized"])
        expect((await raw(url, "GET", "/session", { host, authorization: `bearer  ${tokens.admin} ` })).status).toBe(
          200
        )
      })
    })))

  it.live("tells those without a token nothing of what there is", () =>
    Effect.scoped(Effect.gen(function*() {
      const { call } = yield* startTestServer()
      yield* Effect.promise(async () => {
        const { json: { id } } = await call("POST", "/session", { body: {} })
        const answers = await Promise.all(
          [`/session/${id}`, "/session/ses_none", "/nowhere", "/%zz"].map((path) => call("GET", path, { token: null }))
        )
        expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).toBe(1)
      })
    })))

  it.live("holds up those who try one-time codes as those who try tokens, and never who has one", () =>
    Effect.scoped(Effect.gen(function*() {
      const { call, logs } = yield* startTestServer([], { limits: { failuresPerMinute: 5 } })
      const login = (code: string) => call("POST", "/login", { token: null, body: { code } })
      yield* Effect.promise(async () => {
        const tried: Array<number> = []
        for (let count = 0; count < 4; count++) tried.push((await login(`guess-${count}-canary`)).status)
        // They are counted together.
        for (let count = 0; count < 2; count++) tried.push((await call("GET", "/session", { token: "guess" })).status)
        for (let count = 0; count < 2; count++) tried.push((await login(`guess-${count}-canary`)).status)
        expect(tried).toEqual([401, 401, 401, 401, 401, 429, 429, 429])
        const refused = await login("guess")
        expect(refused.json.error.code).toBe("overloaded")
        expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0)
        expect((await login("a-code")).json).toEqual({ token: tokens.read, scope: "read" })
        expect(logs.join("\n")).toContain("The code is not valid")
        expect(logs.join("\n")).not.toContain("canary")
      })
    })))

  it.live("holds up those who try tokens, and never those who have one; the log names no token", () =>
    Effect.scoped(Effect.gen(function*() {
      const { call, logs } = yield* startTestServer([], { limits: { failuresPerMinute: 5 } })
      yield* Effect.promise(async () => {
        const tried: Array<number> = []
        for (let count = 0; count < 8; count++) {
          tried.push((await call("GET", "/session", { token: `guess-${count}-canary` })).status)
        }
        expect(tried).toEqual([401, 401, 401, 401, 401, 429, 429, 429])
        const refused = await call("GET", "/session", { token: "guess-canary" })
        expect(refused.json.error.code).toBe("overloaded")
        expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0)
        expect((await call("GET", "/session")).status).toBe(200)
        expect((await call("GET", "/health", { token: null })).status).toBe(200)
      })
      expect(logs.length).toBe(6)
      expect(logs.join("\n")).toContain("127.0.0.1")
      expect(logs.join("\n")).not.toContain("canary")
    })))

  it.live("guards the WebSocket as it guards requests, and takes a token that may do everything", () =>
    Effect.scoped(Effect.gen(function*() {
      const taken: Array<string> = []
      const { url } = yield* startTestServer([], {
        onUpgrade: (_, socket, __, caller) => {
          taken.push(caller.name)
          socket.end("HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\r\n")
        }
      })
      const host = new URL(url).host
      const open = (headers: Record<string, string>, path = "/rpc?session=x") =>
        raw(url, "GET", path, { host, ...upgrade, ...headers })
      yield* Effect.promise(async () => {
        expect(codeOf(await open({}))).toEqual([401, "unauthorized"])
        expect(codeOf(await open(bearer("guess")))).toEqual([401, "unauthorized"])
        expect(codeOf(await open({ "sec-websocket-protocol": "bezel.token.guess" }))).toEqual([401, "unauthorized"])
        expect(codeOf(await open(bearer(tokens.read)))).toEqual([403, "forbidden"])
        expect(codeOf(await open(bearer(tokens.prompt)))).toEqual([403, "forbidden"])
        expect(codeOf(await open({ ...bearer(tokens.admin), host: "evil.example" }))).toEqual([403, "forbidden"])
        expect(codeOf(await open(bearer(tokens.admin), "/session"))).toEqual([404, "not_found"])
        expect(taken).toEqual([])
        expect((await open(bearer(tokens.admin))).status).toBe(101)
        // Browsers can set no header here.
        expect((await open({ "sec-websocket-protocol": `bezel, bezel.token.${tokens.admin}` })).status).toBe(101)
        expect(taken).toEqual(["admin", "admin"])
      })
    })))
})

describe("limits", () => {
  const start = startTestServer([], {
    limits: { bodyBytes: 1_000, headerBytes: 4_096, headersMillis: 300, requests: 2 }
  })

  it.live("refuses bodies that are too large, announced or not", () =>
    Effect.scoped(Effect.gen(function*() {
      const { call, url } = yield* start
      const host = new URL(url).host
      yield* Effect.promise(async () => {
        const big = JSON.stringify({ title: "x".repeat(2_000) })
        expect((await call("POST", "/session", { raw: big })).json.error.code).toBe("too_large")
        const chunked = await raw(url, "POST", "/session", {
          host,
          ...bearer(tokens.admin),
          "transfer-encoding": "chunked"
        }, big)
        expect(codeOf(chunked)).toEqual([413, "too_large"])
        // Nobody reads what nobody may send.
        expect(codeOf(await raw(url, "POST", "/session", { host, "content-length": "999999999" }))).toEqual([
          401,
          "unauthorized"
        ])
        expect((await call("GET", "/session")).status).toBe(200)
      })
    })))

  it.live("refuses documents that are nested beyond reason, and takes deep ones within it", () =>
    Effect.scoped(Effect.gen(function*() {
      const { call } = yield* startTestServer()
      yield* Effect.promise(async () => {
        const nested = (depth: number) => `{"session":${"[".repeat(depth)}${"]".repeat(depth)}}`
        expect((await call("POST", "/session/import", { raw: nested(100_000) })).json.error.code).toBe(
          "invalid_request"
        )
        expect((await call("POST", "/session/import", { raw: nested(150) })).json.error.code).toBe("invalid_arguments")
        expect(
          (await call("POST", "/session/import", { raw: `{"session":"${"[".repeat(1_000)}\\""}` })).json.error.code
        ).toBe("invalid_arguments")
      })
    })))

  it.live("answers what is no HTTP, headers without end and headers that never end in the one shape", () =>
    Effect.scoped(Effect.gen(function*() {
      const { url } = yield* start
      const { hostname, port } = new URL(url)
      const send = (text: string) =>
        new Promise<string>((resolve) => {
          let answer = ""
          const socket = connect(Number(port), hostname, () => socket.write(text))
          socket.on("data", (data) => {
            answer += data.toString()
          }).on("error", () => {}).on("close", () => resolve(answer))
        })
      yield* Effect.promise(async () => {
        expect(await send("\x16\x03\x01 nonsense\r\n\r\n")).toMatch(/^HTTP\/1.1 400 .*"invalid_request"/s)
        expect(await send(`GET / HTTP/1.1\r\nx: ${"y".repeat(8_000)}\r\n\r\n`)).toMatch(/^HTTP\/1.1 431 .*"too_large"/s)
        expect(await send("GET / HTTP/1.1\r\nHost: localhost\r\n")).toMatch(/^HTTP\/1.1 408 .*"timeout"/s)
      })
    })))

  it.live("works on so many requests at a time and says so to the next", () =>
    Effect.scoped(Effect.gen(function*() {
      const { call } = yield* startTestServer([[wait("1 hour")]], { limits: { requests: 2 } })
      yield* Effect.promise(async () => {
        const { json: { id } } = await call("POST", "/session", { body: {} })
        await call("POST", `/session/${id}/prompt`, { body: { text: "Think" } })
        const waits = [1, 2, 3].map(() => call("POST", `/session/${id}/wait?timeout=4`))
        const statuses = (await Promise.all(waits)).map(({ status }) => status)
        expect(statuses.toSorted()).toEqual([200, 200, 429])
      })
    })))
})
