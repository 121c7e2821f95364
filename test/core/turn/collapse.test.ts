import type { Message } from "@bezel/core/model"
import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"
import { call, fail, finish, never, say, type ScriptedTurn } from "../../../packages/core/src/testing/model.ts"
import { memory, open, user } from "./fixture.ts"

const ask = (harness: Effect.Success<ReturnType<typeof open>>["harness"], text: string) =>
  Effect.flatMap(harness.main.send(user(text)), (input) => input.wait)

const settle = Effect.gen(function*() {
  for (let n = 0; n < 60; n++) yield* Effect.yieldNow
})

const isSummary = (messages: ReadonlyArray<Message>): boolean =>
  JSON.stringify(messages).includes("Summarize this conversation")

/** Each call of an assistant message has its results right behind it, in order. */
const isPaired = (messages: ReadonlyArray<Message>): boolean =>
  messages.every((message, index) => {
    if (message.role !== "assistant") return true
    const calls = message.content.flatMap((part) => part.type === "tool-call" ? [part.id] : [])
    const next = messages[index + 1]
    return calls.length === 0 || next?.role === "tool" && next.content.map((part) => part.id).join() === calls.join()
  })

const small = (keepRecent: number, auto = true) => ({
  compaction: Effect.succeed({ auto, threshold: 0.8, keepRecent })
})

it.effect("a manual compaction summarizes the older part and lands as a head that keeps the newest exchanges", () =>
  Effect.gen(function*() {
    const long = "x".repeat(400)
    const { harness, model } = yield* open(memory().storage(), [
      `one ${long}`,
      `two ${long}`,
      "three",
      "the summary",
      "four"
    ], small(50))
    yield* harness.resume
    yield* ask(harness, "first")
    yield* ask(harness, "second")
    yield* ask(harness, "third")
    const task = yield* harness.main.collapse("mention the colour blue")
    expect(yield* harness.main.waitForTask(task)).toMatchObject({ status: "completed" })
    const summarized = JSON.stringify(model.requests[3]?.messages)
    expect(summarized).toContain("mention the colour blue")
    expect(summarized).toContain("one xxx")
    expect(model.requests[3]?.tools).toEqual([])
    yield* ask(harness, "fourth")
    const sent = JSON.stringify(model.requests[4]?.messages)
    expect(sent).toContain("the summary")
    expect(sent).not.toContain("one xxx")
    expect(sent).toContain("third")
    expect((yield* harness.main.snapshot).view.entries[0]).toMatchObject({ kind: "bezel.summary", head: true })
  }))

it.effect("pairing holds wherever a history with parallel calls is compacted, and when it is compacted twice", () =>
  Effect.gen(function*() {
    for (let keep = 0; keep <= 60; keep += 3) {
      const script: Array<ScriptedTurn> = []
      for (let n = 0; n < 4; n++) {
        script.push([
          say(`look ${n}`),
          call("echo", { text: "aaaa" }, `a${n}`),
          call("echo", { text: "bbbb" }, `b${n}`)
        ], `answer ${n}`)
      }
      const { harness, model } = yield* open(memory().storage(), script, small(keep))
      yield* harness.resume
      for (let n = 0; n < 4; n++) yield* ask(harness, `question ${n}`)
      model.add("summary one", "after one", "summary two", "after two")
      for (const round of ["one", "two"]) {
        yield* harness.main.waitForTask(yield* harness.main.collapse())
        yield* ask(harness, `go on ${round}`)
        const request = model.requests.at(-1)?.messages ?? []
        expect(isPaired(request), `keep ${keep}, ${round}`).toBe(true)
        expect(
          request.some((message) => JSON.stringify(message).includes(`summary ${round}`)),
          `keep ${keep}, ${round}`
        ).toBe(true)
        expect(JSON.stringify(request).includes("summary one"), `keep ${keep}: an older summary is replaced`).toBe(
          round === "one"
        )
      }
    }
  }))

it.effect("a full context is summarized before the request that would not fit", () =>
  Effect.gen(function*() {
    const { harness, model } = yield* open(
      memory().storage(),
      [
        [say("long answer"), finish("stop", { input: 85, output: 5 })],
        "the summary",
        "after"
      ],
      small(0),
      { contextWindow: 100 }
    )
    yield* harness.resume
    yield* ask(harness, "first")
    expect(yield* ask(harness, "second")).toMatchObject({ status: "done", text: "after" })
    expect(model.requests.map((request) => isSummary(request.messages))).toEqual([false, true, false])
    expect(JSON.stringify(model.requests[2]?.messages)).toContain("second")
  }))

it.effect("an overflow is compacted and the turn tried again; what no summary can make fit is the turn's failure", () =>
  Effect.gen(function*() {
    const { harness, model } = yield* open(
      memory().storage(),
      ["hello", [fail("overflow")], "summary", "fits now"],
      small(0)
    )
    yield* harness.resume
    yield* ask(harness, "first")
    expect(yield* ask(harness, "second")).toMatchObject({ status: "done", text: "fits now" })
    model.add([fail("overflow")], "s1", [fail("overflow", { message: "Too long." })], "never asked for")
    expect(yield* ask(harness, "third")).toEqual({
      status: "unanswered",
      reason: "failed",
      error: { kind: "overflow", message: "Too long." }
    })
    expect(model.remaining).toBe(1)
  }))

