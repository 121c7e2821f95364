/**
 * A wall clock that jumps ahead or back: somebody sets it, a laptop sleeps, a machine's clock is corrected. What waits goes on
 * in bounded time, order is that of the commits, and nothing is lost or done twice.
 */
import type { Harness } from "@bezel/core/harness"
import { Interaction, InteractionBroker } from "@bezel/core/service"
import type { MemorySession } from "@bezel/core/storage"
import { tool } from "@bezel/core/tool"
import { makeJobKind, type ProcessHost, type ProcessStatus } from "@bezel/core/turn"
import { describe, expect, it } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import { call, defer, fail, run, say, type ScriptedTurn, wait } from "../../packages/core/src/testing/model.ts"
import { echo, memory, open, settle, user } from "../core/turn/fixture.ts"

const Ask = Interaction.make("test.ask")({ request: Schema.String, response: Schema.String, unattended: "wait" })

const hour = 3_600_000
const jumps: ReadonlyArray<{ readonly jump: string; readonly millis: number }> = [
  { jump: "an hour back", millis: -hour },
  { jump: "ten years back", millis: -87_600 * hour },
  { jump: "an hour ahead", millis: hour },
  { jump: "ten years ahead", millis: 87_600 * hour }
]

/** The test's clock, whose time of day can be set without any timer noticing. */
const settable = Effect.map(Clock.clockWith(Effect.succeed), (clock) => {
  let offset = 0
  const skewed: Clock.Clock = {
    currentTimeMillisUnsafe: () => clock.currentTimeMillisUnsafe() + offset,
    currentTimeMillis: Effect.map(clock.currentTimeMillis, (millis) => millis + offset),
    currentTimeNanosUnsafe: () => clock.currentTimeNanosUnsafe() + BigInt(offset) * 1_000_000n,
    currentTimeNanos: Effect.map(clock.currentTimeNanos, (nanos) => nanos + BigInt(offset) * 1_000_000n),
    monotonicTimeNanosUnsafe: () => clock.monotonicTimeNanosUnsafe(),
    monotonicTimeNanos: clock.monotonicTimeNanos,
    sleep: (duration) => clock.sleep(duration)
  }
  return {
    on: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.provideService(effect, Clock.Clock, skewed),
    set: (millis: number) => {
      offset += millis
    }
  }
})

const start = (session: MemorySession, script: ReadonlyArray<ScriptedTurn>, options: Parameters<typeof open>[2] = {}) =>
  Effect.gen(function*() {
    const clock = yield* settable
    const opened = yield* clock.on(open(session.storage(), script, options))
    yield* clock.on(opened.harness.resume)
    return { ...opened, ...clock }
  })

/** Lets time pass in steps, so that each timer is set before the next step. */
const pass = (seconds: number) =>
  Effect.gen(function*() {
    for (let second = 0; second < seconds; second++) {
      yield* settle
      yield* TestClock.adjust("1 second")
    }
    yield* settle
  })

const ask = (harness: Harness, text = "go") =>
  Effect.flatMap(harness.main.send({ ...user(text), requestID: "r" }), (input) => Effect.forkChild(input.wait))

