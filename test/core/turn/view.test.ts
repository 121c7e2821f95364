import type { ConversationView, Envelope, Harness, Watch } from "@bezel/core/harness"
import { apply, type JsonValue } from "@bezel/core/json"
import { tool } from "@bezel/core/tool"
import { expect, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import { call, defer, fail, finish, never, run, say } from "../../../packages/core/src/testing/model.ts"
import { echo, memory, open, settle, simpleKind, user } from "./fixture.ts"

interface Seen {
  readonly watch: Watch
  readonly envelopes: ReadonlyArray<Envelope>
  /** The view of then and all that came, and each view on the way. */
  readonly views: ReadonlyArray<ConversationView>
  readonly events: () => ReadonlyArray<string>
}

const watching = (conversation: Harness["main"]) =>
  Effect.gen(function*() {
    const watch = yield* conversation.watch
    const envelopes: Array<Envelope> = []
    const views = [watch.view]
    yield* Effect.forkScoped(Stream.runForEach(watch.envelopes, (envelope) =>
      Effect.sync(() => {
        envelopes.push(envelope)
        views.push(apply(views.at(-1) ?? watch.view, envelope.operations))
      })))
    const seen: Seen = {
      watch,
      envelopes,
      views,
      events: () => envelopes.flatMap((envelope) => envelope.events.map((event) => event.type))
    }
    return seen
  })

const stagesOf = (views: ReadonlyArray<ConversationView>): ReadonlyArray<string> =>
  views.map((view) => view.turn?.generation?.stage ?? "none").filter((stage, index, all) => stage !== all[index - 1])

it.effect("every cause has its event: inputs, turns, generations, calls, tasks, heads, settings, plugins, warnings", () =>
  Effect.gen(function*() {
    const gate = yield* Deferred.make<void>()
    const hang = tool({ description: "hangs", input: Schema.Struct({}), execute: () => Effect.never })
    const { harness } = yield* open(memory().storage(), [
      [run(Deferred.await(gate)), call("echo", { text: "a" })],
      [say("half"), fail("transport", { retryAfterMs: 0 })],
      [defer("token", 0)],
      [say("cut"), finish("length")],
      [fail("auth")],
      [call("hang", {})]
    ], {
      tools: (draft) => {
        draft.set("echo", echo)
        draft.set("hang", hang)
      }
    })
    const ns = yield* harness.namespace("n", { sticky: { a: 0 } })
    yield* harness.hooks(ns, "tool", {
      beforeTool: (hooked, api) => hooked.name === "echo" ? api.waiting : Effect.void
    })
    yield* harness.resume
    const seen = yield* watching(harness.main)
    const first = yield* harness.main.send(user("one"))
    const queued = yield* harness.main.send(user("two"))
    yield* queued.abort
    yield* Deferred.succeed(gate, undefined)
    yield* settle
    yield* TestClock.adjust("1 minute")
    yield* first.wait
    yield* Effect.flatMap(harness.main.send(user("three")), (input) => input.wait)
    yield* harness.main.send(user("four"))
    yield* settle
    yield* harness.main.abort()
    yield* harness.main.configure({ thinking: "high" })
    yield* harness.main.reset()
    yield* ns.update("c1", () => {}, { name: "told", data: { n: 1 } })
    const kind = simpleKind("k", () => Effect.succeed(""))
    yield* harness.task(kind)
    yield* Effect.flatMap(harness.main.commit((tx) => tx.createTask(kind, {})), harness.main.waitForTask)
    yield* settle
    expect(new Set(seen.events())).toEqual(
      new Set([
        "entry.added",
        "turn.started",
        "turn.ended",
        "input.queued",
        "input.placed",
        "input.aborted",
        "generation.started",
        "generation.retrying",
        "generation.deferred",
        "generation.completed",
        "generation.failed",
        "tool.waiting",
        "tool.started",
        "tool.finished",
        "tool.aborted",
        "head.moved",
        "task.started",
        "task.ended",
        "config.changed",
        "warning",
        "plugin.n.told"
      ])
    )
    // Events name causes; the operations alone give the view.
    expect(seen.views.at(-1)).toEqual((yield* harness.main.snapshot).view)
    expect(seen.envelopes.map((envelope) => envelope.revision)).toEqual(
      seen.envelopes.map((_, index) => seen.watch.revision + 1 + index)
    )
  }))

it.effect("a compaction has its events, and shows that it runs, that it is tried again, and no more when it has ended", () =>
  Effect.gen(function*() {
    const { harness } = yield* open(memory().storage(), [
      "one",
      "two",
      [fail("unavailable")],
      "the summary",
      [fail("auth")]
    ])
    yield* harness.resume
    for (const text of ["a", "b"]) yield* Effect.flatMap(harness.main.send(user(text)), (input) => input.wait)
    const seen = yield* watching(harness.main)
    const task = yield* harness.main.collapse()
    yield* settle
    yield* TestClock.adjust("1 minute")
    yield* harness.main.waitForTask(task)
    yield* settle
    expect(seen.events()).toEqual([
      "compaction.started",
      "compaction.retrying",
      "entry.added",
      "head.moved",
      "compaction.finished"
    ])
    const shown = seen.views.map((view) => Reflect.get(Object(view.compaction), "status") ?? null)
    expect(shown.filter((status, index) => status !== shown[index - 1])).toEqual([null, "running", "retrying", null])
    const failed = yield* Effect.flatMap(harness.main.collapse(), harness.main.waitForTask)
    yield* settle
    expect(failed.status).toBe("failed")
    expect(seen.events().slice(5)).toEqual(["compaction.started", "compaction.failed"])
  }))

it.effect("a generation shows each of its stages: preparing, requesting, streaming, retrying, deferred, waiting", () =>
  Effect.gen(function*() {
    const { harness } = yield* open(memory().storage(), [
      "hello",
      [say("half"), fail("transport")],
      [defer("token", 1_000)],
      [fail("overflow")],
      "the summary",
      "whole"
    ], { compaction: Effect.succeed({ auto: true, threshold: 1, keepRecent: 0 }) })
    yield* harness.resume
    yield* Effect.flatMap(harness.main.send(user("first")), (input) => input.wait)
    const seen = yield* watching(harness.main)
    const input = yield* harness.main.send(user("go"))
    for (let n = 0; n < 5; n++) {
      yield* settle
      yield* TestClock.adjust("1 second")
    }
    expect(yield* input.wait).toMatchObject({ text: "whole" })
    yield* settle
    expect(stagesOf(seen.views)).toEqual([
      "none",
      "preparing",
      "requesting",
      "streaming",
      "retrying",
      "requesting",
      "deferred",
      "requesting",
      "waiting",
      "preparing",
      "requesting",
      "streaming",
      "none"
    ])
    const retrying = seen.views.find((view) => view.turn?.generation?.stage === "retrying")?.turn?.generation
    expect(retrying).toMatchObject({ retryAt: 1_000, error: { kind: "transport" } })
  }))

it.effect("what one commit changes is never seen apart: the answer, the cleared stream and the end of the turn", () =>
  Effect.gen(function*() {
    const { harness } = yield* open(memory().storage(), [[say("an", "swer")]])
    yield* harness.resume
    const seen = yield* watching(harness.main)
    yield* Effect.flatMap(harness.main.send(user("go")), (input) => input.wait)
    yield* settle
    for (const view of seen.views) {
      const answered = view.entries.some((entry) => entry.kind === "bezel.assistant")
      expect(view.turn === null).toBe(answered || view.entries.length === 0)
    }
    const ending = seen.envelopes.filter(({ events }) => events.some((event) => event.type === "turn.ended"))
    expect(ending.length).toBe(1)
    expect(ending[0]?.events.map((event) => event.type)).toEqual(["entry.added", "generation.completed", "turn.ended"])
  }))

it.effect("a call shows its arguments, status, output, progress and what goes on behind it", () =>
  Effect.gen(function*() {
    const kind = simpleKind("k", () => Effect.never)
    const gate = yield* Deferred.make<void>()
    const work = tool({
      description: "works",
      input: Schema.Struct({ n: Schema.Int }),
      execute: (_, api) =>
        Effect.gen(function*() {
          yield* api.stream("out")
          yield* api.progress({ done: 1 })
          yield* api.task(kind, {}, { background: true })
          yield* api.memo("secret", "never shown")
          yield* Deferred.await(gate)
          return "done"
        })
    })
    const { harness } = yield* open(memory().storage(), [[call("work", { n: 7 }, "c1")], "ok"], {
      tools: (draft) => draft.set("work", work)
    })
    yield* harness.task(kind)
    yield* harness.resume
    const seen = yield* watching(harness.main)
    const input = yield* harness.main.send(user("go"))
    yield* settle
    yield* TestClock.adjust("1 second")
    yield* settle
    const { view } = yield* harness.main.snapshot
    const [task] = Object.keys(view.tasks)
    expect(view.turn?.tools).toEqual([{
      task: view.turn?.tools[0]?.task,
      callId: "c1",
      name: "work",
      args: { n: 7 },
      status: "running",
      waitingOn: null,
      output: "out",
      progress: { done: 1 },
      details: null,
      continuedBy: task,
      entry: null
    }])
    yield* Deferred.succeed(gate, undefined)
    yield* input.wait
    yield* settle
    const ended = seen.views.findLast((known) => known.turn?.tools[0]?.status === "completed")?.turn?.tools[0]
    expect(ended?.entry).toMatch(/^e\d+$/)
    expect(JSON.stringify([seen.views, seen.envelopes])).not.toContain("never shown")
  }))

it.effect("a projection that throws or is no JSON shows nothing, and fails no commit that storage has", () =>
  Effect.gen(function*() {
    const { harness, reports } = yield* open(memory().storage(), [])
    let result: () => JsonValue = () => "fine"
    const ns = yield* harness.namespace("n", { sticky: { a: 0 } }, { view: () => result() })
    const seen = yield* watching(harness.main)
    const set = (a: number) =>
      ns.update("c1", (draft) => {
        draft.a = a
      })
    yield* set(1)
    const wrong: ReadonlyArray<() => JsonValue> = [
      () => {
        throw new Error("a bug in a view")
      },
      () => undefined as unknown as JsonValue,
      () => new Map() as unknown as JsonValue
    ]
    for (const [index, view] of wrong.entries()) {
      result = view
      yield* set(index + 2)
      yield* set(index + 12)
      yield* settle
      expect(seen.views.at(-1)?.plugins).toEqual({})
      expect((yield* harness.main.snapshot).view.plugins).toEqual({})
    }
    result = () => "again"
    yield* set(99)
    yield* settle
    expect(seen.views.at(-1)?.plugins).toEqual({ n: "again" })
    expect(yield* ns.get("c1")).toEqual({ a: 99 })
    // It is told once, until it shows again.
    expect(reports.map((report) => report.message)).toEqual([
      'Nothing is shown where the view of the namespace "n" failed: a bug in a view'
    ])
    result = wrong[0] ?? result
    yield* set(100)
    expect(reports.length).toBe(2)
  }))

it.effect("what a session-wide namespace shows, it shows in every conversation that is watched", () =>
  Effect.gen(function*() {
    const { harness } = yield* open(memory().storage(), ["one"])
    yield* harness.resume
    yield* Effect.flatMap(harness.main.send(user("go")), (input) => input.wait)
    const fork = yield* harness.main.fork((yield* harness.main.snapshot).view.entries[0]?.id ?? "")
    const ns = yield* harness.namespace("n", { session: { a: 0 }, sticky: { own: 0 } }, { view: (state) => state })
    const main = yield* watching(harness.main)
    const other = yield* watching(fork)
    yield* ns.update("c1", (draft) => {
      draft.a = 1
      draft.own = 1
    })
    yield* settle
    expect(main.views.at(-1)?.plugins).toEqual({ n: { a: 1, own: 1 } })
    expect(other.views.at(-1)?.plugins).toEqual({ n: { a: 1, own: 0 } })
    expect(other.envelopes.length).toBe(1)
  }))

it.effect("entries of a kind that nobody defines are kept, shown and counted like any other", () =>
  Effect.gen(function*() {
    const session = memory()
    const first = yield* open(session.storage(), [])
    yield* first.harness.main.write("gone.plugin", {
      data: { run: 812 },
      model: [{ role: "user", content: [{ type: "text", text: "CI failed" }] }]
    })
    yield* first.harness.suspend
    const second = yield* open(session.storage(), ["ok"])
    yield* second.harness.resume
    expect((yield* second.harness.main.snapshot).view.entries).toMatchObject([
      { kind: "gone.plugin", data: { run: 812 } }
    ])
    yield* Effect.flatMap(second.harness.main.send(user("go")), (input) => input.wait)
    expect(JSON.stringify(second.model.requests[0]?.messages)).toContain("CI failed")
  }))

it.effect("only entries with a message reach a model: not data, not namespaces, not slots, not failed answers", () =>
  Effect.gen(function*() {
    const { harness, model } = yield* open(memory().storage(), [
      [say("half an answer"), fail("transport", { retryAfterMs: 0 })],
      [fail("auth", { message: "canary in an error" })],
      [say("canary that is aborted"), never],
      "ok"
    ])
    const ns = yield* harness.namespace("n", { sticky: { a: "canary in a namespace" } }, { view: (state) => state })
    yield* harness.main.write("mine", { data: "canary in data" })
    yield* ns.update("c1", (draft) => {
      draft.a = "canary in an update"
    })
    yield* harness.resume
    yield* Effect.forkChild(harness.main.send(user("one")))
    yield* settle
    yield* TestClock.adjust("1 second")
    yield* settle
    yield* harness.main.send(user("two"))
    yield* settle
    yield* harness.main.abort()
    yield* Effect.flatMap(harness.main.send(user("three")), (input) => input.wait)
    expect(model.requests.length).toBe(4)
    expect(JSON.stringify(model.requests)).not.toMatch(/canary|half an answer/)
    const shown = JSON.stringify((yield* harness.main.snapshot).view)
    expect(shown).toContain("half an answer")
    expect(shown).toContain("canary that is aborted")
  }))

it.effect("a watcher that does not take what comes is cut off, told so, and no other notices", () =>
  Effect.gen(function*() {
    const { harness } = yield* open(memory().storage(), [])
    const deaf = yield* harness.main.watch
    const seen = yield* watching(harness.main)
    yield* Effect.forEach(Array.from({ length: 4_200 }), (_, n) => harness.main.write("note", { data: n }), {
      discard: true
    })
    yield* settle
    expect(yield* Effect.flip(Stream.runDrain(deaf.envelopes))).toMatchObject({
      message: expect.stringContaining("watch again")
    })
    expect(seen.views.at(-1)?.entries.length).toBe(4_200)
  }))
