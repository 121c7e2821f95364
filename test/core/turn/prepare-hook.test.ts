import { makeToolRegistry } from "@bezel/core/tool"
import { openHarness } from "@bezel/core/turn"
import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/testing/TestClock"
import { call, scriptedModel } from "../../../packages/core/src/testing/model.ts"
import { echo, memory, open, user } from "./fixture.ts"

const settle = Effect.gen(function*() {
  for (let n = 0; n < 50; n++) yield* Effect.yieldNow
})

it.effect("a request offers what a beforePrepare handler has waited for, and is made without it after a time", () =>
  Effect.gen(function*() {
    const registry = yield* makeToolRegistry()
    const model = scriptedModel(["one", "two"])
    const reports: Array<string> = []
    const harness = yield* openHarness(memory().storage(), {
      sessionID: "ses_test",
      models: model.source,
      tools: registry,
      artifact: () => Effect.die(new Error("no artifacts in this test")),
      onReport: ({ message }) => reports.push(message)
    })
    const scope = yield* Effect.scope
    const waits: Array<Effect.Effect<void>> = [
      Effect.asVoid(Scope.provide(
        registry.transform({ plugin: "test", version: "1", order: 0 }, (draft) => draft.set("late", echo)),
        scope
      )),
      Effect.never
    ]
    const ns = yield* harness.namespace("late", {})
    yield* harness.hooks(ns, "generation", { beforePrepare: () => waits.shift() ?? Effect.void })
    yield* harness.resume
    yield* Effect.flatMap(harness.main.send(user("first")), (input) => input.wait)
    expect(model.requests[0]?.tools.map(({ name }) => name)).toEqual(["late"])

    const second = yield* Effect.forkChild(Effect.flatMap(harness.main.send(user("second")), (input) => input.wait))
    yield* settle
    expect(model.requests).toHaveLength(1)
    yield* TestClock.adjust("10 seconds")
    expect(yield* Fiber.join(second)).toMatchObject({ status: "done", text: "two" })
    expect(reports.join()).toContain('The beforePrepare hook of "late" was skipped')
  }))

it.effect("a handler has the time that its registration asks for in place of the host's", () =>
  Effect.gen(function*() {
    const { harness, model, reports } = yield* open(memory().storage(), [[call("echo", { text: "a" })], "ok"])
    const ns = yield* harness.namespace("slow", {})
    const slow = {
      beforeTool: () => Effect.asVoid(Effect.sleep("20 seconds")),
      afterTool: () => Effect.sleep("20 seconds")
    }
    yield* harness.hooks(ns, "tool", slow, { limit: "30 seconds" })
    yield* harness.hooks(ns, "generation", { onYield: () => Effect.as(Effect.sleep("2 seconds"), {}) }, {
      limit: "1 second"
    })
    yield* harness.resume
    const asked = yield* Effect.forkChild(Effect.flatMap(harness.main.send(user("go")), (input) => input.wait))
    for (let seconds = 0; asked.pollUnsafe() === undefined; seconds++) {
      yield* settle
      yield* TestClock.adjust("1 second")
      expect(seconds).toBeLessThan(50)
    }
    expect(JSON.stringify(model.requests[1]?.messages.at(-1))).not.toContain("blocked")
    expect(reports.map(({ message }) => message)).toEqual([
      'The onYield hook of "slow" was skipped: the hook of "slow" did not answer within 1s'
    ])
  }))
