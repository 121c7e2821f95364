/** The four durable primitives: where each lives, how long, who sees it; and registrations that come and go. */
import { TaskKind } from "@bezel/core/harness"
import type { Message } from "@bezel/core/model"
import type { Batch } from "@bezel/core/storage"
import { tool } from "@bezel/core/tool"
import { expect, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import { call, say } from "../../../packages/core/src/testing/model.ts"
import { echo, memory, open, settle, simpleKind, user, watched } from "./fixture.ts"

const counting = (gate: Effect.Effect<void>, name = "counting") =>
  TaskKind.make(name, {
    input: Schema.Struct({}),
    checkpoint: Schema.Struct({ phase: Schema.Literal("counting"), at: Schema.Int }),
    slot: { schema: Schema.Struct({ seen: Schema.mutableKey(Schema.Int) }), initial: { seen: 0 } },
    result: Schema.Int,
    failure: Schema.Never,
    initial: () =>
      Effect.succeed({
        next: (tx: { readonly slot: { seen: number } }) => {
          tx.slot.seen = 7
          return { phase: "counting", at: 1 } as const
        }
      }),
    phases: {
      counting: (task) => Effect.as(gate, { done: () => ({ status: "completed", result: task.slot.seen } as const) })
    },
    describe: (task) => ({ at: task.checkpoint?.at ?? 0, seen: task.slot.seen })
  })

it.effect("a fork sees entries, settings and rewindable state; no task, no checkpoint, no slot, nothing sticky", () =>
  Effect.gen(function*() {
    const { harness } = yield* open(memory().storage(), ["one"])
    const ns = yield* harness.namespace("n", { rewindable: { r: 0 }, sticky: { s: 0 } }, { view: (state) => state })
    const kind = counting(Effect.never)
    yield* harness.task(kind)
    yield* harness.resume
    yield* harness.main.configure({ thinking: "high" })
    yield* ns.update("c1", (draft) => {
      draft.r = 1
      draft.s = 1
    })
    yield* harness.main.commit((tx) => tx.createTask(kind, {}, { background: true }))
    yield* Effect.flatMap(harness.main.send(user("go")), (input) => input.wait)
    const { view } = yield* harness.main.snapshot
    expect(Object.values(view.tasks)).toMatchObject([{ status: { at: 1, seen: 7 } }])
    const fork = yield* harness.main.fork(view.entries.at(-1)?.id ?? "")
    const forked = (yield* fork.snapshot).view
    expect(forked.entries).toEqual(view.entries)
    expect(forked.config.thinking).toBe("high")
    expect(forked.plugins).toEqual({ n: { r: 1, s: 0 } })
    expect(forked.tasks).toEqual({})
    expect(JSON.stringify(forked)).not.toContain("seen")
  }))

it.effect("a slot is gone in the commit that ends its task, and is told to nobody but through what describes the task", () =>
  Effect.gen(function*() {
    const batches: Array<Batch> = []
    const storage = watched(memory().storage(), (batch) => Effect.sync(() => batches.push(batch)))
    const { harness } = yield* open(storage, [])
    const gate = yield* Deferred.make<void>()
    const kind = counting(Deferred.await(gate))
    yield* harness.task(kind)
    yield* harness.resume
    const ref = yield* harness.main.commit((tx) => tx.createTask(kind, {}))
    yield* settle
    expect(yield* storage.document("sticky:c1")).toMatchObject({ slots: { [ref.id]: { data: { seen: 7 } } } })
    yield* Deferred.succeed(gate, undefined)
    expect(yield* harness.main.waitForTask(ref)).toMatchObject({ result: 7 })
    const last = batches.at(-1)
    expect(last?.tasks).toMatchObject([{ id: ref.id, status: "completed" }])
    expect(last?.documents).toMatchObject([{ document: "sticky:c1", operations: [["delete", ["slots", ref.id]]] }])
    expect(yield* storage.document("sticky:c1")).toMatchObject({ slots: {} })
  }))

it.effect("an entry is never changed: what is written later stands beside it", () =>
  Effect.gen(function*() {
    const session = memory()
    const { harness } = yield* open(session.storage(), ["one", "two"])
    yield* harness.resume
    const id = yield* harness.main.write("mine", { data: { n: 1 } })
    const stored = yield* session.storage().entry(id)
    yield* Effect.flatMap(harness.main.send(user("go")), (input) => input.wait)
    yield* harness.main.write("mine", { data: { n: 2 } })
    yield* harness.main.reset("fresh")
    expect(yield* session.storage().entry(id)).toEqual(stored)
    // Out of the context, not out of the session.
    expect((yield* harness.main.snapshot).view.entries.map((entry) => entry.kind)).toEqual(["bezel.handoff"])
    expect((yield* harness.main.entries({ kind: "mine" })).map((entry) => entry.data)).toEqual([{ n: 1 }, { n: 2 }])
  }))

it.effect("a call knows its place, and reads another task's slot as a copy", () =>
  Effect.gen(function*() {
    const kind = counting(Effect.never)
    const seen: Array<unknown> = []
    const look = tool({
      description: "looks",
      input: Schema.Struct({}),
      execute: (_, api) =>
        Effect.gen(function*() {
          seen.push([api.sessionID, api.conversationID, api.callID, api.name, /^t\d+$/.test(api.taskID)])
          const ref = yield* api.task(kind, {})
          yield* settle
          const slot = yield* api.slot(ref)
          seen.push(structuredClone(slot))
          if (slot !== null && typeof slot === "object") Reflect.set(slot, "seen", 99)
          seen.push(yield* api.slot(ref), yield* api.slot({ id: "t999", kind: "k" }))
          return "looked"
        })
    })
    const { harness } = yield* open(memory().storage(), [[call("look", {}, "c1")], "ok"], {
      tools: (draft) => draft.set("look", look)
    })
    yield* harness.task(kind)
    yield* harness.resume
    yield* Effect.flatMap(harness.main.send(user("go")), (input) => input.wait)
    expect(seen).toEqual([["ses_test", "c1", "c1", "look", true], { seen: 7 }, { seen: 7 }, null])
  }))

it.effect("registrations end with their scope, each exactly once, and duplicates are refused until then", () =>
  Effect.gen(function*() {
    const { harness, model } = yield* open(memory().storage(), [[call("echo", { text: "a" })], "one", [
      call("echo", { text: "b" })
    ], "two"])
    const scope = yield* Scope.make()
    const kind = simpleKind("k", () => Effect.succeed("done"))
    const ran: Array<string> = []
    const register = Effect.gen(function*() {
      const ns = yield* harness.namespace("n", {})
      yield* harness.hooks(ns, "tool", { beforeTool: () => Effect.asVoid(Effect.sync(() => ran.push("hook"))) })
      yield* harness.section({ id: "s", order: 1, text: () => Effect.succeed("the section") })
      yield* harness.task(kind)
    })
    yield* Scope.provide(register, scope)
    const codes = [
      yield* Effect.flip(harness.namespace("n", {})),
      yield* Effect.flip(harness.section({ id: "s", order: 2, text: () => Effect.succeed("") })),
      yield* Effect.flip(harness.task(kind))
    ]
    expect(codes.map((error) => error.code)).toEqual(["duplicate", "duplicate", "duplicate"])
    yield* harness.resume
    yield* Effect.flatMap(harness.main.send(user("one")), (input) => input.wait)
    yield* Scope.close(scope, Exit.void)
    yield* Effect.flatMap(harness.main.send(user("two")), (input) => input.wait)
    expect(ran).toEqual(["hook"])
    expect(model.requests.map((request) => request.messages[0]?.role)).toEqual(["system", "system", "user", "user"])
    expect((yield* Effect.flip(harness.main.commit((tx) => tx.createTask(kind, {})))).code).toBe("stale_definition")
    // All of it can be registered again.
    yield* register
    const ref = yield* harness.main.commit((tx) => tx.createTask(kind, {}))
    expect(yield* harness.main.waitForTask(ref)).toMatchObject({ result: "done" })
  }))

it.effect("what runs keeps the code that it began with when its kind is unregistered; what waits gets the new code", () =>
  Effect.gen(function*() {
    const { harness } = yield* open(memory().storage(), [])
    const gate = yield* Deferred.make<void>()
    const old = simpleKind("k", () => Effect.as(Deferred.await(gate), "old"))
    const registration = yield* harness.task(old)
    yield* harness.resume
    const [running, waiting] = yield* harness.main.commit((tx) => {
      const running = tx.createTask(old, {})
      return [running, tx.createTask(old, {}, { after: [running] })] as const
    })
    yield* settle
    yield* registration.unregister
    yield* registration.unregister
    yield* Deferred.succeed(gate, undefined)
    expect(yield* harness.main.waitForTask(running)).toMatchObject({ result: "old" })
    yield* settle
    expect(Object.keys((yield* harness.main.snapshot).view.tasks)).toEqual([])
    yield* harness.task(simpleKind("k", () => Effect.succeed("new")))
    expect(yield* harness.main.waitForTask(waiting)).toMatchObject({ result: "new" })
  }))

const isPaired = (messages: ReadonlyArray<Message>): boolean =>
  messages.every((message, index) => {
    const calls = message.role === "assistant"
      ? message.content.flatMap((part) => part.type === "tool-call" ? [part.id] : [])
      : []
    const next = messages[index + 1]
    return calls.length === 0 || next?.role === "tool" && next.content.map((part) => part.id).join() === calls.join()
  })

it.effect("a compaction during a running batch of calls keeps that exchange whole", () =>
  Effect.gen(function*() {
    const gate = yield* Deferred.make<void>()
    const slow = tool({
      description: "waits",
      input: Schema.Struct({}),
      execute: () => Effect.as(Deferred.await(gate), "slow result")
    })
    const { harness, model } = yield* open(memory().storage(), [
      "one",
      "two",
      [say("working"), call("slow", {}, "s1"), call("echo", { text: "a" }, "e1"), call("slow", {}, "s2")],
      (request) => JSON.stringify(request.messages).includes("Summarize this") ? "the summary" : "answer",
      (request) => JSON.stringify(request.messages).includes("Summarize this") ? "the summary" : "answer",
      "after"
    ], {
      compaction: Effect.succeed({ auto: true, threshold: 0.8, keepRecent: 0 }),
      tools: (draft) => {
        draft.set("slow", slow)
        draft.set("echo", echo)
      }
    })
    yield* harness.resume
    for (const text of ["a", "b"]) yield* Effect.flatMap(harness.main.send(user(text)), (input) => input.wait)
    const input = yield* Effect.flatMap(harness.main.send(user("c")), (sent) => Effect.forkChild(sent.wait))
    yield* settle
    const task = yield* harness.main.collapse()
    expect(yield* harness.main.waitForTask(task)).toMatchObject({ status: "completed" })
    yield* Deferred.succeed(gate, undefined)
    expect(yield* Fiber.join(input)).toMatchObject({ text: "answer" })
    const sent = model.requests.at(-1)?.messages ?? []
    expect(isPaired(sent)).toBe(true)
    expect(JSON.stringify(sent)).toContain("the summary")
    expect(JSON.stringify(sent)).toContain("slow result")
    yield* Effect.flatMap(harness.main.send(user("d")), (next) => next.wait)
    expect(model.requests.every((request) => isPaired(request.messages))).toBe(true)
  }))
