import { deriveContext } from "@bezel/core/harness"
import type { Message } from "@bezel/core/model"
import type { EntryRecord } from "@bezel/core/storage"
import { describe, expect, it } from "@effect/vitest"

let ordinal = 0
const entry = (model: ReadonlyArray<Message> | null, more: Partial<EntryRecord> = {}): EntryRecord => {
  ordinal++
  return {
    id: `e${ordinal}`,
    ordinal,
    conversation: "c1",
    kind: "test",
    data: null,
    model,
    head: null,
    edits: null,
    createdAt: 0,
    ...more
  }
}
const said = (text: string): Message => ({ role: "user", content: [{ type: "text", text }] })
const calls = (...ids: ReadonlyArray<string>): Message => ({
  role: "assistant",
  content: ids.map((id) => ({ type: "tool-call" as const, id, name: "t", params: {} }))
})
const result = (id: string, text = id): Message => ({
  role: "tool",
  content: [{ type: "tool-result", id, name: "t", isFailure: false, result: text }]
})
const resultsOf = (message: Message | undefined) =>
  message?.role === "tool" ? message.content.map((part) => [part.id, part.isFailure]) : []

describe("deriveContext", () => {
  it("puts results in call order, whatever order they landed in", () => {
    const context = deriveContext([
      entry([said("go")]),
      entry([calls("a", "b")]),
      entry([result("b")]),
      entry([result("a")])
    ])
    expect(context.length).toBe(3)
    expect(resultsOf(context[2])).toEqual([["a", false], ["b", false]])
  })

  it("gives a call whose result was cut off a synthetic error result", () => {
    const context = deriveContext([entry([calls("a", "b")]), entry([result("a")])])
    expect(resultsOf(context[1])).toEqual([["a", false], ["b", true]])
  })

  it("leaves out results without a call and messages without content", () => {
    const context = deriveContext([
      entry([result("ghost")]),
      entry([{ role: "assistant", content: [] }]),
      entry([said("x")])
    ])
    expect(context).toEqual([said("x")])
  })

  it("keeps results of a provider that repeats its call ids apart", () => {
    const context = deriveContext([
      entry([calls("call_0")]),
      entry([result("call_0", "first")]),
      entry([calls("call_0")]),
      entry([result("call_0", "second")])
    ])
    expect(JSON.stringify(context[1])).toContain("first")
    expect(JSON.stringify(context[3])).toContain("second")
  })

  it("moves what was said between a call and its result behind the result", () => {
    const context = deriveContext([entry([calls("a")]), entry([said("between")]), entry([result("a")])])
    expect(context.map((message) => message.role)).toEqual(["assistant", "tool", "user"])
  })

  it("starts at the newest head, followed by what the head keeps", () => {
    const kept = entry([said("kept")])
    const before = entry([said("old")], { ordinal: kept.ordinal - 0.5, id: "old" })
    const head = entry([said("summary")], { head: { after: "old" } })
    const context = deriveContext([before, kept, head, entry([said("new")])])
    expect(context).toEqual([said("summary"), said("kept"), said("new")])
  })

  it("applies edits: replaced or left out", () => {
    const one = entry([said("one")])
    const two = entry([said("two")])
    const context = deriveContext([
      one,
      two,
      entry(null, { edits: [{ entry: one.id, model: null }, { entry: two.id, model: [said("changed")] }] })
    ])
    expect(context).toEqual([said("changed")])
  })
})
