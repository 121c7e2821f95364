import type { InputOutcome } from "@bezel/core/harness"
import type { Batch } from "@bezel/core/storage"
import { tool, toolResult } from "@bezel/core/tool"
import { expect, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { call, fail, never, run, say } from "../../../packages/core/src/testing/model.ts"
import { echo, memory, open, settle, user, watched } from "./fixture.ts"

const textsOf = (messages: ReadonlyArray<{ readonly role: string; readonly content: unknown }> | undefined) =>
  (messages ?? []).filter((message) => message.role === "user").map((message) =>
    JSON.stringify(message.content).replaceAll(/.*"text":"([^"]*)".*/g, "$1")
  )

const busyThen = (queue: "one" | "all") =>
  Effect.gen(function*() {
    const gate = yield* Deferred.make<void>()
    const opened = yield* open(memory().storage(), [
      [run(Deferred.await(gate)), call("echo", { text: "a" })],
      [call("echo", { text: "b" })],
      "a1",
      "a2",
      "a3"
    ], { defaults: { queue } })
    yield* opened.harness.resume
    const { main } = opened.harness
    const inputs = [yield* main.send(user("first"))]
    for (
      const [text, whenBusy] of [["f1", "followUp"], ["s1", "steer"], ["s2", "steer"], ["f2", "followUp"]] as const
    ) {
      inputs.push(yield* main.send({ ...user(text), whenBusy }))
    }
    yield* Deferred.succeed(gate, undefined)
    for (const input of inputs) yield* input.wait
    return opened.model.requests.map((request) => textsOf(request.messages).slice(-3).join(" "))
  })

it.effect("a boundary places one queued input: steers after tools, follow-ups after an answer, in admission order", () =>
  Effect.gen(function*() {
    expect(yield* busyThen("one")).toEqual(["first", "first s1", "first s1 s2", "s1 s2 f1", "s2 f1 f2"])
  }))

it.effect("a boundary places all queued inputs where it is set so", () =>
  Effect.gen(function*() {
    expect(yield* busyThen("all")).toEqual(["first", "first s1 s2", "first s1 s2", "s2 f1 f2"])
  }))

it.effect("an input tells how it ended, and null before", () =>
  Effect.gen(function*() {
    const gate = yield* Deferred.make<void>()
    const { harness } = yield* open(memory().storage(), [[run(Deferred.await(gate)), say("one")], "two"])
    yield* harness.resume
    const first = yield* harness.main.send(user("one"))
    const queued = yield* harness.main.send(user("two"))
    yield* settle
    expect([yield* first.result, yield* queued.result]).toEqual([null, null])
    yield* queued.abort
    expect(yield* queued.result).toEqual({ status: "unanswered", reason: "aborted", error: null })
    yield* Deferred.succeed(gate, undefined)
    const outcome = yield* first.wait
    expect(yield* first.result).toEqual(outcome)
    const found = yield* harness.main.input(first.id)
    expect(yield* found?.result ?? Effect.die("it is gone")).toEqual(outcome)
    expect(yield* harness.main.input("i999")).toBeNull()
  }))

it.effect("what waits when a conversation starts over is stale, and tells so in that commit", () =>
  Effect.gen(function*() {
    const batches: Array<Batch> = []
    const storage = watched(memory().storage(), (batch) => Effect.sync(() => batches.push(batch)))
    const { harness, model } = yield* open(storage, [[never], "fresh"])
    yield* harness.resume
    yield* harness.main.send(user("one"))
    const queued = yield* harness.main.send(user("two"))
    yield* settle
    expect(yield* Effect.flip(harness.main.reset())).toMatchObject({ code: "busy" })
    yield* harness.main.abort()
    expect((yield* harness.main.snapshot).view.inbox.length).toBe(1)
    yield* harness.main.reset("only this")
    expect(yield* queued.wait).toEqual({ status: "unanswered", reason: "stale", error: null })
    expect(batches.at(-1)).toMatchObject({ inputs: [{ reason: "stale" }], entries: [{ kind: "bezel.handoff" }] })
    expect((yield* harness.main.snapshot).view.inbox).toEqual([])
    yield* Effect.flatMap(harness.main.send(user("three")), (input) => input.wait)
    expect(textsOf(model.requests.at(-1)?.messages)).toEqual(["only this", "three"])
  }))

