import type { Message, ModelPart, ModelRequest, ToolResultPart } from "@bezel/core/model"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import * as fc from "fast-check"
import { parseCommands } from "../../../packages/plugins/src/providers/offline-grammar.ts"
import { offlineModel } from "../../../packages/plugins/src/providers/offline.ts"
import { callsOf, lastOf, request, textOf, tool } from "./support.ts"

const allTools = ["read", "list", "search", "bash", "write", "edit", "question", "subagent"].map(tool)

const user = (text: string): Message => ({ role: "user", content: [{ type: "text", text }] })

const step = (messages: ReadonlyArray<Message>, change: Partial<ModelRequest> = {}) =>
  Stream.runCollect(offlineModel().stream(request({ messages, tools: allTools, ...change })))

type Result = Pick<ToolResultPart, "result"> & { readonly failed?: boolean }

/** Drives the model to its answer; `results` says what each call comes to. */
const drive = Effect.fnUntraced(
  function*(messages: ReadonlyArray<Message>, results: ReadonlyArray<Result>, change: Partial<ModelRequest> = {}) {
    const all = [...messages]
    const calls: Array<{ readonly name: string; readonly params: unknown }> = []
    const ids = new Set<string>()
    for (;;) {
      const parts: ReadonlyArray<ModelPart> = yield* step(all, change)
      const made = callsOf(parts)
      if (made.length === 0) return { text: textOf(parts), calls, messages: all, parts }
      expect(made).toHaveLength(1)
      expect(lastOf(parts)).toMatchObject({ type: "finish", reason: "tool-calls" })
      for (const call of made) {
        const { failed = false, result } = results[calls.length] ?? { result: "" }
        calls.push({ name: call.name, params: call.params })
        expect(ids.has(call.id)).toBe(false)
        ids.add(call.id)
        all.push({
          role: "assistant",
          content: [{
            type: "tool-call",
            id: call.id,
            name: call.name,
            params: JSON.parse(JSON.stringify(call.params))
          }]
        })
        all.push({
          role: "tool",
          content: [{ type: "tool-result", id: call.id, name: call.name, isFailure: failed, result }]
        })
      }
    }
  }
)

describe("the grammar of bezel/offline", () => {
  it.each<readonly [string, string, unknown]>([
    ["read README.md", "read", { path: "README.md" }],
    ["read  a file.txt ", "read", { path: "a file.txt" }],
    ['read "then read x"', "read", { path: "then read x" }],
    ["list", "list", {}],
    ["list src/日本", "list", { path: "src/日本" }],
    ["search foo.*bar", "search", { pattern: "foo.*bar" }],
    ["search TODO in **/*.ts", "search", { pattern: "TODO", glob: "**/*.ts" }],
    ["search TODO in dist/d.txt", "search", { pattern: "TODO", path: "dist/d.txt" }],
    ['search "one in two"', "search", { pattern: "one in two" }],
    ["search in", "search", { pattern: "in" }],
    ["run echo hi; echo $HOME | cat", "bash", { command: "echo hi; echo $HOME | cat" }],
    ["run if true; then read x; fi", "bash", { command: "if true; then read x; fi" }],
    ["write a.txt: hello: world", "write", { path: "a.txt", content: "hello: world" }],
    ["write a.txt:\nline 1\n  line 2", "write", { path: "a.txt", content: "line 1\n  line 2" }],
    ["write a.txt:", "write", { path: "a.txt", content: "" }],
    ["write a.txt: now and then again", "write", { path: "a.txt", content: "now and then again" }],
    ["edit a.txt: x = 1 => x = 2", "edit", { path: "a.txt", oldText: "x = 1", newText: "x = 2" }],
    ["edit a.txt: gone =>", "edit", { path: "a.txt", oldText: "gone", newText: "" }],
    ["edit a.ts: (a) => b => (c) => d", "edit", { path: "a.ts", oldText: "(a)", newText: "b => (c) => d" }],
    ["ask Which one? red | green | blue", "question", { question: "Which one?", options: ["red", "green", "blue"] }],
    ["ask Why?", "question", { question: "Why?", options: [] }],
    ["task look around: list then read a.txt", "subagent", {
      description: "look around",
      prompt: "list then read a.txt"
    }]
  ])("reads %j as a call of %s", (prompt, name, params) => {
    expect(parseCommands(prompt)?.map(({ params, tool }) => ({ tool, params }))).toEqual([{ tool: name, params }])
  })

  it("joins several commands by then", () => {
    expect(
      parseCommands("write a.txt: hi then read a.txt\nthen run cat a.txt")?.map(({ params, tool }) => [tool, params])
    ).toEqual([
      ["write", { path: "a.txt", content: "hi" }],
      ["read", { path: "a.txt" }],
      ["bash", { command: "cat a.txt" }]
    ])
  })

  it.each([
    "",
    "hello",
    "Read the book",
    "read",
    "run",
    "write a.txt",
    "edit a.txt: x",
    "ask me",
    "task do",
    "please read a.txt",
    "constructor x",
    "__proto__"
  ])(
    "does not read %j as a command",
    (prompt) => {
      expect(parseCommands(prompt)).toBeNull()
    }
  )

  it("takes any text without failing", () => {
    fc.assert(
      fc.property(
        fc.constantFrom("", "read ", "write ", "edit ", "ask ", "search ", "task "),
        fc.string({ unit: "binary" }),
        (verb, text) => {
          expect(() => parseCommands(verb + text)).not.toThrow()
        }
      )
    )
  })
})

