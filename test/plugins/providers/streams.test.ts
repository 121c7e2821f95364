import { malformedCall, type ModelPart } from "@bezel/core/model"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber, Stream } from "effect"
import { replyEvents } from "../../../packages/core/src/testing/model-server.ts"
import {
  ask,
  callsOf,
  chunk,
  collect,
  lastOf,
  model,
  reasoningOf,
  request,
  server,
  sse,
  textOf,
  wires
} from "./support.ts"

const text = "日本語 — naïve 👩‍👩‍👧‍👦 🇨🇭 e\u0301\r\n\r\ndata: [DONE]\r\nend\u2028\u0085."

/** One event written in the ways that the format allows: CRLF, comments, several `data:` lines, no space after the colon. */
const odd = (event: string, index: number): string => {
  const name = /^event: (.*)$/m.exec(event)?.[1]
  const data = /^data: (.*)$/m.exec(event)?.[1] ?? ""
  const lines = data.startsWith("{") ? JSON.stringify(JSON.parse(data), null, 1).split("\n") : [data]
  const end = index % 2 === 0 ? "\r\n" : "\n"
  return [
    ...index === 1 ? [": a comment with ümlaut", ""] : [],
    ...name === undefined ? [] : [`event: ${name}`],
    ...lines.map((line) => index % 3 === 0 ? `data:${line}` : `data: ${line}`),
    "",
    ""
  ].join(end)
}