const stop = tool({
  description: "Stops.",
  input: Schema.Struct({}),
  execute: () => Effect.succeed(toolResult({ content: "bye", control: { terminate: true } }))
})

const endings: ReadonlyArray<
  readonly [what: string, turn: Parameters<typeof open>[1][number], ends: Partial<InputOutcome>, kinds: string]
> = [
  ["answered", "hello", { status: "done" }, "bezel.assistant"],
  ["terminated by a tool", [call("stop", {})], { reason: "terminated" }, "bezel.failure"],
  ["failed", [fail("auth")], { reason: "failed" }, "bezel.failure"],
  ["aborted", [never], { reason: "aborted" }, "bezel.failure"]
]

it.effect.each(endings)(
  "an input that is %s ends in the same commit as its cause",
  ([what, turn, ends, kind]) =>
    Effect.gen(function*() {
      const batches: Array<Batch> = []
      const storage = watched(memory().storage(), (batch) => Effect.sync(() => batches.push(batch)))
      const { harness } = yield* open(storage, [turn], {
        tools: (draft) => {
          draft.set("echo", echo)
          draft.set("stop", stop)
        }
      })
      yield* harness.resume
      const input = yield* harness.main.send(user("go"))
      yield* settle
      if (what === "aborted") yield* harness.main.abort()
      expect(yield* input.wait).toMatchObject(ends)
      const ending = batches.filter((batch) => batch.inputs.some((record) => /done|unanswered/.test(record.status)))
      expect(ending.length).toBe(1)
      expect(ending[0]?.entries.map((entry) => entry.kind)).toContain(kind)
      expect(ending[0]?.tasks.some((task) => /completed|failed|aborted/.test(task.status))).toBe(true)
      expect(JSON.stringify(ending[0]?.events)).toContain("turn.ended")
    })
)

it.effect("a request id names its first acceptance for the life of the session, also after it ended and a reopen", () =>
  Effect.gen(function*() {
    const session = memory()
    const first = yield* open(session.storage(), ["one", "two"])
    yield* first.harness.resume
    const accepted = yield* first.harness.main.send({ ...user("go"), requestID: "r" })
    const racing = yield* Effect.all(
      Array.from({ length: 5 }, () => first.harness.main.send({ ...user("other text"), requestID: "r" })),
      { concurrency: 5 }
    )
    expect(new Set(racing.map((input) => input.id))).toEqual(new Set([accepted.id]))
    expect(yield* accepted.wait).toMatchObject({ text: "one" })
    yield* first.harness.suspend
    const second = yield* open(session.storage(), ["never asked"])
    yield* second.harness.resume
    const again = yield* second.harness.main.send({ ...user("go"), requestID: "r", whenBusy: "reject" })
    expect(again.id).toBe(accepted.id)
    expect(yield* again.wait).toMatchObject({ text: "one" })
    expect(second.model.requests.length).toBe(0)
  }))

it.effect("an input without content is refused, and one that would have to wait is, where it says so", () =>
  Effect.gen(function*() {
    const { harness } = yield* open(memory().storage(), [[never]])
    yield* harness.resume
    for (const content of [[], [{ type: "text", text: 7 }], [{ type: "video" }], "text", null, [undefined]]) {
      const sent = harness.main.send({ content: content as unknown as ReturnType<typeof user>["content"] })
      expect(yield* Effect.flip(sent)).toMatchObject({ code: "invalid", message: expect.stringContaining("content") })
    }
    yield* harness.main.send({ ...user("one"), whenBusy: "reject" })
    yield* settle
    const fault = yield* Effect.flip(harness.main.send({ ...user("two"), whenBusy: "reject" }))
    expect(fault).toMatchObject({ code: "busy", message: expect.stringContaining("follow-up") })
    expect((yield* harness.main.snapshot).view.inbox).toEqual([])
  }))
