/** What a crash does to each kind of work. The process is gone the moment that its storage takes nothing more. */
import { type Batch, type MemorySession, type Storage, StorageError } from "@bezel/core/storage"
import { makeToolRegistry, type Replay, tool } from "@bezel/core/tool"
import { openHarness } from "@bezel/core/turn"
import { expect, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import {
  call,
  fail,
  never,
  run,
  say,
  scriptedModel,
  type ScriptedTurn
} from "../../../packages/core/src/testing/model.ts"
import { memory, open, settle, simpleKind, user } from "./fixture.ts"

it.effect("a session whose storage has failed runs nothing any more: what runs is interrupted, nothing is tried again", () =>
  Effect.scoped(Effect.gen(function*() {
    let starts = 0
    let unwound = 0
    const hanging = simpleKind("k", () =>
      Effect.andThen(
        Effect.sync(() => starts++),
        Effect.onInterrupt(Effect.never, () => Effect.asVoid(Effect.sync(() => unwound++)))
      ))
    const session = memory()
    const storage = dyingAt(session, reaches("retrying"))
    const { harness, model } = yield* open(storage, [[fail("unavailable", { retryAfterMs: 0 })], "never given"])
    yield* harness.task(hanging)
    yield* harness.resume
    yield* harness.main.commit((tx) => tx.createTask(hanging, {}))
    yield* harness.main.send(user("go"))
    yield* settle
    yield* TestClock.adjust("1 second")
    yield* settle
    expect(yield* harness.faulted).toMatchObject({ code: "faulted" })
    expect([starts, unwound, model.requests.length]).toEqual([1, 1, 1])
    expect(yield* harness.quiescent).toBe(true)
  })))

/** Storage that takes nothing from the commit on that `isLast` names: as if the process had died behind it, or before it. */
const dyingAt = (session: MemorySession, isLast: (batch: Batch) => boolean): Storage => {
  const storage = session.storage()
  let dead = false
  return {
    ...storage,
    commit: (batch) =>
      Effect.suspend(() => {
        if (dead) return Effect.fail(new StorageError({ kind: "io", message: "the process is gone", path: null }))
        dead = isLast(batch)
        return storage.commit(batch)
      })
  }
}

const reaches = (phase: string) => (batch: Batch) =>
  batch.tasks.some((task) => task.status === "running" && JSON.stringify(task.checkpoint).includes(`"${phase}"`))

/** One life up to the commit at which it dies, with the input `r` sent. */
const dies = (session: MemorySession, script: ReadonlyArray<ScriptedTurn>, isLast: (batch: Batch) => boolean) =>
  Effect.gen(function*() {
    const opened = yield* open(dyingAt(session, isLast), script)
    yield* opened.harness.resume
    yield* opened.harness.main.send({ ...user("go"), requestID: "r" })
    yield* Effect.forkScoped(Effect.exit(opened.harness.main.write("whatever", {})))
    yield* settle
    yield* TestClock.adjust("1 second")
    yield* settle
    return opened
  })

const livesOn = (session: MemorySession, script: ReadonlyArray<ScriptedTurn>) =>
  Effect.gen(function*() {
    const opened = yield* open(session.storage(), script)
    yield* opened.harness.resume
    return { ...opened, input: yield* opened.harness.main.send({ ...user("go"), requestID: "r" }) }
  })

const kindsOf = (entries: ReadonlyArray<{ readonly kind: string }>) =>
  entries.map((entry) => entry.kind.replace("bezel.", "")).filter((kind) => kind !== "whatever").join(" ")

it.effect("a crash before the request was begun is no failed attempt", () =>
  Effect.scoped(Effect.gen(function*() {
    const session = memory()
    const first = yield* dies(
      session,
      ["never given"],
      (batch) => batch.inputs.some((input) => input.requestID === "r")
    )
    expect(first.model.requests.length).toBeLessThanOrEqual(1)
    const { harness, input } = yield* livesOn(session, ["answer"])
    expect(yield* input.wait).toMatchObject({ text: "answer" })
    expect(kindsOf((yield* harness.main.snapshot).view.entries)).toBe("user assistant")
  })))

it.effect("a crash while the model answers is a failed attempt: what had come stays for display, and it is asked again", () =>
  Effect.scoped(Effect.gen(function*() {
    const session = memory()
    let commits = 0
    yield* dies(session, [[say("half an answer"), never]], (batch) => {
      commits += JSON.stringify(batch.documents).includes("half an answer") ? 1 : 0
      return commits > 0
    })
    const { harness, input, model } = yield* livesOn(session, ["whole"])
    expect(yield* input.wait).toMatchObject({ text: "whole" })
    const { entries } = (yield* harness.main.snapshot).view
    expect(kindsOf(entries)).toBe("user assistant usage assistant")
    expect(entries[1]).toMatchObject({ model: null, data: { partial: "failed", parts: [{ text: "half an answer" }] } })
    expect(entries[2]).toMatchObject({ data: { attempt: 1, error: { kind: "transport" } } })
    expect(JSON.stringify(model.requests[0]?.messages)).not.toContain("half an answer")
  })))

it.effect("crashes while the model answers count like other failed attempts: after the last one the turn fails", () =>
  Effect.scoped(Effect.gen(function*() {
    const session = memory()
    for (let life = 1; life <= 5; life++) {
      yield* dies(session, [[never]], reaches("requesting"))
    }
    const { input, model } = yield* livesOn(session, ["too late"])
    expect(yield* input.wait).toMatchObject({ status: "unanswered", reason: "failed", error: { kind: "transport" } })
    expect(model.requests.length).toBe(0)
  })))

it.effect("a crash between two attempts waits for the time that was set, and not longer", () =>
  Effect.scoped(Effect.gen(function*() {
    const session = memory()
    yield* dies(session, [[fail("unavailable", { retryAfterMs: 60_000 })]], reaches("retrying"))
    const { input, model } = yield* livesOn(session, ["answer"])
    const waiting = yield* Effect.forkChild(input.wait)
    yield* settle
    yield* TestClock.adjust("58 seconds")
    yield* settle
    expect(model.requests.length).toBe(0)
    yield* TestClock.adjust("1 second")
    expect(yield* Fiber.join(waiting)).toMatchObject({ text: "answer" })
  })))

it.effect("a crash between an abort's mark and its end resumes the abort", () =>
  Effect.scoped(Effect.gen(function*() {
    const session = memory()
    let aborted = 0
    const kind = () =>
      simpleKind("k", () => Effect.never, {
        abort: () => Effect.asVoid(Effect.sync(() => aborted++))
      })
    const first = yield* open(dyingAt(session, (batch) => batch.tasks.some((task) => task.abort !== null)), [[
      call("echo", { text: "a" }, "c1")
    ]])
    const ns = yield* first.harness.namespace("n", {})
    yield* first.harness.hooks(ns, "tool", { beforeTool: (_, api) => Effect.andThen(api.waiting, Effect.never) })
    const own = kind()
    yield* first.harness.task(own)
    yield* first.harness.resume
    const ref = yield* first.harness.main.commit((tx) => tx.createTask(own, {}))
    yield* first.harness.main.send({ ...user("go"), requestID: "r" })
    yield* settle
    expect((yield* Effect.flip(first.harness.main.abort())).code).toBe("faulted")
    const second = yield* open(session.storage(), ["never asked"])
    yield* second.harness.task(kind())
    yield* second.harness.resume
    const input = yield* second.harness.main.send({ ...user("go"), requestID: "r" })
    expect(yield* input.wait).toMatchObject({ status: "unanswered", reason: "aborted" })
    expect(second.model.requests.length).toBe(0)
    const results = yield* second.harness.main.entries({ kind: "bezel.tool_result" })
    expect(results).toMatchObject([{ data: { callID: "c1", code: "aborted" } }])
    // The kind's own task was not marked, and goes on.
    expect(aborted).toBe(0)
    yield* second.harness.main.abortTask(ref)
    expect(aborted).toBe(1)
  })))

interface Offered {
  readonly plugin: string
  readonly version: string
  readonly replay: Replay
  readonly description: string
  readonly field: "text" | "path"
}

const offered: Offered = { plugin: "p", version: "1", replay: "safe", description: "works", field: "text" }

/** A life whose one tool hangs at first, or finishes. */
const withTool = (
  storage: Storage,
  script: ReadonlyArray<ScriptedTurn>,
  { field, plugin, replay, ...given }: Offered,
  ran: {
    readonly started: Deferred.Deferred<void>
    runs: number
  },
  hang: "in a hook" | "in the tool" | "nowhere"
) =>
  Effect.gen(function*() {
    const registry = yield* makeToolRegistry()
    const work = <I>(input: Schema.Codec<I, unknown>) =>
      tool({
        description: given.description,
        input,
        replay,
        execute: () =>
          Effect.suspend(() => {
            ran.runs++
            return hang === "in the tool"
              ? Effect.andThen(Deferred.succeed(ran.started, undefined), Effect.never)
              : Effect.succeed("worked")
          })
      })
    yield* registry.transform(
      { plugin, version: given.version, order: 0 },
      (draft) =>
        draft.set(
          "work",
          field === "text"
            ? work(Schema.Struct({ text: Schema.String }))
            : work(Schema.Struct({ path: Schema.String }))
        )
    )
    const model = scriptedModel(script)
    const harness = yield* openHarness(storage, {
      sessionID: "ses_test",
      models: model.source,
      tools: registry,
      artifact: () => Effect.die(new Error("no artifacts in this test"))
    })
    const ns = yield* harness.namespace("n", {})
    yield* harness.hooks(ns, "tool", {
      beforeTool: (_, api) =>
        hang === "in a hook"
          ? Effect.andThen(api.waiting, Effect.andThen(Deferred.succeed(ran.started, undefined), Effect.never))
          : Effect.void
    })
    yield* harness.resume
    return { harness, model }
  })

const changes: ReadonlyArray<readonly [what: string, change: Partial<Offered>, started: string, before: string]> = [
  ["the same tool", {}, "worked", "worked"],
  ["a tool of another plugin", { plugin: "q" }, "interrupted", "stale_tool"],
  ["another version of the plugin", { version: "2" }, "interrupted", "stale_tool"],
  ["another declaration", { description: "works differently" }, "interrupted", "stale_tool"],
  ["a tool that says no more that it may be repeated", { replay: "never" }, "interrupted", "stale_tool"],
  ["arguments that are not valid any more", { field: "path" }, "interrupted", "invalid_arguments"]
]

const recovered = (first: Offered, then: Offered, hang: "in a hook" | "in the tool") =>
  Effect.scoped(Effect.gen(function*() {
    const session = memory()
    const ran = { started: Deferred.makeUnsafe<void>(), runs: 0 }
    const one = yield* withTool(session.storage(), [[call("work", { text: "a" }, "c1")]], first, ran, hang)
    yield* one.harness.main.send({ ...user("go"), requestID: "r" })
    yield* Deferred.await(ran.started)
    yield* one.harness.suspend
    const two = yield* withTool(session.storage(), ["done"], then, ran, "nowhere")
    const input = yield* two.harness.main.send({ ...user("go"), requestID: "r" })
    expect(yield* input.wait).toMatchObject({ text: "done" })
    const results = yield* two.harness.main.entries({ kind: "bezel.tool_result" })
    expect(results.length).toBe(1)
    const code: unknown = Reflect.get(Object(results[0]?.data), "code")
    return { outcome: code ?? "worked", runs: ran.runs }
  }))

it.effect.each(changes)("a call that had started meets %s", ([, change, started]) =>
  Effect.gen(function*() {
    expect(yield* recovered(offered, { ...offered, ...change }, "in the tool")).toEqual({
      outcome: started,
      runs: started === "worked" ? 2 : 1
    })
  }))

it.effect.each(changes)("a call that had not started meets %s", ([, change, , before]) =>
  Effect.gen(function*() {
    expect(yield* recovered(offered, { ...offered, ...change }, "in a hook")).toEqual({
      outcome: before,
      runs: before === "worked" ? 1 : 0
    })
  }))

it.effect("a call that had started and may not be repeated is not, also when the tool says by now that it may", () =>
  Effect.gen(function*() {
    const once = { ...offered, replay: "never" } as const
    expect(yield* recovered(once, once, "in the tool")).toEqual({ outcome: "interrupted", runs: 1 })
    expect(yield* recovered(once, offered, "in the tool")).toEqual({ outcome: "interrupted", runs: 1 })
  }))

it.effect("what a tool wants done on its abort is done once, and not when the session is suspended or closed", () =>
  Effect.scoped(Effect.gen(function*() {
    const session = memory()
    const done: Array<string> = []
    const hanging = (name: string) =>
      tool({
        description: name,
        input: Schema.Struct({}),
        replay: "safe",
        execute: (_, api) =>
          Effect.gen(function*() {
            yield* api.onAbort(Effect.asVoid(Effect.sync(() => done.push(name))))
            yield* api.onAbort(Effect.die(new Error("a broken one keeps no other from running")))
            yield* api.onAbort(Effect.asVoid(Effect.sync(() => done.push(`${name} too`))))
            return yield* Effect.never
          })
      })
    const first = yield* open(session.storage(), [[call("work", {})]], {
      tools: (draft) => draft.set("work", hanging("first"))
    })
    yield* first.harness.resume
    yield* first.harness.main.send({ ...user("go"), requestID: "r" })
    yield* settle
    yield* first.harness.suspend
    expect(done).toEqual([])
    const second = yield* open(session.storage(), [], { tools: (draft) => draft.set("work", hanging("first")) })
    yield* second.harness.resume
    yield* settle
    yield* second.harness.main.abort()
    expect(done).toEqual(["first", "first too"])
  })))

it.effect("no task is created by a call whose turn was aborted, nor anything written by it", () =>
  Effect.scoped(Effect.gen(function*() {
    const kind = simpleKind("k", () => Effect.succeed(""))
    const gate = yield* Deferred.make<void>()
    const late: Array<string> = []
    const work = tool({
      description: "goes on when it should have stopped",
      input: Schema.Struct({}),
      execute: (_, api) =>
        Effect.uninterruptible(Effect.gen(function*() {
          yield* Deferred.await(gate)
          late.push((yield* Effect.exit(api.task(kind, {})))._tag)
          late.push((yield* Effect.exit(api.memo("m", 1)))._tag)
          return "done"
        }))
    })
    const { harness } = yield* open(memory().storage(), [[run(Effect.void), call("work", {})]], {
      tools: (draft) => draft.set("work", work)
    })
    yield* harness.task(kind)
    yield* harness.resume
    yield* harness.main.send(user("go"))
    yield* settle
    const aborting = yield* Effect.forkChild(harness.main.abort())
    yield* settle
    yield* Deferred.succeed(gate, undefined)
    yield* Fiber.join(aborting)
    expect(late).toEqual(["Failure", "Failure"])
    expect((yield* harness.main.snapshot).view.tasks).toEqual({})
  })))
