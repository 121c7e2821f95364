import { malformedCall, type ModelPart, type ModelRequest } from "@bezel/core/model"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber, Stream } from "effect"
import { TestClock } from "effect/testing"
import {
  brokenCall,
  call,
  fail,
  finish,
  never,
  run,
  say,
  scriptedModel,
  think,
  wait
} from "../../../packages/core/src/testing/model.ts"

const request: ModelRequest = { messages: [], tools: [], thinking: "off", maxOutput: null, sessionID: "s" }

const text = (parts: Iterable<ModelPart>) =>
  [...parts].map((part) => part.type === "text-delta" ? part.delta : "").join("")

describe("a scripted model", () => {
  it.effect("answers each request with the next turn, and remembers what it was asked", () =>
    Effect.gen(function*() {
      const model = scriptedModel(["one", [think("hm"), say("t", "wo"), call("read", { path: "a" }, "id")], (asked) =>
        `three for ${asked.sessionID}`])
      expect(text(yield* Stream.runCollect(model.stream(request)))).toBe("one")
      const second = yield* Stream.runCollect(model.stream(request))
      expect(second.filter((part) =>
        part.type === "tool-call"
      )).toEqual([{ type: "tool-call", id: "id", name: "read", params: { path: "a" } }])
      expect(second.at(-1)).toMatchObject({ type: "finish", reason: "tool-calls" })
      expect(text(yield* Stream.runCollect(model.stream({ ...request, sessionID: "x" })))).toBe("three for x")
      expect(model.requests.map((one) =>
        one.sessionID
      )).toEqual(["s", "s", "x"])
      expect(model.remaining).toBe(0)
    }))

  it.effect("fails, for good, when it is asked more than its script has", () =>
    Effect.gen(function*() {
      const model = scriptedModel([])
      const error = yield* Effect.flip(Stream.runDrain(model.stream(request)))
      expect(error).toMatchObject({ kind: "invalid_request", retryable: false })
      model.add("more")
      expect(text(yield* Stream.runCollect(model.stream(request)))).toBe("more")
    }))

  it.effect("waits by the test's clock, runs effects in between and ends as told", () =>
    Effect.gen(function*() {
      const seen: Array<string> = []
      const model = scriptedModel([[
        say("a"),
        wait("10 seconds"),
        run(Effect.sync(() => seen.push("ran"))),
        say("b"),
        finish("length", { output: 99 })
      ]])
      const fiber = yield* Effect.forkChild(Stream.runForEach(model.stream(request), (part) =>
        Effect.sync(() =>
          seen.push(part.type === "text-delta" ? part.delta : part.type === "finish" ? part.reason : "")
        )))
      yield* TestClock.adjust("9 seconds")
      expect(seen.filter((one) =>
        one !== ""
      )).toEqual(["a"])
      yield* TestClock.adjust("1 seconds")
      yield* Fiber.join(fiber)
      expect(seen.filter((one) => one !== "")).toEqual(["a", "ran", "b", "length"])
    }))

  it.effect("fails in the middle, stays silent, and writes broken calls", () =>
    Effect.gen(function*() {
      const model = scriptedModel([
        [say("half"), fail("rate_limit", { retryAfterMs: 5 })],
        [brokenCall("read", '{"a"')],
        [never]
      ])
      const parts: Array<ModelPart> = []
      const error = yield* Effect.flip(
        Stream.runForEach(model.stream(request), (part) => Effect.sync(() => parts.push(part)))
      )
      expect(text(parts)).toBe("half")
      expect(error).toMatchObject({ kind: "rate_limit", retryable: true, retryAfterMs: 5 })
      const broken = (yield* Stream.runCollect(model.stream(request))).find((part) => part.type === "tool-call")
      expect(broken === undefined ? null : malformedCall(broken)?.text).toBe('{"a"')
      const fiber = yield* Effect.forkChild(Stream.runDrain(model.stream(request)))
      yield* TestClock.adjust("1 hour")
      expect(fiber.pollUnsafe()).toBeUndefined()
      yield* Fiber.interrupt(fiber)
    }))

  it.effect("is the model of every name where a source is needed", () =>
    Effect.gen(function*() {
      const model = scriptedModel([])
      expect(yield* model.source.resolve({ provider: "any", model: "thing" })).toBe(model)
      expect(yield* model.source.list).toHaveLength(1)
    }))
})
