import type { SettleOptions, Tool, ToolOptions, ToolResult } from "@bezel/core/tool"
import { makeToolRegistry, tool, ToolFailure, toolResult } from "@bezel/core/tool"
import { describe, expect, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import type { FakeCall } from "./fake-call.ts"
import { fakeCall } from "./fake-call.ts"

const settle = (made: Tool, fake: FakeCall = fakeCall(), afterTool: SettleOptions["afterTool"] = Effect.succeed) =>
  Effect.scoped(Effect.gen(function*() {
    const registry = yield* makeToolRegistry()
    yield* registry.transform({ plugin: "test", version: "1", order: 0 }, (draft) => draft.set("tool", made))
    const offer = yield* registry.materialize({ enabled: {}, denied: [] })
    const answer = offer.accept("tool", {})
    if ("refused" in answer) return yield* Effect.die(answer.refused.message)
    return yield* offer.settle(answer.accepted, fake.call, { afterTool })
  }))

const make = <O = never>(execute: ToolOptions<{}, O>["execute"], more: Partial<ToolOptions<{}, O>> = {}) =>
  tool<{}, O>({ description: "", input: Schema.Struct({}), execute, ...more })

const text = (result: ToolResult) =>
  result.content.map((part) => part.type === "text" ? part.text : `<${part.mediaType}>`).join("|")

describe("the result of a tool", () => {
  it.effect("is the text that it returns", () =>
    Effect.gen(function*() {
      expect(yield* settle(make(() => Effect.succeed("done")))).toEqual({
        content: [{ type: "text", text: "done" }],
        isError: false,
        details: "done",
        control: {}
      })
    }))

  it.effect("is its output as JSON, with the encoded output as details", () =>
    Effect.gen(function*() {
      const output = Schema.Struct({ at: Schema.Date, count: Schema.Int })
      const result = yield* settle(make(() => Effect.succeed({ at: new Date(0), count: 2 }), { output }))
      expect(result.details).toEqual({ at: "1970-01-01T00:00:00.000Z", count: 2 })
      expect(JSON.parse(text(result))).toEqual(result.details)
    }))

  it.effect("is what toContent makes of the output", () =>
    Effect.gen(function*() {
      const result = yield* settle(make(() => Effect.succeed({ count: 2 }), {
        output: Schema.Struct({ count: Schema.Int }),
        toContent: ({ count }) => `${count} things`
      }))
      expect(text(result)).toBe("2 things")
      expect(result.details).toEqual({ count: 2 })
    }))

  it.effect("carries control and details of its own", () =>
    Effect.gen(function*() {
      const result = yield* settle(
        make(() => Effect.succeed(toolResult({ content: "bye", details: [1], control: { terminate: true } })))
      )
      expect(result).toEqual({
        content: [{ type: "text", text: "bye" }],
        isError: false,
        details: [1],
        control: { terminate: true }
      })
    }))

  it.effect("is what it streamed when it returns nothing", () =>
    Effect.gen(function*() {
      const result = yield* settle(
        make((_, call) => Effect.andThen(call.stream("one\n"), call.stream(Buffer.from("two\n"))))
      )
      expect(text(result)).toBe("one\ntwo\n")
    }))

  it.effect("says in words that there is no output", () =>
    Effect.gen(function*() {
      expect(text(yield* settle(make(() => Effect.void)))).toBe("(no output)")
      expect(text(yield* settle(make(() => Effect.succeed(""))))).toBe("(no output)")
      expect(text(yield* settle(make(() => Effect.succeed(toolResult({ content: [{ type: "text", text: "" }] }))))))
        .toBe("(no output)")
    }))

  it.effect("is an error with the tool's own words when it fails on purpose", () =>
    Effect.gen(function*() {
      const result = yield* settle(
        make(() => Effect.fail(new ToolFailure({ message: "no such page", details: { status: 404 } })))
      )
      expect(result).toEqual({
        content: [{ type: "text", text: "no such page" }],
        isError: true,
        details: { status: 404 },
        control: {}
      })
    }))

  it.effect("keeps what was streamed before a failure", () =>
    Effect.gen(function*() {
      const result = yield* settle(
        make((_, call) => Effect.andThen(call.stream("half"), Effect.fail({ message: "broke" })))
      )
      expect(text(result)).toBe("broke|half")
      expect(result.isError).toBe(true)
    }))

  it.effect.each([
    ["a thrown error", () => {
      throw new Error("x is undefined\n  at secret.ts:1")
    }],
    ["a dying effect", () => Effect.die(new Error("x is undefined"))]
  ])("is one plain sentence for %s", ([, execute]) =>
    Effect.gen(function*() {
      const result = yield* settle(make(execute as () => Effect.Effect<never>))
      expect(result.isError).toBe(true)
      expect(text(result)).toBe("The tool tool failed because of a fault in it: x is undefined.")
    }))

  it.effect("is an error when the output is not what the tool promised", () =>
    Effect.gen(function*() {
      const wrong = { count: "many" } as unknown as { count: number }
      const result = yield* settle(make(() => Effect.succeed(wrong), { output: Schema.Struct({ count: Schema.Int }) }))
      expect(result.isError).toBe(true)
    }))

  it.effect("is an error when the tool interrupts itself", () =>
    Effect.gen(function*() {
      const result = yield* settle(make(() => Effect.interrupt))
      expect(result.isError).toBe(true)
      expect(text(result)).toContain("was interrupted")
    }))
})

describe("bounds", () => {
  it.effect("hold for what a tool returns, at its head unless the tool says otherwise", () =>
    Effect.gen(function*() {
      const long = `first\n${"x\n".repeat(5_000)}last\n`
      const head = text(yield* settle(make(() => Effect.succeed(long))))
      expect(head.startsWith("first\n")).toBe(true)
      expect(head).not.toContain("last\n")
      const tail = text(yield* settle(make(() => Effect.succeed(long), { bounds: { keep: "tail", maxLines: 10 } })))
      expect(tail.endsWith("x\nlast\n")).toBe(true)
      expect(tail.split("\n")).toHaveLength(11)
    }))

  it.effect("hold for what a tool streams, once, with one file", () =>
    Effect.gen(function*() {
      const fake = fakeCall()
      const result = yield* settle(make((_, call) => call.stream("x".repeat(200_000))), fake)
      expect(Buffer.byteLength(text(result))).toBeLessThanOrEqual(64 * 1024)
      expect([...fake.artifacts.values()].map((saved) => saved.length)).toEqual([200_000])
    }))
})

describe("a call that was allowed", () => {
  it.effect("is not run when it would by now touch something else", () =>
    Effect.gen(function*() {
      let target = "/work/link/a"
      let ran = 0
      const made = make(() => Effect.sync(() => String(ran++)), {
        permission: () => ({ access: "write", subjects: [target] })
      })
      const registry = yield* makeToolRegistry()
      yield* registry.transform({ plugin: "test", version: "1", order: 0 }, (draft) => draft.set("tool", made))
      const offer = yield* registry.materialize({ enabled: {}, denied: [] })
      const answer = offer.accept("tool", {})
      if ("refused" in answer) return expect.fail(answer.refused.message)
      target = "/etc/a"
      const result = yield* offer.settle(answer.accepted, fakeCall().call, { afterTool: Effect.succeed })
      expect(result.isError).toBe(true)
      expect(text(result)).toContain("has changed since it was allowed (/work/link/a is now /etc/a), so it was not run")
      expect(ran).toBe(0)
    }))
})

describe("interrupting a call", () => {
  it.effect("ends the tool, runs its finalizers, and gives no result", () =>
    Effect.gen(function*() {
      const started = yield* Deferred.make<void>()
      let ended = 0
      let after = 0
      const fake = fakeCall()
      const made = make((_, call) =>
        call.stream("x".repeat(200_000)).pipe(
          Effect.andThen(Deferred.succeed(started, undefined)),
          Effect.andThen(Effect.never),
          Effect.onInterrupt(() => Effect.sync(() => ended++))
        )
      )
      const fiber = yield* Effect.forkChild(settle(made, fake, (result) => Effect.sync(() => (after++, result))))
      yield* Deferred.await(started)
      yield* Fiber.interrupt(fiber)
      const exit = yield* Fiber.await(fiber)
      expect(Exit.hasInterrupts(exit)).toBe(true)
      expect([ended, after]).toEqual([1, 0])
      expect([...fake.closed]).toEqual([...fake.artifacts.keys()])
      expect(fake.closed.size).toBe(1)
    }))
})

describe("the chain after a tool", () => {
  it.effect("sees the result with its streamed content and may change it before it is bounded", () =>
    Effect.gen(function*() {
      const seen: Array<string> = []
      const fake = fakeCall()
      const result = yield* settle(make((_, call) => call.stream("small")), fake, (before) =>
        Effect.sync(() => {
          seen.push(text(before))
          return toolResult("y".repeat(100_000))
        }))
      expect(seen).toEqual(["small"])
      expect(Buffer.byteLength(text(result))).toBeLessThanOrEqual(64 * 1024)
      expect([...fake.artifacts.values()][0]?.length).toBe(100_000)
    }))

  it.effect("is skipped where it dies", () =>
    Effect.gen(function*() {
      const result = yield* settle(make(() => Effect.succeed("kept")), fakeCall(), () => Effect.die("broken"))
      expect(text(result)).toBe("kept")
    }))
})

describe("what watchers see", () => {
  it.effect("starts at once and then comes at most every 100 ms, in order and whole", () =>
    Effect.gen(function*() {
      const fake = fakeCall()
      const made = make((_, call) =>
        Effect.gen(function*() {
          for (let index = 0; index < 300; index++) {
            yield* call.stream(`${index} `)
            yield* call.progress({ index })
            yield* Effect.sleep(1)
          }
        })
      )
      const fiber = yield* Effect.forkChild(settle(made, fake))
      yield* TestClock.adjust(1_000)
      yield* Fiber.join(fiber)
      expect(fake.streamed[0]).toBe("0 ")
      expect(fake.streamed.length).toBeLessThanOrEqual(5)
      expect(fake.streamed.join("")).toBe(Array.from({ length: 300 }, (_, index) => `${index} `).join(""))
      expect(fake.progressed.length).toBeLessThanOrEqual(5)
      expect(fake.progressed.at(-1)).toEqual({ index: 299 })
    }))

  it.effect("is only the newest of an output that is too much, and never a torn character", () =>
    Effect.gen(function*() {
      const fake = fakeCall()
      const made = make((_, call) =>
        Effect.gen(function*() {
          yield* call.stream("first ")
          for (let index = 0; index < 100; index++) yield* call.stream(Buffer.from("日本語€".repeat(3_000)))
        })
      )
      yield* settle(made, fake)
      const all = fake.streamed.join("")
      expect(all.length).toBeLessThan(40_000)
      expect(all).toContain("[…]")
      expect(all).not.toContain("\ufffd")
    }))

  it.effect("is not the bytes of a binary", () =>
    Effect.gen(function*() {
      const fake = fakeCall()
      yield* settle(make((_, call) => call.stream(Buffer.from([0x7f, 0x45, 0x4c, 0x46, 0, 1, 2]))), fake)
      expect(fake.streamed.join("")).toBe("[binary output]\n")
    }))
})
