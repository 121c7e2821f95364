import type { ModelPart } from "@bezel/core/model"
import { Effect } from "effect"
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import { replyEvents } from "../../../packages/core/src/testing/model-server.ts"
import { makeDeltaJoiner } from "../../../packages/plugins/src/providers/sse-deltas.ts"
import { chunk, collect, modelOver, sse, type Wire, wires } from "./support.ts"

const latin1 = (text: string): string => Buffer.from(text).toString("latin1")

/** The pieces of `text` as they would come out, for pieces that end at `cuts`. */
const joined = (text: string, cuts: ReadonlyArray<number> = []): string => {
  const join = makeDeltaJoiner()
  const bytes = latin1(text)
  const at = [0, ...[...cuts].sort((a, b) => a - b).map((cut) => Math.min(cut, bytes.length)), bytes.length]
  const pieces = at.slice(1).map((end, index) => bytes.slice(at[index], end))
  return Buffer.from(pieces.map(join).join(""), "latin1").toString()
}

/** What a model makes of these bytes, deltas of one block in a row taken together. */
const read = async (wire: Wire, pieces: ReadonlyArray<string>): Promise<ReadonlyArray<unknown>> => {
  const fetch = async () =>
    new Response(
      new ReadableStream({
        start: (controller) => {
          for (const piece of pieces) controller.enqueue(Buffer.from(piece, "latin1"))
          controller.close()
        }
      }),
      { headers: { "content-type": "text/event-stream" } }
    )
  const { error, parts } = await Effect.runPromise(Effect.flatMap(modelOver(wire, fetch), (one) => collect(one)))
  const seen: Array<ModelPart> = []
  for (const part of parts) {
    const last = seen.at(-1)
    if ("delta" in part && last !== undefined && "delta" in last && last.type === part.type && last.id === part.id) {
      seen[seen.length - 1] = { ...last, delta: last.delta + part.delta }
    } else seen.push(part)
  }
  return [...seen, error]
}

const pieces = (bytes: string, cuts: ReadonlyArray<number>): ReadonlyArray<string> => {
  const at = [0, ...[...cuts].sort((a, b) => a - b).map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b)]
  return at.map((start, index) => bytes.slice(start, at[index + 1] ?? bytes.length))
}

const count = (text: string): number => text.split("\n\n").length - 1

const deltaEvent = (content: string): string => sse(chunk({ content }))

describe("deltas that arrive together", () => {
  it("are one event with all of their text", () => {
    expect(joined(["Hel", 'lo, "', "wörld\\", "🙂\n", ""].map(deltaEvent).join(""))).toBe(
      deltaEvent('Hello, "wörld\\🙂\n')
    )
  })

  it("of reasoning, of arguments and of the other wire are joined as well", () => {
    const reply = {
      reasoning: ["a", "b", "c"],
      text: ["d", "e"],
      calls: [{ id: "1", name: "read", args: '{"p":"12"}' }]
    }
    for (const [wire, events] of [["openai", 8], ["anthropic", 15]] as const) {
      const text = replyEvents(wire, { ...reply, argumentChunk: 1 }).join("")
      expect(count(text) - count(joined(text)), wire).toBe(2 + 1 + 9)
      expect(count(joined(text)), wire).toBeLessThanOrEqual(events)
    }
  })

  it("with spaces in their JSON, CRLF line ends and empty members beside the text are joined", () => {
    for (
      const event of [
        (text: string) =>
          `data: {"choices": [{"index": 0, "delta": {"content": "${text}"}, "finish_reason": null}]}\r\n\r\n`,
        (text: string) => `data:{"choices":[{"delta":{"role":"assistant","content":"${text}","tool_calls":[]}}]}\n\n`,
        (text: string) =>
          `data: {"choices":[{"delta":{"content":null,"reasoning_content":"${text}"}}],"usage":null}\n\n`
      ]
    ) {
      expect(joined(event("a") + event("b"))).toBe(event("ab"))
    }
  })

  it("halves of a character written as escapes are joined to it", () => {
    const event = (text: string) => `data: {"choices":[{"index":0,"delta":{"content":"${text}"}}]}\n\n`
    expect(joined(event("\\ud83d") + event("\\ude42"))).toBe(event("\\ud83d\\ude42"))
  })

  it("are joined within each piece that was received, and an event that is cut stays as it is", () => {
    const events = ["a", "b", "c", "d", "e"].map(deltaEvent)
    const text = events.join("")
    const length = deltaEvent("a").length
    expect(joined(text, [length * 2 + 10])).toBe(deltaEvent("ab") + events[2] + deltaEvent("de"))
    expect(joined(text, [length * 2])).toBe(deltaEvent("ab") + deltaEvent("cde"))
    // The blank line itself is cut.
    expect(joined(text, [length * 2 - 1])).toBe(deltaEvent("a") + events[1] + deltaEvent("cde"))
  })
})

