import type { Envelope } from "@bezel/core/harness"
import { makeToolRegistry, tool, toolResult } from "@bezel/core/tool"
import { openHarness } from "@bezel/core/turn"
import { expect, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import { call, fail, never, run, say, scriptedModel, wait } from "../../../packages/core/src/testing/model.ts"
import { echo, memory, open, settle, simpleKind, user } from "./fixture.ts"

const asking = (control: object) =>
  tool({
    description: "asks the turn for something",
    input: Schema.Struct({}),
    execute: () => Effect.succeed(toolResult({ content: "asked", control }))
  })

it.effect("results that hand off start over with a fresh context, which begins with their texts in call order", () =>
  Effect.gen(function*() {
    const { harness, model } = yield* open(memory().storage(), [
      [call("one", {}), call("two", {}), call("echo", { text: "a" })],
      "done"
    ], {
      tools: (draft) => {
        draft.set("one", asking({ handoff: "first part" }))
        draft.set("two", asking({ handoff: "second part" }))
        draft.set("echo", echo)
      }
    })
    yield* harness.resume
    const input = yield* harness.main.send(user("go"))
    expect(yield* input.wait).toMatchObject({ text: "done" })
    expect(model.requests[1]?.messages).toEqual([
      { role: "user", content: [{ type: "text", text: "first part\n\nsecond part" }] }
    ])
    const [head] = (yield* harness.main.snapshot).view.entries
    expect(head).toMatchObject({ kind: "bezel.handoff", head: true })
  }))

it.effect("tools that results ask for are offered from the next request of the turn on, and in the next turn no more", () =>
  Effect.gen(function*() {
    const registry = yield* makeToolRegistry()
    yield* registry.transform({ plugin: "p", version: "1", order: 0 }, (draft) => {
      draft.set("more", asking({ addTools: ["echo"] }))
      draft.set("echo", echo)
    })
    const model = scriptedModel([[call("more", {})], [call("more", {})], "done", "next"])
    const harness = yield* openHarness(memory().storage(), {
      sessionID: "ses_test",
      models: model.source,
      tools: registry,
      agent: () => Effect.succeed({ enabled: { echo: false }, denied: [], prompt: null }),
      artifact: () => Effect.die(new Error("no artifacts in this test"))
    })
    yield* harness.resume
    for (const text of ["go", "again"]) yield* Effect.flatMap(harness.main.send(user(text)), (input) => input.wait)
    expect(model.requests.map((request) => request.tools.map((offered) => offered.name).join())).toEqual([
      "more",
      "echo,more",
      "echo,more",
      "more"
    ])
  }))

it.effect("one result that terminates ends the turn whatever the others ask for", () =>
  Effect.gen(function*() {
    const { harness, model } = yield* open(memory().storage(), [[call("hand", {}), call("stop", {})], "never asked"], {
      tools: (draft) => {
        draft.set("hand", asking({ handoff: "not now" }))
        draft.set("stop", asking({ terminate: true }))
      }
    })
    yield* harness.resume
    const outcome = yield* Effect.flatMap(harness.main.send(user("go")), (input) => input.wait)
    expect(outcome).toMatchObject({ reason: "terminated" })
    expect(model.requests.length).toBe(1)
    expect((yield* harness.main.snapshot).view.entries.some((entry) => entry.head)).toBe(false)
  }))

/** When each frame of an answer was committed, and how much it showed. */
const framesOf = (options: Parameters<typeof open>[2], ...steps: ReadonlyArray<ReturnType<typeof say>>) =>
  Effect.gen(function*() {
    const { harness } = yield* open(memory().storage(), [steps], options)
    yield* harness.resume
    const watch = yield* harness.main.watch
    const seen: Array<Envelope> = []
    yield* Effect.forkScoped(Stream.runForEach(watch.envelopes, (envelope) => Effect.sync(() => seen.push(envelope))))
    const input = yield* harness.main.send(user("go"))
    const frames: Array<string> = []
    for (let at = 0; at <= 500; at += 10) {
      yield* settle
      for (const { events, operations } of seen.splice(0)) {
        const shown = (JSON.stringify(operations).match(/xx+/g) ?? []).join("").length
        if (events.length === 0 && shown > 0) frames.push(`${at}:${shown}`)
      }
      yield* TestClock.adjust("10 millis")
    }
    yield* input.wait
    return frames
  })

const x = (length: number) => "x".repeat(length)

it.effect("an answer shows its first words at once, then what came every 100 ms or 256 characters", () =>
  Effect.gen(function*() {
    const frames = yield* framesOf(
      {},
      say(x(3)),
      wait(30),
      say(x(10)),
      wait(30),
      say(x(5)),
      wait(100),
      say(x(300)),
      wait(200)
    )
    expect(frames).toEqual(["0:3", "130:15", "160:300"])
  }))

it.effect("how often an answer shows is settable", () =>
  Effect.gen(function*() {
    const steps = [say(x(3)), wait(30), say(x(10)), wait(30), say(x(5)), wait(100), say(x(300)), wait(200)]
    const often = yield* framesOf({ frames: { millis: 20, characters: 5 } }, ...steps)
    expect(often).toEqual(["0:3", "30:10", "60:5", "160:300"])
    const seldom = yield* framesOf({ frames: { millis: 300, characters: 1_000 } }, ...steps)
    expect(seldom).toEqual(["0:3", "330:315"])
  }))

it.effect("waits between attempts double from the first one up to the longest, and end with the last attempt", () =>
  Effect.gen(function*() {
    const { harness, model } = yield* open(memory().storage(), Array.from({ length: 9 }, () => [fail("unavailable")]), {
      retry: { attempts: 5, firstWait: 1_000, longestWait: 3_000 }
    })
    yield* harness.resume
    const input = yield* Effect.flatMap(harness.main.send(user("go")), (sent) => Effect.forkChild(sent.wait))
    const at: Array<number> = []
    for (let second = 0; second < 20; second++) {
      yield* settle
      while (at.length < model.requests.length) at.push(second)
      yield* TestClock.adjust("1 second")
    }
    expect(at).toEqual([0, 1, 3, 6, 9])
    expect(yield* Fiber.join(input)).toMatchObject({ reason: "failed", error: { kind: "unavailable" } })
    const usage = yield* harness.main.entries({ kind: "bezel.usage" })
    expect(usage.map((entry) => Reflect.get(Object(entry.data), "attempt"))).toEqual([1, 2, 3, 4])
  }))

it.effect("a call is answered by the tool as it was offered, or told that it has changed; never by other code", () =>
  Effect.gen(function*() {
    const gate = yield* Deferred.make<void>()
    const registry = yield* makeToolRegistry()
    const offering = (name: string) =>
      registry.transform({ plugin: "p", version: "1", order: 0 }, (draft) => {
        draft.set(
          "kept",
          tool({ description: "kept", input: Schema.Struct({}), execute: () => Effect.succeed("kept") })
        )
        draft.set("work", tool({ description: name, input: Schema.Struct({}), execute: () => Effect.succeed(name) }))
      })
    const model = scriptedModel([[say("hm"), run(Deferred.await(gate)), call("work", {}), call("kept", {})], "done"])
    const harness = yield* openHarness(memory().storage(), {
      sessionID: "ses_test",
      models: model.source,
      tools: registry,
      artifact: () => Effect.die(new Error("no artifacts in this test"))
    })
    const old = yield* offering("old")
    yield* harness.resume
    const input = yield* harness.main.send(user("go"))
    yield* settle
    yield* old.unregister
    yield* offering("new")
    yield* Deferred.succeed(gate, undefined)
    yield* input.wait
    const results = yield* harness.main.entries({ kind: "bezel.tool_result" })
    const codes = results.map((entry) => Reflect.get(Object(entry.data), "code") ?? "worked")
    expect(JSON.stringify(results)).not.toContain('new"')
    expect(codes[0]).toBe("stale_tool")
    expect(model.requests[1]?.tools.find((offered) => offered.name === "work")?.description).toBe("new")
  }))

it.effect("an owned conversation starts empty and without settings of its owner's, but for what it is seeded with", () =>
  Effect.gen(function*() {
    const delegate = tool({
      description: "delegates",
      input: Schema.Struct({}),
      execute: (_, api) =>
        Effect.gen(function*() {
          const bare = yield* api.conversation("bare")
          const seeded = yield* api.conversation("seeded", {
            model: { provider: "p", model: "m" },
            agent: "helper",
            context: "background"
          })
          const again = yield* api.conversation("seeded", { agent: "another" })
          expect(again.id).toBe(seeded.id)
          return `${bare.id} ${seeded.id}`
        })
    })
    const { harness } = yield* open(memory().storage(), [[call("delegate", {})], "ok"], {
      tools: (draft) => draft.set("delegate", delegate)
    })
    yield* harness.main.configure({ agent: "owner", thinking: "high", queue: "all" })
    yield* harness.resume
    yield* Effect.flatMap(harness.main.send(user("go")), (input) => input.wait)
    const views = []
    for (const { id, owner } of yield* harness.tree) {
      if (owner === null) continue
      const conversation = yield* harness.conversation(id)
      if (conversation !== null) views.push((yield* conversation.snapshot).view)
    }
    expect(views.map((view) => [view.config, view.entries.length])).toEqual([
      [{ model: null, agent: null, thinking: "off", queue: "one" }, 0],
      [{ model: { provider: "p", model: "m" }, agent: "helper", thinking: "off", queue: "one" }, 1]
    ])
    expect(views[0]?.conversation.owner).toMatch(/^t\d+$/)
  }))

it.effect("a fork may begin at any entry, and what it says stays its own", () =>
  Effect.gen(function*() {
    const { harness } = yield* open(memory().storage(), ["one", "two", "in the fork"])
    yield* harness.resume
    for (const text of ["a", "b"]) yield* Effect.flatMap(harness.main.send(user(text)), (input) => input.wait)
    const { entries } = (yield* harness.main.snapshot).view
    for (const [index, entry] of entries.entries()) {
      const fork = yield* harness.main.fork(entry.id)
      expect((yield* fork.snapshot).view.entries).toEqual(entries.slice(0, index + 1))
      expect((yield* fork.snapshot).view.conversation.parent).toEqual({ conversation: "c1", at: entry.id })
    }
    const fork = yield* harness.main.fork(entries[1]?.id ?? "")
    yield* Effect.flatMap(fork.send(user("c")), (input) => input.wait)
    expect((yield* harness.main.snapshot).view.entries).toEqual(entries)
    expect(yield* Effect.flip(harness.main.fork("e999"))).toMatchObject({ code: "not_found" })
  }))

it.effect("an abort ends what the turn waits for, leaves queued inputs waiting, and the next input begins a turn", () =>
  Effect.gen(function*() {
    const kind = simpleKind("k", () => Effect.never)
    const { harness, model } = yield* open(memory().storage(), [[say("half"), never], "b", "c"])
    yield* harness.task(kind)
    yield* harness.resume
    const first = yield* harness.main.send(user("a"))
    const queued = yield* harness.main.send(user("b"))
    yield* settle
    yield* harness.main.abort("a person said so")
    expect(yield* first.wait).toMatchObject({ status: "unanswered", reason: "aborted" })
    yield* settle
    expect(yield* queued.result).toBeNull()
    expect(model.requests.length).toBe(1)
    expect(yield* harness.main.busy).toBe(false)
    const next = yield* harness.main.send(user("c"))
    expect(yield* queued.wait).toMatchObject({ text: "b" })
    expect(yield* next.wait).toMatchObject({ text: "c" })
    yield* harness.main.abort()
  }))

it.effect("a fork at an entry before a summary or a fresh start has the context of then, and one that it lacks is refused", () =>
  Effect.gen(function*() {
    const { harness, model } = yield* open(memory().storage(), ["one", "two", "the summary", "three", "in the fork"], {
      compaction: Effect.succeed({ auto: false, threshold: 1, keepRecent: 0 })
    })
    yield* harness.resume
    const ask = (conversation: typeof harness.main, text: string) =>
      Effect.flatMap(conversation.send(user(text)), (input) => input.wait)
    for (const text of ["a", "b"]) yield* ask(harness.main, text)
    const before = (yield* harness.main.snapshot).view.entries
    yield* Effect.flatMap(harness.main.collapse(), harness.main.waitForTask)
    yield* ask(harness.main, "c")
    const summarized = (yield* harness.main.snapshot).view.entries
    yield* harness.main.reset()
    const early = yield* harness.main.fork(before[1]?.id ?? "")
    expect((yield* early.snapshot).view.entries).toEqual(before.slice(0, 2))
    const late = yield* harness.main.fork(summarized.at(-1)?.id ?? "")
    expect((yield* late.snapshot).view.entries).toEqual(summarized)
    yield* ask(early, "d")
    expect(JSON.stringify(model.requests.at(-1)?.messages)).not.toContain("the summary")
    expect(model.requests.at(-1)?.messages.map((message) => message.role)).toEqual(["user", "assistant", "user"])
    // What a fork has said is not its parent's, nor is what the parent said after it the fork's.
    const own = (yield* early.snapshot).view.entries.at(-1)?.id ?? ""
    expect(yield* Effect.flip(harness.main.fork(own))).toMatchObject({ code: "not_found" })
    expect(yield* Effect.flip(early.fork(before[3]?.id ?? ""))).toMatchObject({ code: "not_found" })
    expect((yield* Effect.flatMap(early.fork(own), (fork) => fork.snapshot)).view.entries.length).toBe(4)
  }))

it.effect("a fork between a call and its result gives the model an error result in its place", () =>
  Effect.gen(function*() {
    const { harness, model } = yield* open(memory().storage(), [
      [call("echo", { text: "a" }, "c1"), call("echo", { text: "b" }, "c2")],
      "one",
      "in the fork"
    ])
    yield* harness.resume
    yield* Effect.flatMap(harness.main.send(user("go")), (input) => input.wait)
    const { entries } = (yield* harness.main.snapshot).view
    const firstResult = entries.find((entry) => entry.kind === "bezel.tool_result")
    const fork = yield* harness.main.fork(firstResult?.id ?? "")
    yield* Effect.flatMap(fork.send(user("and?")), (input) => input.wait)
    expect(model.requests.at(-1)?.messages[2]).toMatchObject({
      role: "tool",
      content: [{ id: "c1", isFailure: false, result: "a" }, {
        id: "c2",
        isFailure: true,
        result: expect.stringContaining("not part of this conversation")
      }]
    })
  }))
