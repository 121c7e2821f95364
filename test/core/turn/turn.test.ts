import type { Envelope } from "@bezel/core/harness"
import { apply } from "@bezel/core/json"
import { tool, toolResult } from "@bezel/core/tool"
import { expect, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import {
  brokenCall,
  call,
  defer,
  fail,
  finish,
  never,
  run,
  say,
  think
} from "../../../packages/core/src/testing/model.ts"
import { echo, memory, open, user } from "./fixture.ts"

it.effect("an input becomes a turn, and the model's answer resolves it", () =>
  Effect.gen(function*() {
    const { harness, model } = yield* open(memory().storage(), ["hello there"])
    yield* harness.resume
    const input = yield* harness.main.send(user("hi"))
    expect(yield* input.wait).toMatchObject({ status: "done", text: "hello there" })
    expect(model.requests[0]?.messages).toEqual([{ role: "user", content: [{ type: "text", text: "hi" }] }])
    const { view } = yield* harness.main.snapshot
    expect(view.turn).toBeNull()
    expect(view.entries.map((entry) => entry.kind)).toEqual(["bezel.user", "bezel.assistant"])
  }))

it.effect("nothing runs before resume", () =>
  Effect.gen(function*() {
    const { harness, model } = yield* open(memory().storage(), ["late"])
    const input = yield* harness.main.send(user("hi"))
    for (let n = 0; n < 50; n++) yield* Effect.yieldNow
    expect(model.requests.length).toBe(0)
    yield* harness.resume
    expect(yield* input.wait).toMatchObject({ status: "done", text: "late" })
  }))

it.effect("a request id names its first acceptance: sending again gives the same input and no second turn", () =>
  Effect.gen(function*() {
    const { harness, model } = yield* open(memory().storage(), ["one", "two"])
    yield* harness.resume
    const first = yield* harness.main.send({ ...user("hi"), requestID: "r1" })
    const again = yield* harness.main.send({ ...user("hi"), requestID: "r1" })
    expect(again.id).toBe(first.id)
    yield* first.wait
    const later = yield* harness.main.send({ ...user("other"), requestID: "r1" })
    expect(later.id).toBe(first.id)
    expect(yield* later.wait).toMatchObject({ text: "one" })
    expect(model.requests.length).toBe(1)
  }))

it.effect("five calls, two of them fine, give five results under their ids in call order", () =>
  Effect.gen(function*() {
    const { harness, model } = yield* open(memory().storage(), [
      [
        call("echo", { text: "a" }, "c1"),
        call("nope", {}, "c2"),
        call("echo", { text: 5 }, "c3"),
        brokenCall("echo", '{"text":1, b":2}', "c4"),
        call("echo", { text: "e" }, "c5")
      ],
      "done"
    ])
    yield* harness.resume
    const outcome = yield* Effect.flatMap(harness.main.send(user("go")), (input) => input.wait)
    expect(outcome).toMatchObject({ status: "done", text: "done" })
    const messages = model.requests[1]?.messages ?? []
    const results = messages.at(-1)
    expect(results?.role).toBe("tool")
    const content = results?.role === "tool" ? results.content : []
    expect(content.map((result) => [result.id, result.isFailure])).toEqual([
      ["c1", false],
      ["c2", true],
      ["c3", true],
      ["c4", true],
      ["c5", false]
    ])
    expect(JSON.stringify(messages)).not.toContain('b\\":2')
    const calls = messages.at(-2)
    expect(calls?.role === "assistant" && calls.content.find((part) => part.type === "tool-call" && part.id === "c4"))
      .toMatchObject({ params: {} })
  }))

it.effect("a model that keeps sending unreadable calls is stopped after a few", () =>
  Effect.gen(function*() {
    const broken = [brokenCall("echo", '{"text":')]
    const { harness, model } = yield* open(memory().storage(), [broken, broken, broken, broken, broken])
    yield* harness.resume
    const outcome = yield* Effect.flatMap(harness.main.send(user("go")), (input) => input.wait)
    expect(outcome).toMatchObject({ status: "unanswered", reason: "failed", error: { kind: "malformed" } })
    expect(model.requests.length).toBe(3)
  }))

it.effect("a failed attempt is retried with back-off, and its partial answer never reaches a request", () =>
  Effect.gen(function*() {
    const { harness, model } = yield* open(memory().storage(), [[say("half an ans"), fail("transport")], "whole"])
    yield* harness.resume
    const fiber = yield* Effect.forkChild(Effect.flatMap(harness.main.send(user("go")), (input) => input.wait))
    yield* TestClock.adjust("999 millis")
    expect(model.requests.length).toBe(1)
    const { view } = yield* harness.main.snapshot
    expect(view.turn?.generation).toMatchObject({
      stage: "retrying",
      attempt: 1,
      retryAt: 1_000,
      error: { kind: "transport" }
    })
    yield* TestClock.adjust("1 millis")
    expect(yield* Fiber.join(fiber)).toMatchObject({ status: "done", text: "whole" })
    expect(JSON.stringify(model.requests[1]?.messages)).not.toContain("half")
    const shown = (yield* harness.main.snapshot).view.entries
    expect(shown.map((entry) => entry.kind)).toEqual([
      "bezel.user",
      "bezel.assistant",
      "bezel.usage",
      "bezel.assistant"
    ])
  }))

it.effect("a long retry-after is visible, clamped and interruptible", () =>
  Effect.gen(function*() {
    const { harness } = yield* open(memory().storage(), [[fail("rate_limit", { retryAfterMs: 2_592_000_000 })]])
    yield* harness.resume
    const input = yield* harness.main.send(user("go"))
    yield* TestClock.adjust("1 second")
    expect((yield* harness.main.snapshot).view.turn?.generation?.retryAt).toBe(600_000)
    yield* harness.main.abort()
    expect(yield* input.wait).toMatchObject({ status: "unanswered", reason: "aborted" })
  }))

it.effect("an error that repeating cannot mend ends the turn at once with its reason", () =>
  Effect.gen(function*() {
    const { harness, model } = yield* open(memory().storage(), [[fail("auth", { message: "The key is wrong." })]])
    yield* harness.resume
    const outcome = yield* Effect.flatMap(harness.main.send(user("go")), (input) => input.wait)
    expect(outcome).toEqual({
      status: "unanswered",
      reason: "failed",
      error: { kind: "auth", message: "The key is wrong." }
    })
    expect(model.requests.length).toBe(1)
  }))

it.effect("an abort before the first delta leaves a turn without content, which is left out of later requests", () =>
  Effect.gen(function*() {
    const started = yield* Deferred.make<void>()
    const { harness, model } = yield* open(memory().storage(), [[
      run(Effect.asVoid(Deferred.succeed(started, undefined))),
      never
    ], "second"])
    yield* harness.resume
    const first = yield* harness.main.send(user("one"))
    yield* Deferred.await(started)
    yield* harness.main.abort()
    expect(yield* first.wait).toMatchObject({ status: "unanswered", reason: "aborted" })
    const outcome = yield* Effect.flatMap(harness.main.send(user("two")), (input) => input.wait)
    expect(outcome).toMatchObject({ text: "second" })
    expect(model.requests[1]?.messages.map((message) => message.role)).toEqual(["user", "user"])
  }))

const slowTool = (started: Deferred.Deferred<void>, aborted: { count: number }) =>
  tool({
    description: "Never ends.",
    input: Schema.Struct({}),
    execute: (_, api) =>
      Effect.gen(function*() {
        yield* api.onAbort(Effect.sync(() => {
          aborted.count++
        }))
        yield* Deferred.succeed(started, undefined)
        return yield* Effect.never
      })
  })

it.effect("aborting a turn ends its running tool with one aborted result, before the next request", () =>
  Effect.gen(function*() {
    const started = yield* Deferred.make<void>()
    const aborted = { count: 0 }
    const { harness, model } = yield* open(memory().storage(), [[
      call("slow", {}, "c1"),
      call("echo", { text: "x" }, "c2")
    ], "next"], {
      tools: (draft) => {
        draft.set("slow", slowTool(started, aborted))
        draft.set("echo", echo)
      }
    })
    yield* harness.resume
    const first = yield* harness.main.send(user("one"))
    yield* Deferred.await(started)
    yield* harness.main.abort()
    expect(yield* first.wait).toMatchObject({ status: "unanswered", reason: "aborted" })
    expect(aborted.count).toBe(1)
    yield* Effect.flatMap(harness.main.send(user("two")), (input) => input.wait)
    const messages = model.requests[1]?.messages ?? []
    expect(messages.map((message) => message.role)).toEqual(["user", "assistant", "tool", "user"])
    const results = messages[2]?.role === "tool" ? messages[2].content : []
    expect(results.map((result) => result.id)).toEqual(["c1", "c2"])
    expect(results[0]).toMatchObject({ isFailure: true })
  }))

it.effect("closing is a pause: a started unsafe call gets an interrupted result, a safe one runs again", () =>
  Effect.gen(function*() {
    const session = memory()
    const started = yield* Deferred.make<void>()
    const counting = yield* Deferred.make<void>()
    const aborted = { count: 0 }
    let runs = 0
    const safe = (done: boolean) =>
      tool({
        description: "Counts.",
        input: Schema.Struct({}),
        replay: "safe",
        execute: () =>
          Effect.suspend(() => {
            runs++
            return done
              ? Effect.succeed("counted")
              : Effect.andThen(Deferred.succeed(counting, undefined), Effect.never)
          })
      })
    const scope = yield* Scope.make()
    const first = yield* open(session.storage(), [[call("slow", {}, "c1"), call("count", {}, "c2")]], {
      tools: (draft) => {
        draft.set("slow", slowTool(started, aborted))
        draft.set("count", safe(false))
      }
    }).pipe(Scope.provide(scope))
    yield* first.harness.resume
    const input = yield* first.harness.main.send({ ...user("go"), requestID: "r1" })
    yield* Deferred.await(started)
    yield* Deferred.await(counting)
    yield* Scope.close(scope, Exit.void)
    expect(aborted.count).toBe(0)
    const again = yield* open(session.storage(), ["finished"], {
      tools: (draft) => {
        draft.set("slow", slowTool(yield_(), aborted))
        draft.set("count", safe(true))
      }
    })
    yield* again.harness.resume
    const found = yield* again.harness.main.send({ ...user("go"), requestID: "r1" })
    expect(found.id).toBe(input.id)
    expect(yield* found.wait).toMatchObject({ status: "done", text: "finished" })
    const messages = again.model.requests[0]?.messages ?? []
    const results = messages.at(-1)?.role === "tool" ? messages.at(-1)?.content : []
    expect(results).toMatchObject([{ id: "c1", isFailure: true }, { id: "c2", isFailure: false, result: "counted" }])
    expect(runs).toBe(2)
  }))

const yield_ = () => Deferred.makeUnsafe<void>()

it.effect("every commit is one envelope, contiguous, and applying them gives the view", () =>
  Effect.gen(function*() {
    const { harness } = yield* open(memory().storage(), [[
      think("hm"),
      say("let me "),
      say("look"),
      call("echo", { text: "a" })
    ], [say("an", "swer")]])
    yield* harness.resume
    const watch = yield* harness.main.watch
    const seen: Array<Envelope> = []
    yield* Effect.forkChild(Stream.runForEach(watch.envelopes, (envelope) => Effect.sync(() => seen.push(envelope))))
    yield* Effect.flatMap(harness.main.send(user("go")), (input) => input.wait)
    for (let n = 0; n < 20; n++) yield* Effect.yieldNow
    const { revision, view } = yield* harness.main.snapshot
    expect(seen.map((envelope) => envelope.revision)).toEqual(seen.map((_, index) => watch.revision + index + 1))
    expect(seen.at(-1)?.revision).toBe(revision)
    let replica = watch.view
    for (const envelope of seen) replica = apply(replica, envelope.operations)
    expect(replica).toEqual(view)
    const ending = seen.find((envelope) => envelope.events.some((event) => event.type === "turn.ended"))
    expect(ending?.events.map((event) => event.type)).toContain("entry.added")
    expect(ending?.operations.some((operation) => operation[0] === "set" && operation[1][0] === "turn")).toBe(true)
  }))

it.effect("a late joiner needs no history", () =>
  Effect.gen(function*() {
    const { harness } = yield* open(memory().storage(), ["one"])
    yield* harness.resume
    yield* Effect.flatMap(harness.main.send(user("go")), (input) => input.wait)
    const watch = yield* harness.main.watch
    expect(watch.view).toEqual((yield* harness.main.snapshot).view)
    expect(watch.view.entries.length).toBe(2)
  }))

it.effect("inputs sent while a turn runs follow it one by one, and a steer joins it after its tools", () =>
  Effect.gen(function*() {
    const gate = yield* Deferred.make<void>()
    const { harness, model } = yield* open(memory().storage(), [
      [run(Deferred.await(gate)), call("echo", { text: "a" })],
      "first answer",
      "second answer"
    ])
    yield* harness.resume
    const first = yield* harness.main.send(user("one"))
    const follow = yield* harness.main.send(user("follow"))
    const steer = yield* harness.main.send({ ...user("steer"), whenBusy: "steer" })
    const refused = yield* Effect.flip(harness.main.send({ ...user("no"), whenBusy: "reject" }))
    expect(refused.code).toBe("busy")
    expect((yield* harness.main.snapshot).view.inbox.map((item) => item.text)).toEqual(["follow", "steer"])
    yield* Deferred.succeed(gate, undefined)
    expect(yield* first.wait).toMatchObject({ text: "first answer" })
    expect(yield* steer.wait).toMatchObject({ text: "first answer" })
    expect(yield* follow.wait).toMatchObject({ text: "second answer" })
    expect(model.requests[1]?.messages.at(-1)).toMatchObject({ role: "user", content: [{ text: "steer" }] })
  }))

it.effect("a queued input can be taken back, a placed one cannot", () =>
  Effect.gen(function*() {
    const { harness } = yield* open(memory().storage(), [[never]])
    yield* harness.resume
    const placed = yield* harness.main.send(user("one"))
    const queued = yield* harness.main.send(user("two"))
    expect(yield* placed.abort).toBe("already_placed")
    expect(yield* queued.abort).toBe("aborted")
    expect(yield* queued.wait).toMatchObject({ status: "unanswered", reason: "aborted" })
    expect(yield* queued.abort).toBe("ended")
  }))

it.effect("results that terminate end the turn without another request", () =>
  Effect.gen(function*() {
    const stop = tool({
      description: "Stops.",
      input: Schema.Struct({}),
      execute: () => Effect.succeed(toolResult({ content: "bye", control: { terminate: true } }))
    })
    const { harness, model } = yield* open(memory().storage(), [[call("stop", {})], "never asked"], {
      tools: (draft) => draft.set("stop", stop)
    })
    yield* harness.resume
    const outcome = yield* Effect.flatMap(harness.main.send(user("go")), (input) => input.wait)
    expect(outcome).toMatchObject({ status: "unanswered", reason: "terminated" })
    expect(model.requests.length).toBe(1)
  }))

it.effect("calls of one answer run at once, and a sequential one runs alone", () =>
  Effect.gen(function*() {
    let running = 0
    const peaks: Array<string> = []
    const counting = (name: string, executionMode: "parallel" | "sequential") =>
      tool({
        description: name,
        input: Schema.Struct({}),
        executionMode,
        execute: () =>
          Effect.gen(function*() {
            running++
            yield* Effect.sleep("1 second")
            peaks.push(`${name}:${running}`)
            running--
            return name
          })
      })
    const { harness } = yield* open(memory().storage(), [
      [call("p", {}), call("p", {}), call("s", {}), call("p", {})],
      "ok"
    ], {
      tools: (draft) => {
        draft.set("p", counting("p", "parallel"))
        draft.set("s", counting("s", "sequential"))
      }
    })
    yield* harness.resume
    const fiber = yield* Effect.forkChild(Effect.flatMap(harness.main.send(user("go")), (input) => input.wait))
    for (let second = 0; second < 5; second++) {
      for (let n = 0; n < 100; n++) yield* Effect.yieldNow
      yield* TestClock.adjust("1 second")
    }
    yield* Fiber.join(fiber)
    expect(peaks).toEqual(["p:2", "p:1", "s:1", "p:1"])
  }))

it.effect("token counts add up in the view", () =>
  Effect.gen(function*() {
    const { harness } = yield* open(memory().storage(), [[say("a"), finish("stop", { input: 10, output: 5 })], [
      say("b"),
      finish("stop", { input: 20, output: 7 })
    ]])
    yield* harness.resume
    yield* Effect.flatMap(harness.main.send(user("one")), (input) => input.wait)
    yield* Effect.flatMap(harness.main.send(user("two")), (input) => input.wait)
    expect((yield* harness.main.snapshot).view.usage).toMatchObject({ input: 30, output: 12, context: 27 })
  }))

it.effect("a fork inherits the transcript up to its point and nothing later", () =>
  Effect.gen(function*() {
    const { harness, model } = yield* open(memory().storage(), ["one", "two", "three"])
    yield* harness.resume
    yield* Effect.flatMap(harness.main.send(user("a")), (input) => input.wait)
    const at = (yield* harness.main.snapshot).view.entries.at(-1)?.id ?? ""
    yield* Effect.flatMap(harness.main.send(user("b")), (input) => input.wait)
    const forked = yield* harness.main.fork(at)
    yield* Effect.flatMap(forked.send(user("c")), (input) => input.wait)
    expect(JSON.stringify(model.requests[2]?.messages)).not.toContain('"b"')
    expect(model.requests[2]?.messages.length).toBe(3)
  }))

it.effect("a tool registered on a harness hides the shared one of its name there, until it is unregistered", () =>
  Effect.gen(function*() {
    const { harness, model } = yield* open(memory().storage(), [[call("echo", { text: "a" })], "ok", [
      call("echo", { text: "b" })
    ], "ok"])
    yield* harness.resume
    const own = yield* harness.registerTool(
      "echo",
      tool({
        description: "Answers for itself.",
        input: Schema.Struct({ text: Schema.String }),
        execute: () => Effect.succeed("from the harness")
      })
    )
    yield* Effect.flatMap(harness.main.send(user("one")), (input) => input.wait)
    expect(model.requests[0]?.tools.map((definition) => definition.description)).toEqual(["Answers for itself."])
    expect(JSON.stringify(model.requests[1]?.messages.at(-1))).toContain("from the harness")
    yield* own.unregister
    yield* Effect.flatMap(harness.main.send(user("two")), (input) => input.wait)
    expect(JSON.stringify(model.requests[3]?.messages.at(-1))).toContain('"b"')
  }))

it.effect("a deferred answer is waited for, and asked for again also by a later process", () =>
  Effect.gen(function*() {
    const session = memory()
    const scope = yield* Scope.make()
    const first = yield* open(session.storage(), [[defer("job-1", 60_000)]]).pipe(Scope.provide(scope))
    yield* first.harness.resume
    yield* first.harness.main.send({ ...user("go"), requestID: "r" })
    for (let n = 0; n < 60; n++) yield* Effect.yieldNow
    expect((yield* first.harness.main.snapshot).view.turn?.generation).toMatchObject({
      stage: "deferred",
      retryAt: 60_000
    })
    yield* Scope.close(scope, Exit.void)
    const second = yield* open(session.storage(), [[defer("job-1", 30_000)], "here it is"])
    yield* second.harness.resume
    const input = yield* second.harness.main.send({ ...user("go"), requestID: "r" })
    const waiting = yield* Effect.forkChild(input.wait)
    for (const step of ["60 seconds", "30 seconds"] as const) {
      for (let n = 0; n < 60; n++) yield* Effect.yieldNow
      yield* TestClock.adjust(step)
    }
    expect(yield* Fiber.join(waiting)).toMatchObject({ status: "done", text: "here it is" })
    expect(second.model.resumed).toEqual(["job-1", "job-1"])
  }))

it.effect("an onYield handler lets the turn go on instead of ending it", () =>
  Effect.gen(function*() {
    const { harness, model } = yield* open(memory().storage(), ["done, I think", "now really done"])
    const ns = yield* harness.namespace("n", {})
    yield* harness.hooks(ns, "generation", {
      onYield: (_, api) => Effect.succeed(api.step === 1 ? { continueWith: "The tests still fail." } : {})
    })
    yield* harness.resume
    const outcome = yield* Effect.flatMap(harness.main.send(user("go")), (input) => input.wait)
    expect(outcome).toMatchObject({ status: "done", text: "now really done" })
    expect(model.requests[1]?.messages.at(-1)).toMatchObject({
      role: "user",
      content: [{ text: "The tests still fail." }]
    })
  }))
