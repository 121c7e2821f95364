import type { BeforeToolApi, Conversation } from "@bezel/core/harness"
import type { JsonValue } from "@bezel/core/json"
import { expect, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/testing/TestClock"
import { call } from "../../../packages/core/src/testing/model.ts"
import { memory, open, user } from "./fixture.ts"

const resultsOf = (
  messages: ReadonlyArray<{ readonly role: string; readonly content: unknown }> | undefined
): unknown => messages?.findLast((message) => message.role === "tool")?.content

const settle = Effect.gen(function*() {
  for (let n = 0; n < 50; n++) yield* Effect.yieldNow
})

it.effect("a beforeTool handler may rewrite a call, and a gate sees the final call but may not rewrite it", () =>
  Effect.gen(function*() {
    const seen: Array<JsonValue> = []
    const { harness, model } = yield* open(memory().storage(), [[call("echo", { text: "a" })], "ok"])
    const ns = yield* harness.namespace("test", {})
    yield* harness.hooks(ns, "tool", {
      beforeTool: (hooked) =>
        Effect.sync(() => {
          seen.push(hooked.args)
          return { args: { text: "from the gate" } }
        })
    }, { gate: true })
    yield* harness.hooks(ns, "tool", { beforeTool: () => Effect.succeed({ args: { text: "rewritten" } }) })
    yield* harness.resume
    yield* Effect.flatMap(harness.main.send(user("go")), (input) => input.wait)
    expect(seen).toEqual([{ text: "rewritten" }])
    expect(resultsOf(model.requests[1]?.messages)).toMatchObject([{ result: "rewritten" }])
  }))

it.effect("a handler that blocks, fails or dies blocks the call with a result for the model", () =>
  Effect.gen(function*() {
    const outcomes: Array<Effect.Effect<{ readonly block: string }, { readonly message: string }>> = [
      Effect.succeed({ block: "not today" }),
      Effect.fail({ message: "no network" }),
      Effect.die(new Error("a bug"))
    ]
    const { harness, model } = yield* open(memory().storage(), [[
      call("echo", { text: "a" }),
      call("echo", { text: "b" }),
      call("echo", { text: "c" })
    ], "ok"])
    const ns = yield* harness.namespace("test", {})
    yield* harness.hooks(ns, "tool", { beforeTool: () => outcomes.shift() ?? Effect.void })
    yield* harness.resume
    yield* Effect.flatMap(harness.main.send(user("go")), (input) => input.wait)
    const results = JSON.stringify(resultsOf(model.requests[1]?.messages))
    expect(results).toContain("not today")
    expect(results).toContain("no network")
    expect(results).toContain("a bug")
    expect(resultsOf(model.requests[1]?.messages)).toMatchObject([{ isFailure: true }, { isFailure: true }, {
      isFailure: true
    }])
  }))

it.effect("a gate that never answers blocks the call once its time is over, and boot and turn go on", () =>
  Effect.gen(function*() {
    const { harness, model } = yield* open(memory().storage(), [[call("echo", { text: "a" })], "ok"])
    const ns = yield* harness.namespace("test", {})
    yield* harness.hooks(ns, "tool", { beforeTool: () => Effect.never }, { gate: true })
    yield* harness.resume
    const fiber = yield* Effect.forkChild(Effect.flatMap(harness.main.send(user("go")), (input) => input.wait))
    yield* settle
    yield* TestClock.adjust("10 seconds")
    expect(yield* Fiber.join(fiber)).toMatchObject({ status: "done" })
    expect(JSON.stringify(resultsOf(model.requests[1]?.messages))).toContain("did not answer within")
  }))

it.effect("waiting shows who waits, is cleared together with started, and has no time limit", () =>
  Effect.gen(function*() {
    const answer = yield* Deferred.make<void>()
    const { harness } = yield* open(memory().storage(), [[call("echo", { text: "a" })], "ok"])
    const ns = yield* harness.namespace("approval", {})
    yield* harness.hooks(ns, "tool", {
      beforeTool: (_, api) => Effect.andThen(api.waiting, Deferred.await(answer))
    }, { gate: true })
    yield* harness.resume
    const watch = yield* harness.main.watch
    const input = yield* harness.main.send(user("go"))
    yield* settle
    yield* TestClock.adjust("1 hour")
    expect((yield* harness.main.snapshot).view.turn?.tools[0]).toMatchObject({
      status: "waiting",
      waitingOn: "approval"
    })
    yield* Deferred.succeed(answer, undefined)
    expect(yield* input.wait).toMatchObject({ status: "done" })
    expect(watch.revision).toBeLessThan((yield* harness.main.snapshot).revision)
  }))

it.effect("waitingOn is cleared when the handler unwinds on an abort", () =>
  Effect.gen(function*() {
    const { harness } = yield* open(memory().storage(), [[call("echo", { text: "a" })], "ok"])
    const ns = yield* harness.namespace("approval", {})
    yield* harness.hooks(ns, "tool", { beforeTool: (_, api) => Effect.andThen(api.waiting, Effect.never) })
    yield* harness.resume
    const input = yield* harness.main.send(user("go"))
    yield* settle
    yield* harness.main.abort()
    expect(yield* input.wait).toMatchObject({ reason: "aborted" })
    expect((yield* harness.main.snapshot).view.turn).toBeNull()
  }))

it.effect("two writers of one memo both get the winner, null is a value, namespaces do not collide, and it ends with the call", () =>
  Effect.gen(function*() {
    const seen: Array<JsonValue | undefined> = []
    const storage = memory().storage()
    const { harness } = yield* open(storage, [[call("echo", { text: "a" })], "ok"])
    const one = yield* harness.namespace("one", {})
    const two = yield* harness.namespace("two", {})
    const racing = (api: BeforeToolApi) =>
      Effect.gen(function*() {
        seen.push(
          ...yield* Effect.all([api.memo<JsonValue>("m", null), api.memo<JsonValue>("m", "late")], { concurrency: 2 })
        )
        seen.push(yield* api.memo("m"))
      })
    yield* harness.hooks(one, "tool", { beforeTool: (_, api) => racing(api) })
    yield* harness.hooks(two, "tool", {
      beforeTool: (_, api) =>
        Effect.flatMap(api.memo("m"), (found) =>
          Effect.sync(() => {
            seen.push(found === undefined ? "nothing" : found)
          }))
    })
    yield* harness.resume
    yield* Effect.flatMap(harness.main.send(user("go")), (input) => input.wait)
    expect(seen).toEqual([null, null, null, "nothing"])
    expect(JSON.stringify((yield* harness.main.snapshot).view)).not.toContain("memos")
    // They end with the call.
    expect(yield* storage.document(`sticky:${harness.main.id}`)).toMatchObject({ slots: {} })
    expect(JSON.stringify(yield* storage.document(`sticky:${harness.main.id}`))).not.toContain("memos")
  }))

it.effect("a decision memo survives a crash: nobody is asked twice", () =>
  Effect.gen(function*() {
    const session = memory()
    let asked = 0
    const approval = (api: BeforeToolApi, hang: boolean) =>
      Effect.gen(function*() {
        if ((yield* api.memo("decision")) !== undefined) return
        yield* api.waiting
        asked++
        yield* api.memo("decision", "allow")
        if (hang) yield* Effect.never
      })
    const scope = yield* Scope.make()
    const first = yield* open(session.storage(), [[call("echo", { text: "a" })]]).pipe(Scope.provide(scope))
    const ns = yield* first.harness.namespace("approval", {}).pipe(Scope.provide(scope))
    yield* first.harness.hooks(ns, "tool", { beforeTool: (_, api) => approval(api, true) }).pipe(Scope.provide(scope))
    yield* first.harness.resume
    yield* first.harness.main.send({ ...user("go"), requestID: "r" })
    yield* settle
    expect(asked).toBe(1)
    yield* Scope.close(scope, Exit.void)
    const second = yield* open(session.storage(), ["done"])
    const again = yield* second.harness.namespace("approval", {})
    yield* second.harness.hooks(again, "tool", { beforeTool: (_, api) => approval(api, false) })
    yield* second.harness.resume
    const input = yield* second.harness.main.send({ ...user("go"), requestID: "r" })
    expect(yield* input.wait).toMatchObject({ status: "done", text: "done" })
    expect(asked).toBe(1)
    expect(resultsOf(second.model.requests[0]?.messages)).toMatchObject([{ isFailure: false, result: "a" }])
  }))

it.effect("a namespace writes only its declared keys, shows only its projection, and an old token is stale", () =>
  Effect.gen(function*() {
    const { harness } = yield* open(memory().storage(), [])
    const ns = yield* harness.namespace("plan", { rewindable: { mode: "off" }, sticky: { secret: "x" } }, {
      view: (state) => ({ mode: state.mode ?? null })
    })
    expect((yield* harness.main.snapshot).view.plugins).toEqual({ plan: { mode: "off" } })
    yield* ns.update(harness.main.id, (draft) => {
      draft.mode = "on"
      draft.secret = "canary"
    }, { name: "toggled", data: { on: true } })
    const { view } = yield* harness.main.snapshot
    expect(view.plugins).toEqual({ plan: { mode: "on" } })
    expect(JSON.stringify(view)).not.toContain("canary")
    const outside = yield* Effect.flip(ns.update(harness.main.id, (draft) => {
      draft.other = 1
    }))
    expect(outside.code).toBe("not_permitted")
    const twice = yield* Effect.flip(harness.namespace("plan", {}))
    expect(twice.code).toBe("duplicate")
    yield* ns.unregister
    yield* ns.unregister
    const stale = yield* Effect.flip(ns.update(harness.main.id, () => {}))
    expect(stale.code).toBe("stale_definition")
    const fresh = yield* harness.namespace("plan", { rewindable: { mode: "off" }, sticky: { secret: "x", added: 1 } })
    expect(yield* fresh.get(harness.main.id)).toEqual({ mode: "on", secret: "canary", added: 1 })
  }))

it.effect("a rewindable slice is read as of an entry by the fork there, and a sticky one begins anew", () =>
  Effect.gen(function*() {
    const { harness } = yield* open(memory().storage(), ["one", "two"])
    const plan = yield* harness.namespace("plan", { rewindable: { step: 0 }, sticky: { seen: 0 } })
    yield* harness.resume
    const mark = (n: number) =>
      Effect.gen(function*() {
        yield* plan.update(harness.main.id, (draft) => {
          draft.step = n
          draft.seen = n
        })
        yield* Effect.flatMap(harness.main.send(user("go")), (input) => input.wait)
        return (yield* harness.main.snapshot).view.entries.at(-1)?.id ?? ""
      })
    const first = yield* mark(1)
    yield* mark(2)
    const fork = yield* harness.main.fork(first)
    expect(yield* plan.get(fork.id)).toEqual({ step: 1, seen: 0 })
    yield* plan.update(fork.id, (draft) => {
      draft.step = 9
    })
    expect(yield* plan.get(harness.main.id)).toEqual({ step: 2, seen: 2 })
  }))

it.effect("a rewindable slice is read as of an entry, an inherited one included, and then it has no sticky keys", () =>
  Effect.gen(function*() {
    const { harness } = yield* open(memory().storage(), ["one", "two", "three"])
    const plan = yield* harness.namespace("plan", { rewindable: { step: 0, notes: [] }, sticky: { seen: 0 } })
    yield* harness.resume
    const say = (conversation: Conversation, n: number) =>
      Effect.gen(function*() {
        yield* plan.update(conversation.id, (draft) => {
          draft.step = n
          draft.seen = n
        })
        yield* Effect.flatMap(conversation.send(user("go")), (input) => input.wait)
        return (yield* conversation.snapshot).view.entries.at(-1)?.id ?? ""
      })
    const note = yield* harness.main.write("note", {})
    const first = yield* say(harness.main, 1)
    const second = yield* say(harness.main, 2)
    expect(yield* plan.get(harness.main.id, { at: note })).toEqual({ step: 0, notes: [] })
    expect(yield* plan.get(harness.main.id, { at: first })).toEqual({ step: 1, notes: [] })
    expect(yield* plan.get(harness.main.id, { at: second })).toEqual({ step: 2, notes: [] })
    const fork = yield* harness.main.fork(second)
    const third = yield* say(fork, 3)
    expect(yield* plan.get(fork.id, { at: third })).toEqual({ step: 3, notes: [] })
    expect(yield* plan.get(fork.id, { at: first })).toEqual({ step: 1, notes: [] })
    const again = yield* fork.fork(first)
    expect(yield* plan.get(again.id)).toEqual({ step: 1, notes: [], seen: 0 })
    const foreign = yield* Effect.flip(plan.get(harness.main.id, { at: third }))
    expect(foreign).toMatchObject({ code: "not_found", message: expect.stringContaining(third) })
    const beyond = yield* Effect.flip(plan.get(again.id, { at: second }))
    expect(beyond.code).toBe("not_found")
    yield* plan.unregister
    expect((yield* Effect.flip(plan.get(harness.main.id, { at: first }))).code).toBe("stale_definition")
  }))

it.effect("a draft used after its commit changes nothing", () =>
  Effect.gen(function*() {
    const { harness } = yield* open(memory().storage(), [])
    const ns = yield* harness.namespace("n", { sticky: { list: [] } })
    let kept: Array<JsonValue> = []
    yield* ns.update(harness.main.id, (draft) => {
      if (Array.isArray(draft.list)) kept = draft.list
    })
    expect(() => kept.push(1)).toThrow()
    expect(yield* ns.get(harness.main.id)).toEqual({ list: [] })
  }))

it.effect("entries of the core are refused to everybody else, and a notice is one user message", () =>
  Effect.gen(function*() {
    const { harness } = yield* open(memory().storage(), [])
    expect((yield* Effect.flip(harness.main.write("bezel.assistant", {}))).code).toBe("not_permitted")
    expect((yield* Effect.flip(harness.main.write("bezel.notice", {}))).code).toBe("invalid")
    yield* harness.main.write("ci.result", { data: { run: 1 } })
    yield* harness.main.write("bezel.notice", {
      model: [{ role: "user", content: [{ type: "text", text: "CI failed" }] }]
    })
    expect(yield* harness.main.context).toEqual([{ role: "user", content: [{ type: "text", text: "CI failed" }] }])
    expect((yield* harness.main.snapshot).view.entries.map((entry) => entry.kind)).toEqual([
      "ci.result",
      "bezel.notice"
    ])
  }))

it.effect("what is written during a turn waits for its boundary", () =>
  Effect.gen(function*() {
    const gate = yield* Deferred.make<void>()
    const { harness, model } = yield* open(memory().storage(), [[call("echo", { text: "a" })], "ok"])
    const ns = yield* harness.namespace("n", {})
    yield* harness.hooks(ns, "tool", { beforeTool: (_, api) => Effect.andThen(api.waiting, Deferred.await(gate)) })
    yield* harness.resume
    const input = yield* harness.main.send(user("go"))
    yield* settle
    yield* harness.main.write("bezel.notice", {
      model: [{ role: "user", content: [{ type: "text", text: "meanwhile" }] }]
    })
    expect((yield* harness.main.snapshot).view.entries.map((entry) => entry.kind)).not.toContain("bezel.notice")
    yield* Deferred.succeed(gate, undefined)
    yield* input.wait
    expect(model.requests[1]?.messages.map((message) => message.role)).toEqual(["user", "assistant", "tool", "user"])
  }))

it.effect("sections and instructions make the system message, and a failing one is skipped with a warning", () =>
  Effect.gen(function*() {
    const { harness, model, reports } = yield* open(memory().storage(), ["ok"])
    const ns = yield* harness.namespace("n", {})
    yield* harness.section({ id: "b", order: 2, text: () => Effect.succeed("second") })
    yield* harness.section({ id: "a", order: 1, text: () => Effect.succeed("first") })
    yield* harness.section({ id: "c", order: 3, text: () => Effect.die(new Error("broken section")) })
    yield* harness.hooks(ns, "generation", { systemInstructions: () => Effect.succeed("third") })
    yield* harness.resume
    yield* Effect.flatMap(harness.main.send(user("go")), (input) => input.wait)
    expect(model.requests[0]?.messages[0]).toEqual({ role: "system", content: "first\n\nsecond\n\nthird" })
    expect(reports.map((report) => report.message).join()).toContain("broken section")
  }))

it.effect("a beforeRequest handler may end the turn and say why", () =>
  Effect.gen(function*() {
    const { harness, model } = yield* open(memory().storage(), ["never"])
    const ns = yield* harness.namespace("limits", {})
    yield* harness.hooks(ns, "generation", {
      beforeRequest: () => Effect.succeed({ end: "The limit of 0 steps is reached." })
    })
    yield* harness.resume
    const outcome = yield* Effect.flatMap(harness.main.send(user("go")), (input) => input.wait)
    expect(outcome).toMatchObject({
      status: "unanswered",
      reason: "terminated",
      error: { message: "The limit of 0 steps is reached." }
    })
    expect(model.requests.length).toBe(0)
  }))
