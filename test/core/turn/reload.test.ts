import type { BeforeToolApi, Harness } from "@bezel/core/harness"
import { expect, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { call, never } from "../../../packages/core/src/testing/model.ts"
import { memory, open, user } from "./fixture.ts"

const settle = Effect.gen(function*() {
  for (let n = 0; n < 60; n++) yield* Effect.yieldNow
})

it.effect("a session is quiescent only while no invocation exists, a waiting beforeTool included", () =>
  Effect.gen(function*() {
    const answer = yield* Deferred.make<void>()
    const { harness } = yield* open(memory().storage(), [[call("echo", { text: "a" })], "ok"])
    const ns = yield* harness.namespace("approval", {})
    yield* harness.hooks(ns, "tool", { beforeTool: (_, api) => Effect.andThen(api.waiting, Deferred.await(answer)) })
    yield* harness.resume
    expect(yield* harness.quiescent).toBe(true)
    const input = yield* harness.main.send(user("go"))
    yield* settle
    expect(yield* harness.quiescent).toBe(false)
    yield* Deferred.succeed(answer, undefined)
    yield* input.wait
    yield* settle
    expect(yield* harness.quiescent).toBe(true)
  }))

it.effect("hold defers new work and not commits, and releasing goes on", () =>
  Effect.gen(function*() {
    const { harness, model } = yield* open(memory().storage(), ["hello"])
    yield* harness.resume
    const held = yield* Scope.make()
    yield* harness.hold.pipe(Scope.provide(held))
    const input = yield* harness.main.send(user("go"))
    yield* harness.main.write("note", { data: 1 })
    yield* settle
    expect(model.requests.length).toBe(0)
    expect(yield* harness.quiescent).toBe(true)
    yield* Scope.close(held, Exit.void)
    expect(yield* input.wait).toMatchObject({ text: "hello" })
  }))

const approve = (harness: Harness, ask: (api: BeforeToolApi) => Effect.Effect<void>) =>
  Effect.gen(function*() {
    const ns = yield* harness.namespace("approval", {})
    yield* harness.hooks(ns, "tool", {
      beforeTool: (_, api) =>
        Effect.gen(function*() {
          if ((yield* api.memo("decision")) !== undefined) return
          yield* api.waiting
          yield* ask(api)
          yield* api.memo("decision", "allow")
        })
    })
  })

it.effect("suspend stops all work and ends none of it: a call that waits is approved under the next generation", () =>
  Effect.gen(function*() {
    const session = memory()
    let asked = 0
    const first = yield* open(session.storage(), [[call("echo", { text: "a" })]])
    yield* approve(first.harness, () => Effect.andThen(Effect.sync(() => asked++), Effect.never))
    yield* first.harness.resume
    yield* first.harness.main.send({ ...user("go"), requestID: "r" })
    yield* settle
    yield* first.harness.suspend
    expect((yield* Effect.flip(first.harness.main.write("note", {}))).code).toBe("closed")
    const live = yield* session.storage().liveTasks
    expect(live.map((task) => [task.kind, task.status])).toEqual([["bezel.tool", "pending"], [
      "bezel.post_tools",
      "pending"
    ]])
    const second = yield* open(session.storage(), ["done"])
    yield* approve(second.harness, () => Effect.sync(() => asked++))
    yield* second.harness.resume
    const input = yield* second.harness.main.send({ ...user("go"), requestID: "r" })
    expect(yield* input.wait).toMatchObject({ status: "done", text: "done" })
    expect(asked).toBe(2)
  }))

it.effect("suspending a request is not a failed attempt of anybody: it is asked again", () =>
  Effect.gen(function*() {
    const session = memory()
    const first = yield* open(session.storage(), [[never]])
    yield* first.harness.resume
    yield* first.harness.main.send({ ...user("go"), requestID: "r" })
    yield* settle
    yield* first.harness.suspend
    const second = yield* open(session.storage(), ["answer"])
    yield* second.harness.resume
    const input = yield* second.harness.main.send({ ...user("go"), requestID: "r" })
    expect(yield* input.wait).toMatchObject({ text: "answer" })
    expect((yield* second.harness.main.snapshot).view.entries.map((entry) => entry.kind)).toEqual([
      "bezel.user",
      "bezel.assistant"
    ])
  }))