describe("bezel/offline", () => {
  it.effect("calls the tool, then answers with what came out", () =>
    Effect.gen(function*() {
      const { calls, parts, text } = yield* drive([user("read a.txt")], [{ result: "字🙂\r\nline 2\n" }])
      expect(calls).toEqual([{ name: "read", params: { path: "a.txt" } }])
      expect(text).toBe("字🙂\r\nline 2\n")
      expect(lastOf(parts)).toMatchObject({ type: "finish", reason: "stop" })
    }))

  it.effect("streams its answer in several deltas that cut no character", () =>
    Effect.gen(function*() {
      const { parts, text } = yield* drive([user("run x")], [{ result: "👩‍👩‍👧‍👦🇨🇭".repeat(50) }])
      const deltas = parts.flatMap((part) => part.type === "text-delta" ? [part.delta] : [])
      expect(deltas.length).toBeGreaterThan(5)
      expect(deltas.every((delta) => delta.isWellFormed())).toBe(true)
      expect(deltas.join("")).toBe(text)
    }))

  it.effect("makes one call in each step, the next after the result, and shows them all", () =>
    Effect.gen(function*() {
      const { calls, text } = yield* drive([user("write a: x then read a then run rm a")], [{ result: "written" }, {
        result: "x"
      }, { result: "" }])
      expect(calls.map((call) => call.name)).toEqual(["write", "read", "bash"])
      expect(text).toContain("1. `write a: x`:\n\nwritten")
      expect(text).toContain("2. `read a`:\n\nx")
      expect(text).toContain("3. `run rm a` is done, without output.")
    }))

  it.effect("says plainly when a tool failed or was denied, and goes on with the rest", () =>
    Effect.gen(function*() {
      const { calls, text } = yield* drive([user("read nope then read b")], [{
        result: "There is no file nope.",
        failed: true
      }, { result: "bee" }])
      expect(calls).toHaveLength(2)
      expect(text).toContain("`read nope` did not work: There is no file nope.")
      expect(text).toContain("bee")
    }))

  it.effect("says that a tool is not offered, and does not call it", () =>
    Effect.gen(function*() {
      const { calls, text } = yield* drive([user("write a: x then read b")], [{ result: "bee" }], {
        tools: [tool("read")]
      })
      expect(calls).toEqual([{ name: "read", params: { path: "b" } }])
      expect(text).toContain("needs the tool write, which is not offered here")
      expect(text).toContain("bee")
    }))

  it.effect("tells who talks freely what it is, and how to connect a real model", () =>
    Effect.gen(function*() {
      const parts = yield* step([user("Please fix my tests")])
      const text = textOf(parts)
      expect(text).toContain("bezel/offline")
      expect(text).toContain("read FILE")
      expect(text).toContain("ANTHROPIC_API_KEY")
      const connected = yield* Stream.runCollect(offlineModel(["openai"]).stream(request()))
      expect(textOf(connected)).toContain("PROVIDER is openai")
    }))

  it.effect("knows what was asked before in a continued conversation", () =>
    Effect.gen(function*() {
      const first = yield* drive([user("read a.txt")], [{ result: "A" }])
      const answered: ReadonlyArray<Message> = [...first.messages, {
        role: "assistant",
        content: [{ type: "text", text: first.text }]
      }]
      const free = yield* step([...answered, user("what did I ask?")])
      expect(textOf(free)).toContain("read a.txt")
      const second = yield* drive([...answered, user("read a.txt")], [{ result: "B" }])
      expect(second.text).toBe("B")
      const ids = second.messages.flatMap((message) =>
        message.role === "assistant"
          ? message.content.flatMap((part) => part.type === "tool-call" ? [part.id] : [])
          : []
      )
      expect(new Set(ids).size).toBe(2)
    }))

  it.effect("gives the same parts for the same request", () =>
    Effect.gen(function*() {
      for (const prompt of ["read a", "hello", ""]) {
        expect(yield* step([user(prompt)])).toEqual(yield* step([user(prompt)]))
      }
    }))

  it.effect("reads the command from the first text only, and takes attachments as they come", () =>
    Effect.gen(function*() {
      const parts = yield* step([{
        role: "user",
        content: [{ type: "text", text: "list" }, { type: "text", text: "attached" }, {
          type: "file",
          mediaType: "image/png",
          data: ""
        }]
      }])
      expect(callsOf(parts).map((call) => call.name)).toEqual(["list"])
      const nothing = yield* step([{ role: "user", content: [{ type: "file", mediaType: "image/png", data: "" }] }])
      expect(textOf(nothing)).toContain("bezel/offline")
      expect(textOf(yield* step([]))).toContain("bezel/offline")
    }))

  it.effect("shows a file's text without the numbers that the read tool gives its lines", () =>
    Effect.gen(function*() {
      const shown = (result: string) => Effect.map(drive([user("read a")], [{ result }]), ({ text }) => text)
      expect(yield* shown("9\tnine\n10\t\n11\t1\tone\n12\t  end\n[2 more lines]")).toBe(
        "nine\n\n1\tone\n  end\n[2 more lines]"
      )
      expect(yield* shown("1\tone\n5\tfive")).toBe("one\n5\tfive")
      expect(yield* shown("plain\n1\tone")).toBe("plain\n1\tone")
    }))

  it.effect("shows the beginning of a very long result, and says what it left out", () =>
    Effect.gen(function*() {
      const { text } = yield* drive([user("run x")], [{ result: "y".repeat(1_000_000) }])
      expect(text.length).toBeLessThan(30_000)
      expect(text).toContain("980000 more characters")
    }))
})