describe("events that arrive together", () => {
  const stays = (name: string, text: string) =>
    it(`stay as they are where ${name}`, () => {
      expect(joined(text)).toBe(text)
    })
  const pair = (event: (text: string) => string) => event("a") + event("b")
  const choice = (delta: string, more = ""): string => `data: {"choices":[{"index":0,"delta":${delta}}]${more}}\n\n`

  stays(
    "they differ in an id",
    sse({ id: 1, choices: [{ delta: { content: "a" } }] }, { id: 2, choices: [{ delta: { content: "b" } }] })
  )
  stays(
    "they differ in the usage",
    choice('{"content":"a"}', ',"usage":{"n":1}') + choice('{"content":"b"}', ',"usage":{"n":2}')
  )
  stays("one has the reason of the end", sse(chunk({ content: "a" }), chunk({ content: "b" }, "stop")))
  stays("they belong to several blocks", sse({ index: 0, delta: { text: "a" } }, { index: 1, delta: { text: "b" } }))
  stays("they have an event id", pair((text) => `id: 1\n${deltaEvent(text)}`))
  stays("a comment is between them", `${deltaEvent("a")}: ping\n\n${deltaEvent("b")}`)
  stays("the text is no delta by its place", pair((text) => sse({ content: text, index: 0 })))
  stays("the string is an id", pair((text) => sse(chunk({ id: text }))))
  stays("the string is a name", pair((text) => sse(chunk({ tool_calls: [{ index: 0, function: { name: text } }] }))))
  stays(
    "calls have a name",
    pair((text) => sse(chunk({ tool_calls: [{ index: 0, function: { name: "x", arguments: text } }] })))
  )
  stays(
    "calls have an id",
    pair((text) => sse(chunk({ tool_calls: [{ index: 0, id: "x", function: { arguments: text } }] })))
  )
  stays(
    "a second call is beside the first",
    pair((text) =>
      sse(
        chunk({ tool_calls: [{ index: 0, function: { arguments: text } }, { index: 1, function: { arguments: "x" } }] })
      )
    )
  )
  stays("a second text is beside the first", pair((text) => choice(`{"content":"${text}","reasoning":"x"}`)))
  stays("a second text is before the first", pair((text) => choice(`{"reasoning":"x","content":"${text}"}`)))
  stays(
    "a second choice is beside the first",
    pair((text) => sse({ choices: [{ index: 0, delta: { content: text } }, { index: 1, delta: { content: "x" } }] }))
  )
  stays(
    "a list goes with the text",
    pair((text) => sse({ choices: [{ delta: { content: text }, logprobs: { content: [{ token: "x" }] } }] }))
  )
  stays("an escape is not valid", pair((text) => choice(`{"content":"\\x${text}"}`)))
  stays("an escape is not whole", pair((text) => choice(`{"content":"${text}\\u00"}`)))
  stays("a control character is in the text", pair((text) => choice(`{"content":"${text}\t"}`)))
  stays("an event has several lines of data", pair((text) => `data: {"delta":\ndata: {"content":"${text}"}}\n\n`))
  stays("lines end by CR alone", pair((text) => choice(`{"content":"${text}"}`).replaceAll("\n", "\r")))
  stays("it is JSON and no stream", JSON.stringify({ error: { message: "no", delta: { content: "a" } } }))

  it("stay as they are where a broken character would be completed", () => {
    const event = (bytes: string) => choice(`{"content":"${bytes}"}`)
    const text = event("\xe2\x82") + event("\xac")
    expect(makeDeltaJoiner()(text)).toBe(text)
  })
})