describe.each(wires)("an answer over the %s wire", (wire) => {
  it.live("has its text exact, its calls whole and its usage counted", () =>
    Effect.gen(function*() {
      const { error, parts } = yield* ask(wire, {
        text: [...text],
        calls: [{ id: "a", name: "read", args: { path: "ä.txt", deep: { list: [1, null, "🙂"] } } }, {
          id: "b",
          name: "read",
          args: {}
        }],
        usage: { input: 120, output: 7, cacheRead: 100 },
        argumentChunk: 3
      })
      expect(error).toBeNull()
      expect(textOf(parts)).toBe(text)
      expect(callsOf(parts)).toEqual([
        { type: "tool-call", id: "a", name: "read", params: { path: "ä.txt", deep: { list: [1, null, "🙂"] } } },
        { type: "tool-call", id: "b", name: "read", params: {} }
      ])
      const last = lastOf(parts)
      expect(last).toMatchObject({ type: "finish", reason: "tool-calls" })
      expect(last?.type === "finish" && last.usage).toMatchObject({
        inputTokens: { total: 120, uncached: 20, cacheRead: 100 },
        outputTokens: { total: 7 }
      })
      expect(parts.filter((part) => part.type === "finish")).toHaveLength(1)
    }))

  it.live("gives the same parts wherever its bytes are cut", () =>
    Effect.scoped(Effect.gen(function*() {
      const events = replyEvents(wire, {
        reasoning: "思う",
        text: ["字🙂", '\r\n"\\x'],
        calls: [{ id: "a", name: "read", args: { p: "é🙂" } }]
      })
      const body = Buffer.from(events.map(odd).join(""))
      const { reply, url } = yield* server()
      const one = yield* model(wire, url)
      const whole = yield* (reply({ body }), collect(one))
      expect(whole.error).toBeNull()
      expect(textOf(whole.parts)).toBe('字🙂\r\n"\\x')
      expect(callsOf(whole.parts)).toHaveLength(1)
      const different: Array<number> = []
      yield* Effect.forEach(Array.from({ length: body.length - 1 }, (_, index) => index + 1), (offset) =>
        Effect.gen(function*() {
          reply({ body, chunks: { at: [offset] } })
          const cut = yield* collect(one)
          if (cut.error !== null || JSON.stringify(cut.parts) !== JSON.stringify(whole.parts)) {
            different.push(offset)
          }
        }), { concurrency: 8, discard: true })
      expect(different).toEqual([])
      reply({ body, chunks: 1 })
      expect((yield* collect(one)).parts).toEqual(whole.parts)
    })), 60_000)

  it.live("keeps each of several calls whole, also with many in one chunk", () =>
    Effect.gen(function*() {
      const calls = Array.from(
        { length: 20 },
        (_, index) => ({ id: `id${index}`, name: "read", args: { n: index, text: "x".repeat(index * 7) } })
      )
      const { error, parts } = yield* ask(wire, { calls, chunks: "whole" })
      expect(error).toBeNull()
      expect(callsOf(parts).map((call) => [call.id, call.params])).toEqual(calls.map((call) => [call.id, call.args]))
    }))

  it.live("marks arguments that are no JSON, and runs on", () =>
    Effect.gen(function*() {
      const broken = [
        '{"a":1, b":2}',
        "[1]",
        '"text"',
        "null",
        '{"a":1e999}',
        `{"a":${"[".repeat(5_000)}${"]".repeat(5_000)}}`,
        '{"a":1}{"a":1}',
        "\u0000"
      ]
      const { error, parts } = yield* ask(wire, {
        calls: [...broken.map((args, index) => ({ id: `bad${index}`, name: "read", args })), {
          id: "good",
          name: "read",
          args: { path: "a" }
        }],
        argumentChunk: 5_000
      })
      expect(error).toBeNull()
      const calls = callsOf(parts)
      expect(calls.slice(0, -1).map((call) => [call.params, malformedCall(call)?.text])).toEqual(
        broken.map((args) => [{}, args])
      )
      expect(calls.slice(0, -1).map((call) => malformedCall(call)?.error)).toEqual([
        expect.stringContaining("not valid JSON"),
        expect.stringContaining("not an array"),
        expect.stringContaining("not a string"),
        expect.stringContaining("not null"),
        expect.stringContaining("too large"),
        expect.stringContaining("nested deeper"),
        expect.stringContaining("not valid JSON"),
        expect.stringContaining("not valid JSON")
      ])
      expect(calls.at(-1)).toEqual({ type: "tool-call", id: "good", name: "read", params: { path: "a" } })
      expect(lastOf(parts)).toMatchObject({ type: "finish", reason: "tool-calls" })
    }))

  it.live("says that the output limit cut the arguments of a call", () =>
    Effect.gen(function*() {
      for (const args of ['{"path": "a', ""]) {
        const { error, parts } = yield* ask(wire, {
          text: "I read",
          calls: [{ id: "a", name: "read", args: { path: "b" } }, { id: "b", name: "read", args }],
          finish: "length"
        })
        expect(error).toBeNull()
        const [first, second] = callsOf(parts)
        expect(first).toEqual({ type: "tool-call", id: "a", name: "read", params: { path: "b" } })
        expect(second?.params).toEqual({})
        expect(second === undefined ? null : malformedCall(second)?.error).toBe(
          "The arguments were cut off by the output limit."
        )
        expect(lastOf(parts)).toMatchObject({ type: "finish", reason: "length" })
      }
    }))

  it.live("that is interrupted closes the connection", () =>
    Effect.scoped(Effect.gen(function*() {
      const { requests, url } = yield* server({
        text: ["one", "two", "three"],
        finish: null,
        stop: { afterBytes: 100_000, how: "hang" }
      })
      const one = yield* model(wire, url)
      const seen: Array<ModelPart> = []
      const fiber = yield* Effect.forkChild(
        Stream.runForEach(one.stream(request()), (part) => Effect.sync(() => seen.push(part)))
      )
      while (textOf(seen) !== "onetwothree") yield* Effect.sleep(5)
      yield* Fiber.interrupt(fiber)
      const first = requests[0]
      expect(first === undefined ? null : yield* Effect.promise(() => first.closed)).toBe(true)
    })), 10_000)

  it.live("that nobody has begun is interrupted before its first byte", () =>
    Effect.scoped(Effect.gen(function*() {
      const { requests, url } = yield* server({ text: "x", stop: { afterBytes: 0, how: "hang" } })
      const one = yield* model(wire, url)
      const fiber = yield* Effect.forkChild(collect(one))
      while (requests.length === 0) yield* Effect.sleep(5)
      yield* Fiber.interrupt(fiber)
      const first = requests[0]
      expect(first === undefined ? null : yield* Effect.promise(() => first.closed)).toBe(true)
    })), 10_000)

  it.live("of which only the first parts are taken closes the connection", () =>
    Effect.scoped(Effect.gen(function*() {
      const { requests, url } = yield* server({
        text: Array.from({ length: 50 }, () => "word "),
        stop: { afterBytes: 4_000, how: "hang" }
      })
      const one = yield* model(wire, url)
      const parts = yield* Stream.runCollect(Stream.take(one.stream(request()), 2))
      expect(parts).toHaveLength(2)
      const first = requests[0]
      expect(first === undefined ? null : yield* Effect.promise(() => first.closed)).toBe(true)
    })), 10_000)

  it.live("sends the key and the headers of the settings", () =>
    Effect.scoped(Effect.gen(function*() {
      const { requests, url } = yield* server({ text: "hi" })
      yield* collect(yield* model(wire, url))
      const headers = requests[0]?.headers ?? {}
      expect([headers["authorization"], headers["x-api-key"]]).toContain(
        wire === "openai" ? "Bearer sk-very-secret-0123456789" : "sk-very-secret-0123456789"
      )
      expect(headers["x-team"]).toBe("team-secret-value")
    })))
})

