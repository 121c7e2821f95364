import type { BeforeToolApi, Harness } from "@bezel/core/harness"
import { makeJobKind, type ProcessHost, type ProcessStatus } from "@bezel/core/turn"
import { expect, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/testing/TestClock"
import { call, defer, fail, never } from "../../../packages/core/src/testing/model.ts"
import { memory, open, settle, simpleKind, user } from "./fixture.ts"

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

it.effect("a session is not quiescent while a retry, a deferred answer, a task or a polling job sleeps", () =>
  Effect.gen(function*() {
    const running: ProcessStatus = { state: "running", pid: 1 }
    const host: ProcessHost = {
      start: () => Effect.succeed(running),
      status: () => Effect.succeed(running),
      kill: () => Effect.void,
      output: () => Effect.succeed("")
    }
    const { harness } = yield* open(memory().storage(), [
      [fail("unavailable", { retryAfterMs: 60_000 })],
      [defer("token", 60_000)],
      "answer"
    ], { job: makeJobKind(host) })
    const sleeper = simpleKind("sleeper", () => Effect.as(Effect.sleep("1 hour"), ""))
    yield* harness.task(sleeper)
    yield* harness.resume
    const input = yield* harness.main.send(user("go"))
    for (const stage of ["retrying", "deferred"]) {
      yield* settle
      expect((yield* harness.main.snapshot).view.turn?.generation?.stage).toBe(stage)
      expect(yield* harness.quiescent).toBe(false)
      expect(yield* harness.running).toEqual(new Set(["bezel.generation"]))
      yield* TestClock.adjust("1 minute")
    }
    yield* input.wait
    yield* settle
    expect(yield* harness.quiescent).toBe(true)
    const task = yield* harness.main.commit((tx) => tx.createTask(sleeper, {}, { background: true }))
    yield* settle
    expect(yield* harness.quiescent).toBe(false)
    yield* harness.main.abortTask(task)
    yield* settle
    expect(yield* harness.quiescent).toBe(true)
    const { job } = harness
    if (job === null) return yield* Effect.die(new Error("no process host"))
    yield* harness.main.commit((tx) =>
      tx.createTask(job, { command: ["x"], directory: "/", env: {}, notBefore: null, every: null, notice: false })
    )
    yield* settle
    yield* TestClock.adjust("1 minute")
    expect(yield* harness.quiescent).toBe(false)
    expect(yield* harness.running).toEqual(new Set(["bezel.job"]))
  }))

it.effect("the process host outlives a suspended session: a job that runs is found again, and not started twice", () =>
  Effect.gen(function*() {
    const session = memory()
    const started: Array<string> = []
    let status: ProcessStatus = { state: "running", pid: 1 }
    const host: ProcessHost = {
      start: (key) => Effect.sync(() => (started.push(key), status)),
      status: () => Effect.sync(() => status),
      kill: () => Effect.void,
      output: () => Effect.succeed("its output")
    }
    const first = yield* open(session.storage(), [], { job: makeJobKind(host) })
    yield* first.harness.resume
    const { job } = first.harness
    if (job === null) return yield* Effect.die(new Error("no process host"))
    const ref = yield* first.harness.main.commit((tx) =>
      tx.createTask(job, { command: ["x"], directory: "/", env: {}, notBefore: null, every: null, notice: false })
    )
    yield* settle
    yield* TestClock.adjust("1 second")
    yield* first.harness.suspend
    status = { state: "exited", code: 3, signal: null }
    const second = yield* open(session.storage(), [], { job: makeJobKind(host) })
    yield* second.harness.resume
    expect(yield* second.harness.main.waitForTask(ref)).toMatchObject({
      status: "completed",
      result: { state: "exited", code: 3, output: "its output" }
    })
    expect(started.length).toBe(1)
  }))

it.effect("a hold within a hold ends with the outer one, and a suspended session starts nothing when it is released", () =>
  Effect.gen(function*() {
    const { harness, model } = yield* open(memory().storage(), ["never asked"])
    yield* harness.resume
    const [outer, inner] = [yield* Scope.make(), yield* Scope.make()]
    yield* harness.hold.pipe(Scope.provide(outer))
    yield* harness.hold.pipe(Scope.provide(inner))
    yield* harness.main.send(user("go"))
    yield* Scope.close(inner, Exit.void)
    yield* settle
    expect(model.requests.length).toBe(0)
    yield* harness.suspend
    yield* Scope.close(outer, Exit.void)
    yield* settle
    expect(model.requests.length).toBe(0)
  }))
