import type { ConversationView, ViewEntry, ViewTool } from "@bezel/core/harness"
import type { JsonValue } from "@bezel/core/json"
import type { Message } from "@bezel/core/model"
import { text, type ToolCallView } from "@bezel/tui"
import { renderBlocks } from "@bezel/tui/testing"
import { describe, expect, it } from "vitest"
import { makeTranscript } from "../../../packages/plugins/src/chat/transcript.ts"
import { toolCard } from "../../../packages/tui/src/card.ts"

const base: ConversationView = {
  conversation: { id: "main", sessionID: "s", parent: null, owner: null },
  entries: [],
  config: { model: null, agent: null, thinking: "off", queue: "one" },
  inbox: [],
  turn: null,
  compaction: null,
  tasks: {},
  plugins: {},
  usage: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, cost: 0, context: 0 }
}

let ids = 0
const entry = (kind: string, model: ReadonlyArray<Message> | null, data: JsonValue = null): ViewEntry => ({
  id: `e${++ids}`,
  kind,
  data,
  model,
  head: false,
  createdAt: 0
})
const user = (words: string) => entry("bezel.user", [{ role: "user", content: [{ type: "text", text: words }] }])
const answer = (words: string, ...calls: ReadonlyArray<string>) =>
  entry("bezel.assistant", [{
    role: "assistant",
    content: [
      { type: "text", text: words },
      ...calls.map((id) => ({ type: "tool-call" as const, id, name: "look", params: { at: id } }))
    ]
  }])
const result = (id: string, words: string, data: { readonly code?: string; readonly failed?: boolean } = {}) =>
  entry(
    "bezel.tool_result",
    [{
      role: "tool",
      content: [{ type: "tool-result", id, name: "look", isFailure: data.failed === true, result: words }]
    }],
    { callID: id, details: null, ...(data.code === undefined ? {} : { code: data.code }) }
  )
const running = (id: string, output: string): ViewTool => ({
  task: id,
  callId: id,
  name: "look",
  args: { at: id },
  status: "running",
  waitingOn: null,
  output,
  progress: null,
  details: null,
  continuedBy: null,
  entry: null
})

const plain = () =>
  makeTranscript(
    {
      toolRenderers: { render: (call, options) => toolCard(call, null, options) },
      entryRenderers: { render: (shown) => shown.kind === "acme.note" ? [text("a note")] : null }
    } as Parameters<typeof makeTranscript>[0]
  )

const show = (view: Partial<ConversationView>, transcript = plain()): string =>
  renderBlocks(transcript.blocks({ ...base, ...view }, { expanded: false }), 40).join("\n").trim()