describe("reasoning", () => {
  it.live("keeps a provider's signature byte-exact, and hands it back with the next request", () =>
    Effect.scoped(Effect.gen(function*() {
      const signature = `Eq+/==${'\\"ü'.repeat(20)}`
      const { reply, requests, url } = yield* server({ reasoning: ["let ", "me think"], signature, text: "so" })
      const one = yield* model("anthropic", url, { reasoning: true })
      const { parts } = yield* collect(one, request({ thinking: "high" }))
      expect(reasoningOf(parts)).toBe("let me think")
      const end = parts.find((part) => part.type === "reasoning-end")
      expect(end?.metadata).toEqual({ anthropic: { signature } })
      reply({ text: "again" })
      yield* collect(
        one,
        request({
          thinking: "high",
          messages: [
            { role: "user", content: [{ type: "text", text: "Hello" }] },
            {
              role: "assistant",
              content: [
                { type: "reasoning", text: "let me think", options: { anthropic: { signature } } },
                { type: "text", text: "so" }
              ]
            },
            { role: "user", content: [{ type: "text", text: "And?" }] }
          ]
        })
      )
      expect(requests[1]?.body["messages"]).toMatchObject([
        {},
        {
          role: "assistant",
          content: [{ type: "thinking", thinking: "let me think", signature }, { type: "text", text: "so" }]
        },
        {}
      ])
    })))

  it.live("of an OpenAI-compatible server streams before the text", () =>
    Effect.gen(function*() {
      const { parts } = yield* ask("openai", { reasoning: ["a", "b"], text: ["c"] })
      expect(reasoningOf(parts)).toBe("ab")
      // How many deltas there are depends on what arrives together.
      const types = parts.map((part) => part.type)
      expect(types.filter((type, index) => type !== types[index - 1])).toEqual([
        "reasoning-start",
        "reasoning-delta",
        "reasoning-end",
        "text-start",
        "text-delta",
        "text-end",
        "finish"
      ])
    }))

  it.live("between texts opens blocks with ids of their own", () =>
    Effect.gen(function*() {
      const { parts } = yield* ask("openai", {
        body: sse(
          chunk({ content: "a" }),
          chunk({ reasoning_content: "b" }),
          chunk({ content: "c" }),
          chunk({ reasoning_content: "d" }),
          chunk({}, "stop")
        )
      })
      const ids = parts.flatMap((part) =>
        part.type === "text-start" || part.type === "reasoning-start" ? [part.id] : []
      )
      expect(ids).toHaveLength(4)
      expect(new Set(ids).size).toBe(4)
      expect(textOf(parts)).toBe("ac")
    }))
})

