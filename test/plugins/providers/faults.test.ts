import { describe, expect, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { replyEvents } from "../../../packages/core/src/testing/model-server.ts"
import {
  ask,
  callsOf,
  chunk,
  collect,
  lastOf,
  model,
  modelOver,
  request,
  secretKey,
  server,
  sse,
  textOf,
  wires
} from "./support.ts"

const failing = (status: number, message: string, headers: { readonly [name: string]: string } = {}) => ({
  status,
  json: { type: "error", error: { type: "invalid_request_error", message } },
  headers
})

describe.each(wires)("over the %s wire", (wire) => {
  it.live("a stream that ends after text without a finish is truncated, and what was said is kept", () =>
    Effect.gen(function*() {
      const { error, parts } = yield* ask(wire, { text: ["half ", "an answer"], finish: null })
      expect(textOf(parts)).toBe("half an answer")
      expect(parts.some((part) => part.type === "finish")).toBe(false)
      expect(error).toMatchObject({ kind: "truncated", retryable: true, retryAfterMs: null })
    }))

  it.live("a stream that ends before any content is truncated", () =>
    Effect.gen(function*() {
      for (const body of ["", ": nothing yet\n\n"]) {
        const { error, parts } = yield* ask(wire, { body })
        expect(parts).toEqual([])
        expect(error).toMatchObject({ kind: "truncated", retryable: true })
      }
    }))

  it.live("a stream that ends inside the arguments of a call gives no call", () =>
    Effect.gen(function*() {
      const { error, parts } = yield* ask(wire, { calls: [{ name: "read", args: '{"path":' }], finish: null })
      expect(callsOf(parts)).toEqual([])
      expect(error).toMatchObject({ retryable: true })
      expect(["truncated", "malformed"]).toContain(error?.kind)
    }))

  it.live("a connection that breaks half-way is a fault of the transport, wherever it breaks", () =>
    Effect.gen(function*() {
      const events = replyEvents(wire, { text: ["one", "two"], calls: [{ name: "read", args: { path: "a" } }] })
      const last = Buffer.byteLength(events.slice(0, -2).join(""))
      for (let afterBytes = 1; afterBytes < last; afterBytes += 97) {
        const { error, parts } = yield* ask(wire, { body: events.join(""), stop: { afterBytes, how: "destroy" } })
        expect(error, `cut after ${afterBytes} bytes`).toMatchObject({ kind: "transport", retryable: true })
        expect(parts.some((part) => part.type === "finish")).toBe(false)
      }
    }))

  it.live("a finish that says incomplete is no finish", () =>
    Effect.gen(function*() {
      for (const finish of ["incomplete", "error", "network_error", "cancelled"]) {
        const { error, parts } = yield* ask(wire, { text: "half", finish })
        expect(parts.some((part) => part.type === "finish")).toBe(false)
        expect(error).toMatchObject({ kind: "truncated", retryable: true })
      }
    }))

  it.live("a finish in unknown words is one", () =>
    Effect.gen(function*() {
      const { error, parts } = yield* ask(wire, { text: "whole", finish: "eos" })
      expect(error).toBeNull()
      expect(lastOf(parts)).toMatchObject({ type: "finish", reason: "other" })
    }))

  it.live("an answer cut by the output limit says so", () =>
    Effect.gen(function*() {
      const { error, parts } = yield* ask(wire, { text: "long", finish: "length" })
      expect(error).toBeNull()
      expect(lastOf(parts)).toMatchObject({ type: "finish", reason: "length" })
    }))

  it.live("a finish for tool calls without any call is malformed when nothing was said", () =>
    Effect.gen(function*() {
      expect((yield* ask(wire, { finish: "tool_calls" })).error).toMatchObject({ kind: "malformed", retryable: true })
    }))

  it.live("calls with a plain stop are calls all the same", () =>
    Effect.gen(function*() {
      const { parts } = yield* ask(wire, { calls: [{ name: "read", args: {} }], finish: "stop" })
      expect(lastOf(parts)).toMatchObject({ type: "finish", reason: "tool-calls" })
    }))

  it.live("content that the provider refuses is refused, and repeating is no use", () =>
    Effect.gen(function*() {
      const { error } = yield* ask(wire, { text: "I", finish: "content_filter" })
      expect(error).toMatchObject({ kind: "refused", retryable: false })
    }))

  it.live("an event that is no JSON is malformed", () =>
    Effect.gen(function*() {
      const events = replyEvents(wire, { text: ["one", "two"] })
      const { error } = yield* ask(wire, {
        body: [...events.slice(0, 3), 'data: {"broken\n\n', ...events.slice(3)].join("")
      })
      expect(error).toMatchObject({ kind: "malformed", retryable: true })
    }))

  it.live.each([
    { header: "2", millis: 2_000 },
    { header: "2592000", millis: 2_592_000_000 },
    { header: "0", millis: 0 },
    { header: "1.5", millis: 1_500 },
    { header: "abc", millis: null },
    { header: "abc 5", millis: null },
    { header: "-5", millis: null },
    { header: "1e3", millis: null },
    { header: "NaN", millis: null },
    { header: "9".repeat(400), millis: null },
    { header: "Thu, 01 Jan 1970 00:00:00 GMT", millis: 0 },
    { header: "Sunday, 06-Nov-94 08:49:37 GMT", millis: 0 },
    { header: "Sun Nov  6 08:49:37 1994", millis: 0 },
    { header: "", millis: null }
  ])(
    'too many requests with retry-after "$header" say to wait $millis ms',
    ({ header, millis }) =>
      Effect.gen(function*() {
        const { error } = yield* ask(wire, failing(429, "Slow down", header === "" ? {} : { "retry-after": header }))
        expect(error).toMatchObject({ kind: "rate_limit", retryable: true, retryAfterMs: millis })
      })
  )

  it.live("a retry-after that is a date says how long it is until then", () =>
    Effect.gen(function*() {
      const at = new Date(Date.now() + 90_000).toUTCString()
      const { error } = yield* ask(wire, failing(429, "Slow down", { "retry-after": at }))
      expect(error?.retryAfterMs).toBeGreaterThan(85_000)
      expect(error?.retryAfterMs).toBeLessThanOrEqual(90_000)
    }))

  it.live("a failure whose body never ends is told all the same", () =>
    Effect.gen(function*() {
      const { error } = yield* ask(wire, {
        status: 429,
        text: '{"error":',
        headers: { "retry-after": "2" },
        stop: { afterBytes: 100, how: "hang" }
      })
      expect(error).toMatchObject({ kind: "rate_limit", retryAfterMs: 2_000 })
    }), 10_000)

  it.live("a failure with a huge body is told in one short line", () =>
    Effect.gen(function*() {
      const { error } = yield* ask(wire, failing(500, "x".repeat(10_000_000)))
      expect(error).toMatchObject({ kind: "unavailable", retryable: true })
      expect(error?.message.length).toBeLessThan(500)
      expect(error?.message).not.toContain("\n")
    }))

  it.live.each([
    { status: 400, message: "Something is wrong with field x", kind: "invalid_request", retryable: false },
    {
      status: 400,
      message: "This model's maximum context length is 8192 tokens, however you requested 9000",
      kind: "overflow",
      retryable: false
    },
    { status: 400, message: "prompt is too long: 210000 tokens > 200000 maximum", kind: "overflow", retryable: false },
    { status: 400, message: "the request exceeds the available context size", kind: "overflow", retryable: false },
    { status: 413, message: "Request too large", kind: "overflow", retryable: false },
    { status: 400, message: "Your prompt was rejected by our content policy", kind: "refused", retryable: false },
    { status: 401, message: "No", kind: "auth", retryable: false },
    { status: 403, message: "No", kind: "auth", retryable: false },
    { status: 402, message: "Pay", kind: "auth", retryable: false },
    { status: 404, message: "model not found", kind: "unknown_model", retryable: false },
    { status: 408, message: "Timeout", kind: "transport", retryable: true },
    { status: 409, message: "Conflict", kind: "unavailable", retryable: true },
    { status: 429, message: "You exceeded your current quota", kind: "rate_limit", retryable: false },
    { status: 500, message: "Oops", kind: "unavailable", retryable: true },
    { status: 503, message: "Loading model", kind: "unavailable", retryable: true },
    { status: 529, message: "Overloaded", kind: "unavailable", retryable: true }
  ])('status $status with "$message" is $kind', ({ kind, message, retryable, status }) =>
    Effect.gen(function*() {
      const { error, parts } = yield* ask(wire, failing(status, message))
      expect(parts).toEqual([])
      expect(error).toMatchObject({ kind, retryable })
      expect(error?.message).toContain(message)
    }))

  it.live("a failure without a body, or with one that is no JSON, is told by its status", () =>
    Effect.gen(function*() {
      expect((yield* ask(wire, { status: 502 })).error).toMatchObject({ kind: "unavailable", retryable: true })
      expect((yield* ask(wire, { status: 502, text: "<html>Bad gateway</html>" })).error).toMatchObject({
        kind: "unavailable",
        retryable: true
      })
    }))

  it.live("no message holds the key, a header or what looks like a key", () =>
    Effect.gen(function*() {
      const { error } = yield* ask(
        wire,
        failing(
          401,
          `Incorrect API key provided: ${secretKey}, team-secret-value, sk-proj-12345678, Bearer abcdef, http://me:pass@host/`
        )
      )
      expect(error?.kind).toBe("auth")
      for (const secret of [secretKey, "team-secret-value", "sk-proj", "abcdef", "pass"]) {
        expect(error?.message).not.toContain(secret)
      }
    }))

  it.live("a server that is not there cannot be reached", () =>
    Effect.gen(function*() {
      const { url } = yield* Effect.scoped(server())
      const { error } = yield* collect(yield* model(wire, url))
      expect(error).toMatchObject({ kind: "transport", retryable: true })
      expect(error?.message).toContain("cannot be reached")
    }))

  it.live("a package that fails by itself is named and not asked again, which a fetch that fails is", () =>
    Effect.gen(function*() {
      const failed = (cause?: unknown) => new TypeError("fetch failed", { cause })
      const coded = (code: string) => Object.assign(new TypeError("The argument is wrong"), { code })
      const rows: ReadonlyArray<readonly [thrown: Error, kind: string, retryable: boolean, said: RegExp]> = [
        [
          new TypeError("x is not a function"),
          "unknown_model",
          false,
          /package @ai-sdk\/\S+ failed .* x is not a func/
        ],
        [new ReferenceError("y is not defined"), "unknown_model", false, /package @ai-sdk\/\S+ failed .* y is not def/],
        [coded("ERR_INVALID_ARG_TYPE"), "unknown_model", false, /package @ai-sdk\/\S+ failed .* argument is wrong/],
        [failed(), "transport", true, /connection to Local broke: fetch failed/],
        [failed(coded("ECONNREFUSED")), "transport", true, /Local cannot be reached/],
        [failed(new Error("other side closed")), "transport", true, /connection to Local broke: other side/],
        [new TypeError("terminated"), "transport", true, /connection to Local broke: terminated/],
        [new TypeError("NetworkError when attempting to fetch resource."), "transport", true, /connection to Local/],
        [coded("UND_ERR_SOCKET"), "transport", true, /connection to Local broke/],
        [coded("ERR_INVALID_CHAR"), "auth", false, /key or a header of Local has a character that cannot be sent/],
        [new SyntaxError("Unexpected token"), "malformed", true, /stream that cannot be read: Unexpected token/],
        [new Error("who knows"), "transport", true, /connection to Local broke: who knows/]
      ]
      for (const [thrown, kind, retryable, said] of rows) {
        const { error } = yield* collect(yield* modelOver(wire, () => Promise.reject(thrown)))
        expect(error, String(thrown)).toMatchObject({ kind, retryable, message: expect.stringMatching(said) })
      }
    }))

  it.live("a request with files that is refused is made again without, and if that helps, they are not sent any more", () =>
    Effect.scoped(Effect.gen(function*() {
      const refusal = failing(400, "messages.0.content.1.image.source: Could not process image")
      const { reply, requests, url } = yield* server(refusal, { text: "blind" })
      const one = yield* model(wire, url, { images: true })
      const dataOf = (name: string) => Buffer.from(`content of ${name}`).toString("base64")
      const asked = (...files: ReadonlyArray<string>) =>
        request({
          messages: [{
            role: "user",
            content: files.map((name) => ({
              type: "file" as const,
              mediaType: name.endsWith(".pdf") ? "application/pdf" : "image/png",
              fileName: name,
              data: dataOf(name)
            }))
          }]
        })
      const sentIn = (index: number) => {
        const text = JSON.stringify(requests[index]?.body["messages"])
        return ["bad.png", "bad.pdf", "good.png"].filter((name) => text.includes(dataOf(name)))
      }
      expect(textOf((yield* collect(one, asked("bad.png", "bad.pdf"))).parts)).toBe("blind")
      expect([sentIn(0), sentIn(1)]).toEqual([["bad.png", "bad.pdf"], []])
      const told = JSON.stringify(requests[1]?.body)
      expect(told).toContain(
        'A file \\"bad.png\\" of type image/png is not shown: the provider refused a request with it.'
      )
      expect(told).toContain('A file \\"bad.pdf\\" of type application/pdf is not shown: the provider refused')
      reply({ text: "seen" })
      expect(textOf((yield* collect(one, asked("bad.png", "good.png"))).parts)).toBe("seen")
      expect(sentIn(2)).toEqual(["good.png"])
      // Refused again without: then it was not the files.
      reply(refusal, refusal, { text: "again" })
      expect((yield* collect(one, asked("bad.png", "good.png"))).error).toMatchObject({ kind: "invalid_request" })
      expect(textOf((yield* collect(one, asked("bad.png", "good.png"))).parts)).toBe("again")
      expect([sentIn(3), sentIn(4), sentIn(5)]).toEqual([["good.png"], [], ["good.png"]])
      // Refused for other reasons, and without a file: asked once.
      reply(failing(401, "no image for you"), refusal)
      expect((yield* collect(one, asked("good.png"))).error).toMatchObject({ kind: "auth" })
      expect((yield* collect(one)).error).toMatchObject({ kind: "invalid_request" })
      expect(requests).toHaveLength(8)
    })))

  it.live("an address that cannot be used is told, not tried again", () =>
    Effect.gen(function*() {
      for (const address of ["http://127.0.0.1:99999/v1", "no address"]) {
        const { error } = yield* collect(yield* model(wire, address))
        expect(error, address).toMatchObject({ retryable: false })
      }
    }))

  it.live("a web page instead of a stream points at the address", () =>
    Effect.gen(function*() {
      const { error } = yield* ask(wire, { body: "<html></html>", headers: { "content-type": "text/html" } })
      expect(error).toMatchObject({ kind: "unknown_model", retryable: false })
      expect(error?.message).toContain("baseURL")
    }))

  it.live("a document instead of a stream says what is in it", () =>
    Effect.gen(function*() {
      const { error } = yield* ask(wire, {
        body: JSON.stringify({ error: { message: "no such model" } }),
        headers: { "content-type": "application/json" }
      })
      expect(error).toMatchObject({ kind: "invalid_request", retryable: false })
      expect(error?.message).toContain("no such model")
    }))

  it.live("a redirect is not followed with the key, it is told", () =>
    Effect.scoped(Effect.gen(function*() {
      const other = yield* server({ text: "stolen" })
      const { error } = yield* ask(wire, { status: 307, headers: { location: `${other.url}/elsewhere?key=1` } })
      expect(error).toMatchObject({ kind: "unknown_model", retryable: false })
      expect(error?.message).toContain(`${other.url}/elsewhere`)
      expect(other.requests).toEqual([])
    })))

  it.live("the next request after a failure is made on its own", () =>
    Effect.scoped(Effect.gen(function*() {
      const { url } = yield* server(failing(500, "Oops"), { text: "better" })
      const one = yield* model(wire, url)
      expect((yield* collect(one)).error?.kind).toBe("unavailable")
      expect(textOf((yield* collect(one)).parts)).toBe("better")
    })))
})

describe("an error event inside a stream", () => {
  it.live("of the OpenAI wire is classified by its code or type", () =>
    Effect.gen(function*() {
      const inside = (error: unknown) => ask("openai", { body: sse(chunk({ content: "half" }), { error }) })
      expect((yield* inside({ message: "slow down", type: "rate_limit_error", code: null })).error).toMatchObject({
        kind: "rate_limit",
        retryable: true
      })
      expect((yield* inside({ message: "upstream failed", code: 502 })).error).toMatchObject({
        kind: "unavailable",
        retryable: true
      })
      expect((yield* inside({ message: "too long", code: "context_length_exceeded" })).error).toMatchObject({
        kind: "overflow",
        retryable: false
      })
      expect((yield* inside({ message: "who knows" })).error?.message).toContain("who knows")
    }))

  it.live("of the Anthropic wire is classified, at the beginning and in the middle", () =>
    Effect.gen(function*() {
      const overloaded = { type: "error", error: { type: "overloaded_error", message: "Overloaded" } }
      const events = replyEvents("anthropic", { text: ["half"] })
      expect((yield* ask("anthropic", { body: sse(overloaded) })).error).toMatchObject({
        kind: "unavailable",
        retryable: true
      })
      const { error, parts } = yield* ask("anthropic", { body: events.slice(0, 3).join("") + sse(overloaded) })
      expect(error).toMatchObject({ kind: "unavailable", retryable: true })
      expect(textOf(parts)).toBe("half")
    }))
})

describe("a server that keeps the connection open", () => {
  it.live("after [DONE] ends the answer", () =>
    Effect.gen(function*() {
      const body = replyEvents("openai", { text: "all of it" }).join("")
      const done = Buffer.byteLength(body)
      for (const chunks of ["whole", 1] as const) {
        const { error, parts } = yield* ask("openai", { body, chunks, stop: { afterBytes: done, how: "hang" } })
        expect(error).toBeNull()
        expect(textOf(parts)).toBe("all of it")
      }
    }), 10_000)

  it.live("after message_stop ends the answer", () =>
    Effect.gen(function*() {
      const body = replyEvents("anthropic", { text: "all of it" }).join("")
      const { error, parts } = yield* ask("anthropic", {
        body,
        stop: { afterBytes: Buffer.byteLength(body), how: "hang" }
      })
      expect(error).toBeNull()
      expect(textOf(parts)).toBe("all of it")
    }), 10_000)
})

it.live("one model streams several answers at once", () =>
  Effect.scoped(Effect.gen(function*() {
    const { always, url } = yield* server()
    always((asked) => ({ text: [JSON.stringify(asked.body["messages"])], delayMillis: 5 }))
    const one = yield* model("openai", url)
    const answers = yield* Effect.forEach([1, 2, 3, 4], (n) =>
      Stream.runCollect(
        one.stream(request({ messages: [{ role: "user", content: [{ type: "text", text: `number ${n}` }] }] }))
      ), { concurrency: 4 })
    expect(answers.map(textOf)).toEqual(
      [1, 2, 3, 4].map((n) => JSON.stringify([{ role: "user", content: `number ${n}` }]))
    )
  })))