describe.each(wires)("a model of the %s wire gives the same with deltas joined", (wire) => {
  const delta = fc.oneof(
    fc.string({ unit: "binary", maxLength: 6 }),
    fc.constantFrom('"', "\\", "\n\n", "data: [DONE]\n\n", '"delta":{', "\ud83d", "\ude42", "é", "", "}]}\n\n")
  )
  const reply = fc.record({
    reasoning: fc.array(delta, { maxLength: 5 }),
    text: fc.array(delta, { maxLength: 12 }),
    calls: fc.array(
      fc.record({
        id: fc.uuid(),
        name: fc.constantFrom("read", "bash"),
        args: fc.dictionary(delta, delta, { maxKeys: 2 })
      }),
      { maxLength: 2 }
    ),
    argumentChunk: fc.integer({ min: 1, max: 4 }),
    finish: fc.constantFrom("stop", "length", null)
  })
  const form = fc.constantFrom("plain", "crlf", "spaced", "escaped")
  const noise = fc.record({
    at: fc.nat(40),
    line: fc.constantFrom(
      ": ping\n\n",
      "\n",
      "id: 7\n",
      "retry: 3\n\n",
      "\r",
      "data: {}\n\n",
      "data: {\n",
      "event: x\n",
      "\ufeff"
    )
  })

  const write = (event: string, how: string): string => {
    if (how === "crlf") return event.replaceAll("\n", "\r\n")
    if (how === "spaced") {
      return event.replace(
        /^data: (\{.*\})$/m,
        (_, json: string) => `data: ${json.replace(/(?<=[\w\]}"]),(?=["{])/g, ", ")}`
      )
    }
    if (how === "escaped") {
      return event.replace(/[^\x00-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)
    }
    return event
  }

  it("however its bytes are cut", async () => {
    let fewer = 0
    await fc.assert(
      fc.asyncProperty(reply, form, fc.array(fc.nat(6_000), { maxLength: 4 }), async (one, how, cuts) => {
        const events = replyEvents(wire, one).map((event) => write(event, how))
        const bytes = latin1(events.join(""))
        const cut = pieces(bytes, cuts)
        const merged = cut.map(makeDeltaJoiner())
        if (merged.join("").length < bytes.length) fewer++
        expect(await read(wire, merged)).toEqual(await read(wire, cut))
      }),
      { numRuns: 80 }
    )
    expect(fewer).toBeGreaterThan(15)
  })

  it("whatever else is in it", async () => {
    await fc.assert(
      fc.asyncProperty(
        reply,
        fc.array(noise, { minLength: 1, maxLength: 4 }),
        fc.array(fc.nat(6_000), { maxLength: 3 }),
        fc.array(fc.tuple(fc.nat(6_000), fc.integer({ min: 0, max: 255 })), { maxLength: 2 }),
        async (one, lines, cuts, damage) => {
          const events = [...replyEvents(wire, one)]
          for (const { at, line } of lines) events.splice(at % (events.length + 1), 0, line)
          const bytes = Buffer.from(events.join(""))
          for (const [at, byte] of damage) bytes[at % bytes.length] = byte
          const cut = pieces(bytes.toString("latin1"), cuts)
          expect(await read(wire, cut.map(makeDeltaJoiner()))).toEqual(await read(wire, cut))
        }
      ),
      { numRuns: 100 }
    )
  })
})