describe.each(jumps)("a clock that jumps $jump", ({ millis }) => {
  it.effect("between two attempts does not lengthen the wait", () =>
    Effect.gen(function*() {
      const { harness, on, set } = yield* start(memory(), [[fail("unavailable", { retryAfterMs: 20_000 })], "answer"])
      const waiting = yield* on(ask(harness))
      yield* pass(5)
      set(millis)
      yield* pass(16)
      expect(yield* Fiber.join(waiting)).toMatchObject({ text: "answer" })
    }))

  it.effect("while a session is closed lengthens a wait by no more than the longest one that is allowed", () =>
    Effect.gen(function*() {
      const session = memory()
      const retry = { attempts: 3, firstWait: 1_000, longestWait: 30_000 }
      const first = yield* start(session, [[fail("unavailable", { retryAfterMs: 20_000 })]], { retry })
      yield* Fiber.interrupt(yield* first.on(ask(first.harness)))
      yield* first.on(first.harness.main.send({ ...user("go"), requestID: "r" }))
      yield* pass(1)
      yield* first.harness.suspend
      const second = yield* settable
      second.set(millis)
      const { harness } = yield* second.on(open(session.storage(), ["answer"], { retry }))
      yield* second.on(harness.resume)
      const waiting = yield* second.on(ask(harness))
      yield* pass(31)
      expect(yield* Fiber.join(waiting)).toMatchObject({ text: "answer" })
    }))

  it.effect("while an answer is deferred asks for it in time", () =>
    Effect.gen(function*() {
      const { harness, model, on, set } = yield* start(memory(), [[defer("token", 20_000)], "answer"], {
        retry: { attempts: 3, firstWait: 1_000, longestWait: 30_000 }
      })
      const waiting = yield* on(ask(harness))
      yield* pass(5)
      set(millis)
      yield* pass(31)
      expect(yield* Fiber.join(waiting)).toMatchObject({ text: "answer" })
      expect(model.resumed).toEqual(["token"])
    }))

  it.effect("while a compaction waits for its next attempt does not lengthen the wait", () =>
    Effect.gen(function*() {
      const { harness, on, set } = yield* start(memory(), [
        "one",
        "two",
        [fail("unavailable", { retryAfterMs: 20_000 })],
        "the summary"
      ])
      for (const text of ["a", "b"]) yield* Effect.flatMap(on(harness.main.send(user(text))), (input) => input.wait)
      const task = yield* on(harness.main.collapse())
      const waiting = yield* Effect.forkChild(harness.main.waitForTask(task))
      yield* pass(5)
      set(millis)
      yield* pass(16)
      expect(yield* Fiber.join(waiting)).toMatchObject({ status: "completed" })
    }))

  it.effect("while a model and a tool stream holds back nothing of what they say", () =>
    Effect.gen(function*() {
      const gate = Promise.withResolvers<void>()
      const loud = tool({
        description: "streams",
        input: Schema.Struct({}),
        execute: (_, api) =>
          Effect.gen(function*() {
            yield* api.stream("first ")
            yield* Effect.promise(() => gate.promise)
            yield* api.stream("second")
            return yield* Effect.never
          })
      })
      const jumped: { now: () => void } = { now: () => {} }
      const { harness, on, set } = yield* start(memory(), [
        [
          say("one"),
          wait("1 second"),
          run(Effect.sync(() => jumped.now())),
          say("two"),
          wait("5 seconds"),
          call("loud", {})
        ]
      ], { tools: (draft) => draft.set("loud", loud) })
      jumped.now = () => set(millis)
      yield* on(ask(harness))
      yield* pass(3)
      const message = (yield* harness.main.snapshot).view.turn?.message
      expect(message?.parts.map((part) => part.text)).toEqual(["one", "two"])
      yield* pass(4)
      set(millis)
      gate.resolve()
      yield* Effect.promise(() => gate.promise)
      yield* pass(2)
      expect((yield* harness.main.snapshot).view.turn?.tools[0]?.output).toBe("first second")
      yield* harness.main.abort()
    }))

  it.effect("while somebody is asked leaves the time to answer as it was", () =>
    Effect.gen(function*() {
      const { on, set } = yield* settable
      const broker = yield* InteractionBroker.make
      const asking = yield* on(
        Effect.forkChild(broker.request(Ask, "?", { sessionID: "ses", timeLimit: "20 seconds" }), {
          startImmediately: true
        })
      )
      yield* pass(5)
      set(millis)
      yield* pass(14)
      expect(asking.pollUnsafe()).toBeUndefined()
      yield* pass(1)
      expect(yield* Fiber.join(asking)).toEqual({ type: "expired" })
    }).pipe(Effect.scoped))

  it.effect("leaves the order of what is said to the commits, and every input with its end", () =>
    Effect.gen(function*() {
      const session = memory()
      const { harness, on, set } = yield* start(session, [[call("echo", { text: "a" })], "one", "two", "three"], {
        tools: (draft) => draft.set("echo", echo)
      })
      const said: Array<string> = []
      for (const text of ["a", "b", "c"]) {
        const outcome = yield* Effect.flatMap(on(harness.main.send(user(text))), (input) => input.wait)
        said.push(outcome.status === "done" ? outcome.text : outcome.reason)
        set(millis / 2)
      }
      expect(said).toEqual(["one", "two", "three"])
      const texts = (entries: ReadonlyArray<{ readonly model: unknown }>) =>
        entries.flatMap((entry) => JSON.stringify(entry.model).match(/"type":"text","text":"(\w+)"/)?.[1] ?? [])
      expect(texts((yield* harness.main.snapshot).view.entries)).toEqual(["a", "one", "b", "two", "c", "three"])
      const stored = yield* session.storage().entries({ conversation: "c1" })
      expect(texts(stored)).toEqual(["a", "one", "b", "two", "c", "three"])
    }))
})

/** A process host whose processes end as soon as somebody looks. */
const instant = () => {
  const started: Array<string> = []
  const exited: ProcessStatus = { state: "exited", code: 0, signal: null }
  const host: ProcessHost = {
    start: (key) => Effect.sync(() => (started.push(key), exited)),
    status: () => Effect.succeed(exited),
    kill: () => Effect.void,
    output: () => Effect.succeed("")
  }
  return { host, started }
}

const scheduled = (job: { readonly notBefore: number | null; readonly every: number | null }) =>
  Effect.gen(function*() {
    const { host, started } = instant()
    const opened = yield* start(memory(), [], { job: makeJobKind(host) })
    const kind = opened.harness.job
    if (kind === null) return yield* Effect.die(new Error("no process host"))
    yield* opened.on(
      opened.harness.main.commit((tx) =>
        tx.createTask(kind, { command: ["x"], directory: "/", env: {}, notice: false, ...job }, { background: true })
      )
    )
    return { ...opened, started }
  })

describe("a schedule", () => {
  it.effect("that waits for a time of day begins within a minute of it when the clock jumps past it", () =>
    Effect.gen(function*() {
      const { set, started } = yield* scheduled({ notBefore: 10 * hour, every: null })
      yield* pass(30)
      expect(started.length).toBe(0)
      set(11 * hour)
      yield* pass(60)
      expect(started.length).toBe(1)
    }))

  it.effect("that waits for a time of day waits on when the clock is set back", () =>
    Effect.gen(function*() {
      const { set, started } = yield* scheduled({ notBefore: 120_000, every: null })
      yield* pass(30)
      set(-60_000)
      yield* pass(90)
      expect(started.length).toBe(0)
      yield* pass(61)
      expect(started.length).toBe(1)
    }))

  it.effect.each(jumps)(
    "that runs again and again keeps its interval when the clock jumps $jump",
    ({ millis }) =>
      Effect.gen(function*() {
        const { set, started } = yield* scheduled({ notBefore: null, every: 30_000 })
        yield* pass(10)
        expect(started.length).toBe(1)
        set(millis)
        yield* pass(31)
        expect(started.length).toBe(2)
        yield* pass(31)
        expect(started.length).toBe(3)
      })
  )
})
