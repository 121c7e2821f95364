import type { FilePart, Message } from "@bezel/core/model"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { toPrompt } from "../../../packages/plugins/src/providers/ai-sdk-prompt.ts"
import { collect, model, request, server, tool, wires } from "./support.ts"

/** What a provider is sent for a conversation. */
const sent = (
  wire: (typeof wires)[number],
  messages: ReadonlyArray<Message>,
  change: Parameters<typeof request>[0] = {},
  info: Parameters<typeof model>[2] = {}
) =>
  Effect.scoped(Effect.gen(function*() {
    const { requests, url } = yield* server({ text: "ok" })
    const { error } = yield* collect(yield* model(wire, url, info), request({ messages, ...change }))
    expect(error).toBeNull()
    return requests[0]?.body ?? {}
  }))

const user = (text: string): Message => ({ role: "user", content: [{ type: "text", text }] })
const call = (id: string, params = {}): Message => ({
  role: "assistant",
  content: [{ type: "tool-call", id, name: "read", params }]
})
const result = (id: string, text: string, change: object = {}): Message => ({
  role: "tool",
  content: [{ type: "tool-result", id, name: "read", isFailure: false, result: text, ...change }]
})
const image = { type: "file", mediaType: "image/png", data: "iVBORw0KGgo=" } as const

describe.each(wires)("a request over the %s wire", (wire) => {
  it.live("leaves out what has no content", () =>
    Effect.gen(function*() {
      const body = yield* sent(wire, [
        { role: "system", content: "" },
        user("first"),
        { role: "assistant", content: [] },
        { role: "assistant", content: [{ type: "text", text: "" }] },
        { role: "assistant", content: [{ type: "reasoning", text: "cut before its answer" }] },
        { role: "user", content: [{ type: "text", text: "" }] },
        user("second")
      ])
      expect(JSON.stringify(body)).not.toContain("cut before")
      expect(JSON.stringify(body["messages"])).not.toContain('""')
      expect(body["messages"]).toHaveLength(wire === "openai" ? 2 : 1)
    }))

  it.live("says in words that a tool gave nothing", () =>
    Effect.gen(function*() {
      const body = JSON.stringify(
        yield* sent(wire, [user("go"), call("a"), result("a", ""), call("b"), result("b", "", { isFailure: true })])
      )
      expect(body).toContain("(no output)")
      expect(body).toContain("(failed without output)")
    }))

  it.live("pairs each call with its result", () =>
    Effect.gen(function*() {
      const body = yield* sent(wire, [
        user("go"),
        {
          role: "assistant",
          content: [{ type: "text", text: "I look." }, { type: "tool-call", id: "a", name: "read", params: { p: 1 } }, {
            type: "tool-call",
            id: "b",
            name: "read",
            params: {}
          }]
        },
        {
          role: "tool",
          content: [{ type: "tool-result", id: "a", name: "read", isFailure: false, result: "A" }, {
            type: "tool-result",
            id: "b",
            name: "read",
            isFailure: true,
            result: { code: 7 }
          }]
        }
      ])
      if (wire === "openai") {
        expect(body["messages"]).toMatchObject([
          {},
          {
            role: "assistant",
            content: "I look.",
            tool_calls: [{ id: "a", function: { name: "read", arguments: '{"p":1}' } }, {
              id: "b",
              function: { arguments: "{}" }
            }]
          },
          { role: "tool", tool_call_id: "a", content: "A" },
          { role: "tool", tool_call_id: "b", content: '{"code":7}' }
        ])
      } else {
        expect(body["messages"]).toMatchObject([
          {},
          {
            role: "assistant",
            content: [{ type: "text" }, { type: "tool_use", id: "a", input: { p: 1 } }, {
              type: "tool_use",
              id: "b",
              input: {}
            }]
          },
          {
            role: "user",
            content: [{ type: "tool_result", tool_use_id: "a", content: "A" }, {
              type: "tool_result",
              tool_use_id: "b",
              content: '{"code":7}',
              is_error: true
            }]
          }
        ])
      }
    }))

  it.live("shows an image of a tool's result to a model that reads images, and describes it to one that does not", () =>
    Effect.gen(function*() {
      const messages = [
        user("go"),
        call("a"),
        result("a", "an image", { modelOutput: [{ type: "text", text: "see" }, image] }),
        call("b"),
        result("b", "B")
      ]
      const seeing = JSON.stringify(yield* sent(wire, messages, {}, { images: true }))
      expect(seeing).toContain("iVBORw0KGgo=")
      expect(seeing).toContain("see")
      const blind = JSON.stringify(yield* sent(wire, messages))
      expect(blind).not.toContain("iVBORw0KGgo=")
      expect(blind).toContain("does not read images")
    }))

  it.live("shows images of the user, and describes other files that it cannot send", () =>
    Effect.gen(function*() {
      const body = JSON.stringify(
        yield* sent(
          wire,
          [{
            role: "user",
            content: [image, { type: "file", mediaType: "application/zip", fileName: "a.zip", data: "UEsDBA==" }]
          }],
          {},
          { images: true }
        )
      )
      expect(body).toContain("iVBORw0KGgo=")
      expect(body).not.toContain("UEsDBA==")
      expect(body).toContain("application/zip")
    }))

  it.live("is well-formed Unicode, whatever a tool read", () =>
    Effect.gen(function*() {
      const body = JSON.stringify(yield* sent(wire, [user("a\ud800b"), call("a"), result("a", "c\udfffd")]))
      expect(body).toContain("a\ufffdb")
      expect(body).toContain("c\ufffdd")
    }))

  it.live("declares the tools, and none where there are none", () =>
    Effect.gen(function*() {
      expect((yield* sent(wire, [user("x")], { tools: [tool("one"), tool("two")] }))["tools"]).toHaveLength(2)
      expect((yield* sent(wire, [user("x")], { tools: [] }))["tools"]).toBeUndefined()
    }))

  it.live("bounds the answer as asked, else by what is known of the model", () =>
    Effect.gen(function*() {
      expect((yield* sent(wire, [user("x")], { maxOutput: 77 }, { maxOutput: 500 }))["max_tokens"]).toBe(77)
      expect((yield* sent(wire, [user("x")], {}, { maxOutput: 500 }))["max_tokens"]).toBe(500)
    }))
})