it.effect("with automatic compaction off, an overflow is the turn's failure and nothing is summarized", () =>
  Effect.gen(function*() {
    const { harness, model } = yield* open(memory().storage(), ["hello", [fail("overflow")]], small(0, false))
    yield* harness.resume
    yield* ask(harness, "first")
    expect(yield* ask(harness, "second")).toMatchObject({ status: "unanswered", error: { kind: "overflow" } })
    expect(model.requests.some((request) => isSummary(request.messages))).toBe(false)
  }))

it.effect("at most one compaction is live, and one that another head overtook is dropped", () =>
  Effect.gen(function*() {
    const { harness, model } = yield* open(memory().storage(), ["hello", [never]], small(0))
    yield* harness.resume
    yield* ask(harness, "first")
    const one = yield* harness.main.collapse()
    const two = yield* harness.main.collapse()
    expect(two.id).toBe(one.id)
    yield* settle
    expect((yield* harness.main.snapshot).view.compaction).toMatchObject({ status: "running", reason: "manual" })
    yield* harness.main.reset("start over")
    yield* harness.main.abortTask(one)
    expect((yield* harness.main.snapshot).view.compaction).toBeNull()
    model.add("after the reset")
    yield* ask(harness, "second")
    expect(model.requests.at(-1)?.messages.map((message) => message.role)).toEqual(["user", "user"])
    expect(JSON.stringify(model.requests.at(-1)?.messages)).toContain("start over")
  }))

it.effect("an abort without a turn ends the summary that somebody has asked for, also while it waits for another try", () =>
  Effect.gen(function*() {
    const { harness, model } = yield* open(
      memory().storage(),
      ["hello", [never], [fail("unavailable")], "the summary"],
      small(0)
    )
    yield* harness.resume
    yield* ask(harness, "first")
    const one = yield* harness.main.collapse()
    yield* settle
    yield* harness.main.abort("enough")
    expect(yield* harness.main.waitForTask(one)).toMatchObject({ status: "aborted" })
    expect((yield* harness.main.snapshot).view.compaction).toBeNull()
    const two = yield* harness.main.collapse()
    yield* settle
    expect((yield* harness.main.snapshot).view.compaction).toMatchObject({ status: "retrying" })
    yield* harness.main.abort("enough")
    expect(yield* harness.main.waitForTask(two)).toMatchObject({ status: "aborted" })
    // With neither there is nothing to end.
    yield* harness.main.abort("enough")
    expect(model.requests).toHaveLength(3)
  }))

it.effect("a compaction that fails is retried, then reported, and leaves the conversation as it was", () =>
  Effect.gen(function*() {
    const { harness } = yield* open(memory().storage(), ["hello", [fail("unavailable")], [
      fail("auth", { message: "No key." })
    ]], small(0))
    yield* harness.resume
    yield* ask(harness, "first")
    const before = (yield* harness.main.snapshot).view.entries
    const task = yield* harness.main.collapse()
    const waiting = yield* Effect.forkChild(harness.main.waitForTask(task))
    yield* settle
    expect((yield* harness.main.snapshot).view.compaction).toMatchObject({ status: "retrying" })
    yield* TestClock.adjust("1 second")
    expect(yield* Fiber.join(waiting)).toEqual({ status: "failed", result: null, failure: { message: "No key." } })
    expect((yield* harness.main.snapshot).view.entries).toEqual(before)
  }))

it.effect("a beforeCollapse handler may give the summary itself or call it off", () =>
  Effect.gen(function*() {
    const { harness, model } = yield* open(memory().storage(), ["hello", "after"], small(0))
    const ns = yield* harness.namespace("n", {})
    const answers: Array<{ readonly summary?: string; readonly cancel?: string }> = [{ cancel: "not now" }, {
      summary: "from the plugin"
    }]
    yield* harness.hooks(ns, "collapse", { beforeCollapse: () => Effect.sync(() => answers.shift()) })
    yield* harness.resume
    yield* ask(harness, "first")
    expect(yield* harness.main.waitForTask(yield* harness.main.collapse())).toMatchObject({
      status: "failed",
      failure: { message: "not now" }
    })
    expect(yield* harness.main.waitForTask(yield* harness.main.collapse())).toMatchObject({ status: "completed" })
    yield* ask(harness, "second")
    expect(JSON.stringify(model.requests[1]?.messages)).toContain("from the plugin")
  }))

it.effect("an interrupt during a compaction that the turn waits for ends both in bounded time", () =>
  Effect.gen(function*() {
    const { harness, model } = yield* open(memory().storage(), ["hello", [fail("overflow")], [never]], small(0))
    yield* harness.resume
    yield* ask(harness, "first")
    const input = yield* harness.main.send(user("second"))
    yield* settle
    expect((yield* harness.main.snapshot).view.compaction).toMatchObject({ reason: "overflow" })
    yield* harness.main.abort()
    expect(yield* input.wait).toMatchObject({ status: "unanswered", reason: "aborted" })
    expect((yield* harness.main.snapshot).view.compaction).toBeNull()
    expect(yield* harness.quiescent).toBe(true)
    expect(model.requests.length).toBe(3)
  }))