describe("the transcript", () => {
  it("shows inputs, answers and each call with its result, in order", () => {
    expect(
      show({ entries: [user("hi"), answer("Looking", "a", "b"), result("b", "B"), result("a", "A"), answer("Done")] })
    ).toBe(
      ["› hi", "", "Looking", "", "✓ look at=a", "  A", "✓ look at=b", "  B", "", "Done"].join("\n")
    )
  })

  it("gives each call its own result, also where a provider uses an id again", () => {
    const entries = [
      answer("First", "a"),
      result("a", "one"),
      answer("Second", "a"),
      result("a", "two"),
      answer("Third", "a")
    ]
    const shown = show({
      entries,
      turn: { inputs: [], generation: null, message: null, tools: [running("a", "three")] }
    })
    expect(shown.split("\n").filter((line) => line !== "")).toEqual([
      "First",
      "✓ look at=a",
      "  one",
      "Second",
      "✓ look at=a",
      "  two",
      "Third",
      "● look at=a",
      "  three"
    ])
  })

  it("tells a failed call from an aborted one and from one without a result", () => {
    const shown = show({
      entries: [
        answer("x", "a", "b", "c"),
        result("a", "no such file", { failed: true }),
        result("b", "stopped", { failed: true, code: "aborted" })
      ]
    })
    expect(shown).toContain("✗ look at=a\n  no such file")
    expect(shown).toContain("⊘ look at=b")
    expect(shown).toContain("⊘ look at=c")
  })

  it("shows an answer that streams as it will look when it is an entry", () => {
    const parts = [{ type: "reasoning" as const, text: "Hm" }, { type: "text" as const, text: "Half an *answer*" }]
    const live = show({
      entries: [user("hi")],
      turn: { inputs: [], generation: null, message: { parts }, tools: [] }
    })
    const settled = show({
      entries: [user("hi"), entry("bezel.assistant", [{ role: "assistant", content: parts }])]
    })
    expect(live).toBe(settled)
    expect(live).toContain("┊ Hm\n\nHalf an answer")
  })

  it("shows a call while it is written and the tail of its output while it runs", () => {
    expect(show({
      turn: {
        inputs: [],
        generation: null,
        message: { parts: [{ type: "tool-call", id: "a", name: "look", text: '{"at":"' }] },
        tools: []
      }
    })).toBe('… look {"at":"')
    const output = Array.from({ length: 20 }, (_, index) => `line ${index + 1}`).join("\n")
    expect(show({
      entries: [answer("x", "a")],
      turn: { inputs: [], generation: null, message: null, tools: [running("a", output)] }
    })).toMatch(/● look at=a\n {2}… 14 lines above\n {2}line 15\n[\s\S]*line 20$/)
  })

  it("keeps what an interrupted answer had said, and says why it ended", () => {
    const shown = show({
      entries: [
        entry("bezel.assistant", null, {
          partial: "aborted",
          parts: [{ type: "text", text: "I was just" }, { type: "tool-call", id: "a", name: "look", text: "{" }]
        }),
        entry("bezel.failure", null, { reason: "aborted", error: null, inputs: [] }),
        entry("bezel.failure", null, {
          reason: "failed",
          error: { kind: "auth", message: "The key was refused." },
          inputs: []
        })
      ]
    })
    expect(shown).toBe(["I was just", "", "⊘ look {", "", "⊘ Interrupted.", "", "✗ The key was refused."].join("\n"))
  })

  it("shows an entry of another plugin by its renderer, and one of an unknown kind by its messages", () => {
    expect(
      show({
        entries: [
          entry("acme.note", null),
          entry("acme.other", [{ role: "user", content: [{ type: "text", text: "other" }] }])
        ]
      })
    )
      .toBe("a note\n\n› other")
  })

  it("shows nothing and does not fail on data of whatever shape", () => {
    for (const data of [null, 1, "x", [], { parts: 3 }, { parts: [null, {}, { type: "text" }] }, { error: "x" }]) {
      expect(() =>
        show({
          entries: [
            entry("bezel.assistant", null, data),
            entry("bezel.failure", null, data),
            entry("bezel.usage", null, data)
          ]
        })
      ).not.toThrow()
    }
  })

  it("gives the same blocks for what did not change", () => {
    const transcript = plain()
    const view: ConversationView = { ...base, entries: [user("hi"), answer("x", "a"), result("a", "A")] }
    const [first] = transcript.blocks(view, { expanded: false })
    expect(transcript.blocks({ ...view, inbox: [] }, { expanded: false })[0]).toBe(first)
    const [grown] = transcript.blocks({ ...view, entries: [...view.entries, answer("more")] }, { expanded: false })
    if (first?.kind !== "group" || grown?.kind !== "group") throw new Error("groups expected")
    expect(grown.children.slice(0, 3)).toEqual(first.children)
    expect(grown.children.slice(0, 3).every((child, index) => child === first.children[index])).toBe(true)
  })
})

describe("a tool's card", () => {
  const call: ToolCallView = {
    callID: "a",
    name: "look",
    args: null,
    argsText: '{"broken',
    status: "failed",
    output: "",
    progress: null,
    details: null,
    isError: true
  }

  it("shows arguments that did not parse as they came", () => {
    expect(renderBlocks(toolCard(call, null, { expanded: false }))).toEqual(['✗ look {"broken'])
  })

  it("shows all output when expanded", () => {
    const output = Array.from({ length: 30 }, (_, index) => `${index}`).join("\n")
    expect(renderBlocks(toolCard({ ...call, output }, null, { expanded: true }))).toHaveLength(31)
    expect(renderBlocks(toolCard({ ...call, output }, null, { expanded: false }))).toHaveLength(8)
  })
})