it.live("an image that Anthropic would refuse a whole conversation for is described, and others are sent", () =>
  Effect.gen(function*() {
    const png = (width: number, length = 33): FilePart => {
      const bytes = Buffer.alloc(length)
      bytes.write("\u0089PNG\r\n\u001a\n\0\0\0\rIHDR", "latin1")
      bytes.writeUInt32BE(width, 16)
      bytes.writeUInt32BE(10, 20)
      return { type: "file", mediaType: "image/png", fileName: `${width}.png`, data: bytes.toString("base64") }
    }
    const shown = (wire: "openai" | "anthropic", part: FilePart) =>
      Effect.map(
        sent(wire, [{ role: "user", content: [part] }], {}, { images: true }),
        (body) => JSON.stringify(body["messages"])
      )
    const large = 4 * 1024 * 1024
    expect(yield* shown("anthropic", png(8_000))).toContain(png(8_000).data)
    expect(yield* shown("anthropic", png(8_001))).toContain(
      'A file \\"8001.png\\" of type image/png is not shown: it has 8001×10 pixels, and 8,000 a side are the most.'
    )
    expect(yield* shown("anthropic", png(10, large))).toMatch(
      /10\.png\\" of type image\/png is not shown: it has more than 5 MiB as Base64/
    )
    expect(yield* shown("openai", png(8_001))).toContain(png(8_001).data)
  }))

it("a prompt has none of our own data, and the provider's as it was", () => {
  const prompt = toPrompt([
    {
      role: "user",
      content: [{ type: "text", text: "hi", options: { bezel: { private: true } } }],
      options: { bezel: { private: true }, google: { signature: "x" } }
    }
  ], { images: false, filesInResults: false })
  expect(prompt).toEqual([{
    role: "user",
    content: [{ type: "text", text: "hi" }],
    providerOptions: { google: { signature: "x" } }
  }])
})

it.live("images of results stand behind all results of an answer where results hold text only", () =>
  Effect.gen(function*() {
    const body = yield* sent(
      "openai",
      [
        user("go"),
        {
          role: "assistant",
          content: [{ type: "tool-call", id: "a", name: "read", params: {} }, {
            type: "tool-call",
            id: "b",
            name: "read",
            params: {}
          }]
        },
        result("a", "an image", { modelOutput: [image] }),
        result("b", "B"),
        user("next")
      ],
      {},
      { images: true }
    )
    expect(body["messages"]).toMatchObject([
      { role: "user" },
      { role: "assistant" },
      { role: "tool", tool_call_id: "a", content: "(a file, shown below)" },
      { role: "tool", tool_call_id: "b", content: "B" },
      { role: "user", content: [{ type: "text", text: "From the result of read (a):" }, { type: "image_url" }] },
      { role: "user", content: "next" }
    ])
  }))

describe("thinking", () => {
  it.live("is asked of a model that can, and never of one that cannot", () =>
    Effect.gen(function*() {
      const openai = (thinking: "off" | "high", reasoning: boolean) =>
        sent("openai", [user("x")], { thinking }, { reasoning })
      expect((yield* openai("high", true))["reasoning_effort"]).toBe("high")
      expect((yield* openai("high", false))["reasoning_effort"]).toBeUndefined()
      expect((yield* openai("off", true))["reasoning_effort"]).toBeUndefined()
      const anthropic = (thinking: "off" | "low", reasoning: boolean) =>
        sent("anthropic", [user("x")], { thinking }, { reasoning, model: "claude-sonnet-4-5" })
      expect((yield* anthropic("low", true))["thinking"]).toMatchObject({ type: "enabled" })
      expect((yield* anthropic("off", true))["thinking"]).toMatchObject({ type: "disabled" })
      expect((yield* anthropic("low", false))["thinking"]).toBeUndefined()
    }))
})

it.live("an Anthropic request marks what its next one will share, after the system text and at the end", () =>
  Effect.gen(function*() {
    const body = yield* sent("anthropic", [{ role: "system", content: "You are." }, user("a"), {
      role: "assistant",
      content: [{ type: "text", text: "b" }]
    }, user("c")])
    expect(body["system"]).toMatchObject([{ text: "You are.", cache_control: { type: "ephemeral" } }])
    const marked = JSON.stringify(body["messages"]).split("cache_control").length - 1
    expect(marked).toBe(1)
    expect(body["messages"]).toMatchObject([{}, {}, { content: [{ text: "c", cache_control: { type: "ephemeral" } }] }])
  }))