describe("parallel calls of the OpenAI wire", () => {
  const fragment = (fields: unknown): unknown => chunk({ tool_calls: [fields] })
  const end = chunk({}, "tool_calls")

  it.live("are keyed by index when their fragments interleave and only the first has the id", () =>
    Effect.gen(function*() {
      const { error, parts } = yield* ask("openai", {
        body: sse(
          fragment({ index: 0, id: "a", function: { name: "read", arguments: "" } }),
          fragment({ index: 1, id: "b", function: { name: "list", arguments: '{"x"' } }),
          fragment({ index: 0, function: { arguments: '{"p":' } }),
          fragment({ index: 1, function: { arguments: ":2}" } }),
          chunk({
            tool_calls: [{ index: 0, function: { arguments: "1" } }, {
              index: 2,
              id: "c",
              function: { name: "read", arguments: "{}" }
            }]
          }),
          fragment({ index: 0, function: { arguments: "}" } }),
          end
        )
      })
      expect(error).toBeNull()
      expect(callsOf(parts).map((call) => [call.id, call.name, call.params])).toEqual([["a", "read", { p: 1 }], [
        "b",
        "list",
        { x: 2 }
      ], ["c", "read", {}]])
    }))

  it.live("are keyed by id when there is no index", () =>
    Effect.gen(function*() {
      const { error, parts } = yield* ask("openai", {
        body: sse(
          fragment({ id: "a", function: { name: "read", arguments: '{"p":' } }),
          fragment({ id: "b", function: { name: "read", arguments: '{"p":' } }),
          fragment({ id: "a", function: { arguments: "1}" } }),
          fragment({ id: "b", function: { arguments: "2}" } }),
          end
        )
      })
      expect(error).toBeNull()
      expect(callsOf(parts).map((call) => [call.id, call.params])).toEqual([["a", { p: 1 }], ["b", { p: 2 }]])
    }))

  it.live("that all come at index 0 with ids of their own stay apart", () =>
    Effect.gen(function*() {
      const { error, parts } = yield* ask("openai", {
        body: sse(
          fragment({ index: 0, id: "a", function: { name: "read", arguments: '{"p":1}' } }),
          fragment({ index: 0, id: "b", function: { name: "read", arguments: '{"p":2}' } }),
          end
        )
      })
      expect(error).toBeNull()
      expect(callsOf(parts).map((call) => [call.id, call.params])).toEqual([["a", { p: 1 }], ["b", { p: 2 }]])
    }))

  it.live.each([
    { what: "has neither id nor index", odd: { function: { arguments: "1}" } } },
    {
      what: "has the id of one call and the index of another",
      odd: { index: 1, id: "a", function: { arguments: "1}" } }
    },
    {
      what: "has a blank name and so begins nothing",
      odd: { index: 2, id: "c", function: { name: " ", arguments: "{}" } }
    },
    { what: "has no name and begins a third call", odd: { index: 2, id: "c", function: { arguments: "1}" } } }
  ])("fail as malformed when a fragment $what", ({ odd }) =>
    Effect.gen(function*() {
      const { error, parts } = yield* ask("openai", {
        body: sse(
          fragment({ index: 0, id: "a", function: { name: "read", arguments: '{"p":' } }),
          fragment({ index: 1, id: "b", function: { name: "read", arguments: '{"p":' } }),
          fragment(odd),
          fragment({ index: 0, function: { arguments: "1}" } }),
          fragment({ index: 1, function: { arguments: "2}" } }),
          end
        )
      })
      expect(error).toMatchObject({ kind: "malformed", retryable: true })
      expect(parts.some((part) => part.type === "finish")).toBe(false)
    }))
})

describe("two open calls at one index", () => {
  it.live("make a fragment with that index alone malformed, for it could belong to either", () =>
    Effect.gen(function*() {
      const fragment = (fields: unknown): unknown => chunk({ tool_calls: [fields] })
      const { error, parts } = yield* ask("openai", {
        body: sse(
          fragment({ index: 0, id: "a", function: { name: "read", arguments: '{"p":1}' } }),
          fragment({ index: 0, id: "b", function: { name: "read", arguments: '{"p":2}' } }),
          fragment({ index: 0, function: { arguments: " " } }),
          chunk({}, "tool_calls")
        )
      })
      expect(error).toMatchObject({ kind: "malformed", retryable: true })
      expect(callsOf(parts).length).toBeLessThan(3)
      expect(parts.some((part) => part.type === "finish")).toBe(false)
    }))
})

describe("blocks of the Anthropic wire", () => {
  const begin = (index: number, block: unknown): unknown => ({
    type: "content_block_start",
    index,
    content_block: block
  })
  const use = (id: string): unknown => ({ type: "tool_use", id, name: "read", input: {} })
  const json = (index: number, text: string): unknown => ({
    type: "content_block_delta",
    index,
    delta: { type: "input_json_delta", partial_json: text }
  })
  const stop = (index: number): unknown => ({ type: "content_block_stop", index })
  const start = {
    type: "message_start",
    message: {
      id: "m",
      type: "message",
      role: "assistant",
      model: "m",
      content: [],
      stop_reason: null,
      usage: { input_tokens: 1, output_tokens: 1 }
    }
  }
  const end = [{
    type: "message_delta",
    delta: { stop_reason: "tool_use", stop_sequence: null },
    usage: { output_tokens: 2 }
  }, { type: "message_stop" }]

  it.live("are keyed by index when they interleave", () =>
    Effect.gen(function*() {
      const { error, parts } = yield* ask("anthropic", {
        body: sse(
          start,
          begin(0, use("a")),
          begin(1, use("b")),
          json(0, '{"p":'),
          json(1, '{"p":2'),
          json(0, "1}"),
          stop(0),
          json(1, "}"),
          stop(1),
          ...end
        )
      })
      expect(error).toBeNull()
      expect(callsOf(parts).map((call) => [call.id, call.params])).toEqual([["a", { p: 1 }], ["b", { p: 2 }]])
    }))

  it.live("of calls that the output limit left open are calls that were cut", () =>
    Effect.gen(function*() {
      const limit = [{
        type: "message_delta",
        delta: { stop_reason: "max_tokens", stop_sequence: null },
        usage: { output_tokens: 2 }
      }, { type: "message_stop" }]
      const { error, parts } = yield* ask("anthropic", {
        body: sse(start, begin(0, use("a")), json(0, "{}"), stop(0), begin(1, use("b")), json(1, '{"p":'), ...limit)
      })
      expect(error).toBeNull()
      expect(callsOf(parts).map((call) => [call.id, malformedCall(call)])).toEqual([
        ["a", null],
        ["b", { error: "The arguments were cut off by the output limit.", text: '{"p":' }]
      ])
      expect(parts.filter((part) => part.type === "tool-params-end")).toHaveLength(2)
    }))

  it.live("of text may stay open at the end", () =>
    Effect.gen(function*() {
      const { error, parts } = yield* ask("anthropic", {
        body: sse(start, begin(0, { type: "text", text: "" }), {
          type: "content_block_delta",
          index: 0,
          delta: { type: "text_delta", text: "whole" }
        }, {
          type: "message_delta",
          delta: { stop_reason: "end_turn", stop_sequence: null },
          usage: { output_tokens: 2 }
        }, { type: "message_stop" })
      })
      expect(error).toBeNull()
      expect(parts.map((part) => part.type)).toEqual(["text-start", "text-delta", "text-end", "finish"])
    }))

  it.live.each([
    { what: "continues a block that is not open", events: [begin(0, use("a")), json(1, "{}"), stop(0)] },
    { what: "begins a block twice", events: [begin(0, use("a")), begin(0, use("b")), json(0, "{}"), stop(0)] },
    {
      what: "begins a call in the block of a text",
      events: [begin(0, { type: "text", text: "" }), begin(0, use("a")), json(0, "{}"), stop(0)]
    },
    { what: "gives two calls the same id", events: [begin(0, use("a")), stop(0), begin(1, use("a")), stop(1)] },
    { what: "never ends the block of a call", events: [begin(0, use("a")), json(0, "{}")] },
    { what: "puts arguments into a text", events: [begin(0, { type: "text", text: "" }), json(0, "{}"), stop(0)] }
  ])("fail as malformed when the stream $what", ({ events }) =>
    Effect.gen(function*() {
      const { error } = yield* ask("anthropic", { body: sse(start, ...events, ...end) })
      expect(error).toMatchObject({ kind: "malformed", retryable: true })
    }))
})
