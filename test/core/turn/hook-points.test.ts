/** Each hook point: how its handlers' answers become one, and what a failure means. */
import type { BeforeToolApi, Harness, HookHandlers, HookKind, HookOptions } from "@bezel/core/harness"
import { toolResult } from "@bezel/core/tool"
import { expect, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import { call, say } from "../../../packages/core/src/testing/model.ts"
import { memory, open, settle, user } from "./fixture.ts"

const broken = () => Effect.fail({ message: "this handler is broken" })

/** Hooks under a namespace each, in this order. */
const hook = <K extends HookKind>(
  harness: Harness,
  kind: K,
  handlers: ReadonlyArray<HookHandlers[K]>,
  options?: HookOptions
) =>
  Effect.forEach(
    handlers,
    (handler, index) =>
      Effect.flatMap(harness.namespace(`${kind}${index}`, {}), (ns) => harness.hooks(ns, kind, handler, options))
  )

const ask = (harness: Harness, text = "go") => Effect.flatMap(harness.main.send(user(text)), (input) => input.wait)

it.effect("beforePrepare and systemInstructions: all handlers, in order; one that fails is skipped with a warning", () =>
  Effect.gen(function*() {
    const { harness, model, reports } = yield* open(memory().storage(), ["ok"])
    const ran: Array<string> = []
    const prepare = (name: string) => () => Effect.asVoid(Effect.sync(() => ran.push(name)))
    yield* hook(harness, "generation", [
      { beforePrepare: prepare("one"), systemInstructions: () => Effect.succeed("first") },
      { beforePrepare: broken, systemInstructions: broken },
      { beforePrepare: prepare("three"), systemInstructions: () => Effect.succeed("second") },
      { systemInstructions: () => Effect.void }
    ])
    yield* harness.resume
    expect(yield* ask(harness)).toMatchObject({ text: "ok" })
    expect(ran).toEqual(["one", "three"])
    expect(model.requests[0]?.messages[0]).toEqual({ role: "system", content: "first\n\nsecond" })
    expect(reports.map(({ level, message }) => [level, message])).toEqual([
      ["warning", 'The beforePrepare hook of "generation1" was skipped: this handler is broken'],
      ["warning", 'The systemInstructions hook of "generation1" was skipped: this handler is broken']
    ])
  }))

it.effect("beforeRequest: a chain, each sees the request as the one before left it; one that fails is skipped", () =>
  Effect.gen(function*() {
    const { harness, model, reports } = yield* open(memory().storage(), ["ok"])
    const seen: Array<number | null> = []
    const limit = (maxOutput: number): HookHandlers["generation"] => ({
      beforeRequest: (request, api) =>
        Effect.sync(() => {
          seen.push(request.maxOutput, api.step)
          return { request: { ...request, maxOutput } }
        })
    })
    yield* hook(harness, "generation", [limit(1), { beforeRequest: broken }, limit(2), {
      beforeRequest: () => Effect.void
    }])
    yield* harness.resume
    yield* ask(harness)
    expect(seen).toEqual([null, 1, 1, 1])
    expect(model.requests[0]?.maxOutput).toBe(2)
    expect(reports.length).toBe(1)
  }))

it.effect("afterResponse: all handlers see the answer and its cost; one that fails is skipped with a warning", () =>
  Effect.gen(function*() {
    const { harness, reports } = yield* open(
      memory().storage(),
      [[say("let me"), call("echo", { text: "a" })], "ok"],
      {},
      {
        cost: { input: 1_000_000, output: 0, cacheRead: 0, cacheWrite: 0 }
      }
    )
    const seen: Array<unknown> = []
    const observe: HookHandlers["generation"] = {
      afterResponse: (message, api) =>
        Effect.asVoid(Effect.sync(() => seen.push([message.content.map((part) => part.type).join(), api.cost > 0])))
    }
    yield* hook(harness, "generation", [{ afterResponse: broken }, observe])
    yield* harness.resume
    yield* ask(harness)
    expect(seen).toEqual([["text,tool-call", true], ["text", true]])
    expect(reports.length).toBe(2)
  }))

it.effect("onYield: the first that wants the turn to go on decides; one that fails is skipped, and a call is no yield", () =>
  Effect.gen(function*() {
    const { harness, model, reports } = yield* open(memory().storage(), [
      [call("echo", { text: "a" })],
      "done?",
      "done"
    ])
    const asked: Array<string> = []
    const wish = (name: string, text: string | undefined): HookHandlers["generation"] => ({
      onYield: (_, api) =>
        Effect.sync(() => {
          asked.push(`${name} at ${api.step}`)
          return api.step === 2 && text !== undefined ? { continueWith: text } : undefined
        })
    })
    yield* hook(harness, "generation", [{ onYield: broken }, wish("a", undefined), wish("b", "go on"), wish("c", "no")])
    yield* harness.resume
    expect(yield* ask(harness)).toMatchObject({ text: "done" })
    expect(asked).toEqual(["a at 2", "b at 2", "a at 3", "b at 3", "c at 3"])
    expect(model.requests[2]?.messages.at(-1)).toMatchObject({ role: "user", content: [{ text: "go on" }] })
    expect(reports.length).toBe(2)
  }))

it.effect("beforeTool: a chain, each sees the arguments as the one before left them; the first block decides", () =>
  Effect.gen(function*() {
    const { harness, model } = yield* open(memory().storage(), [[call("echo", { text: "a" })], [
      call("echo", { text: "b" })
    ], "ok"])
    const seen: Array<string> = []
    const append = (letter: string): HookHandlers["tool"] => ({
      beforeTool: (hooked) =>
        Effect.sync(() => {
          const text = String(Reflect.get(Object(hooked.args), "text"))
          seen.push(text)
          return text.startsWith("b") && letter === "2" ? { block: "not b" } : { args: { text: text + letter } }
        })
    })
    yield* hook(harness, "tool", [append("1"), append("2"), append("3")])
    yield* harness.resume
    yield* ask(harness)
    expect(seen).toEqual(["a", "a1", "a12", "b", "b1"])
    const results = model.requests[2]?.messages.flatMap((message) =>
      message.role === "tool" ? message.content.map((part) => [part.isFailure, part.result]) : []
    )
    expect(results).toEqual([[false, "a123"], [true, "not b"]])
  }))

it.effect("beforeTool: one that fails blocks the call, and so does one that makes the arguments invalid", () =>
  Effect.gen(function*() {
    const { harness, model } = yield* open(memory().storage(), [[call("echo", { text: "a" })], [
      call("echo", { text: "b" })
    ], "ok"])
    yield* hook(harness, "tool", [{
      beforeTool: (hooked) =>
        JSON.stringify(hooked.args).includes("a") ? broken() : Effect.succeed({ args: { text: 7 } })
    }])
    yield* harness.resume
    yield* ask(harness)
    const results = model.requests[2]?.messages.flatMap((message) =>
      message.role === "tool" ? message.content.map((part) => String(part.result)) : []
    )
    expect(results?.[0]).toContain("this handler is broken")
    expect(results?.[1]).toContain("changed the arguments of this call to something invalid")
    const entries = yield* harness.main.entries({ kind: "bezel.tool_result" })
    expect(entries.map((entry) => Reflect.get(Object(entry.data), "code"))).toEqual(["blocked", "blocked"])
  }))

it.effect("afterTool: a chain over the result, before it is bounded; one that fails is skipped with a warning", () =>
  Effect.gen(function*() {
    const { harness, model, reports } = yield* open(memory().storage(), [[call("echo", { text: "a" })], "ok"])
    const append = (letter: string): HookHandlers["tool"] => ({
      afterTool: (_, { content: [first] }) =>
        Effect.succeed(toolResult({ content: `${first?.type === "text" ? first.text : ""}${letter}` }))
    })
    yield* hook(harness, "tool", [append("1"), { afterTool: broken }, append("2"), { afterTool: () => Effect.void }])
    yield* harness.resume
    yield* ask(harness)
    expect(JSON.stringify(model.requests[1]?.messages.at(-1))).toContain('"a12"')
    expect(reports.map((report) => report.message).join()).toContain('afterTool hook of "tool1"')
  }))

it.effect("afterTools: all handlers see all calls once they have results; one that fails is skipped with a warning", () =>
  Effect.gen(function*() {
    const { harness, reports } = yield* open(memory().storage(), [
      [call("echo", { text: "a" }, "c1"), call("missing", {}, "c2")],
      "ok"
    ])
    const seen: Array<unknown> = []
    yield* hook(harness, "post_tools", [{ afterTools: broken }, {
      afterTools: (calls) => Effect.asVoid(Effect.sync(() => seen.push(...calls)))
    }])
    yield* harness.resume
    yield* ask(harness)
    expect(seen).toEqual([{ callID: "c1", name: "echo", isError: false }, {
      callID: "c2",
      name: "missing",
      isError: true
    }])
    expect(reports.length).toBe(1)
  }))

it.effect("beforeCollapse: the first that has an answer decides; one that fails is skipped with a warning", () =>
  Effect.gen(function*() {
    const { harness, model, reports } = yield* open(memory().storage(), ["one", "two"])
    yield* hook(harness, "collapse", [
      { beforeCollapse: broken },
      { beforeCollapse: () => Effect.void },
      { beforeCollapse: ({ messages }) => Effect.succeed({ summary: `${messages.length} messages` }) },
      { beforeCollapse: () => Effect.succeed({ cancel: "too late" }) }
    ])
    yield* harness.resume
    yield* ask(harness)
    yield* ask(harness)
    const ended = yield* Effect.flatMap(harness.main.collapse(), harness.main.waitForTask)
    expect(ended).toMatchObject({ status: "completed" })
    expect(JSON.stringify((yield* harness.main.context)[0])).toContain("messages")
    expect(model.requests.length).toBe(2)
    expect(reports.length).toBe(1)
  }))

it.effect("handlers run in the order that they say, then in that of their registration, gates last", () =>
  Effect.gen(function*() {
    const { harness } = yield* open(memory().storage(), [[call("echo", { text: "a" })], "ok"])
    const ran: Array<string> = []
    const named = (name: string) => ({ beforeTool: () => Effect.asVoid(Effect.sync(() => ran.push(name))) })
    const ns = yield* harness.namespace("n", {})
    yield* harness.hooks(ns, "tool", named("gate"), { gate: true, order: -9 })
    yield* harness.hooks(ns, "tool", named("later"), { order: 2 })
    yield* harness.hooks(ns, "tool", named("first"))
    yield* harness.hooks(ns, "tool", named("second"))
    yield* harness.hooks(ns, "tool", named("earlier"), { order: -1 })
    yield* harness.resume
    yield* ask(harness)
    expect(ran).toEqual(["earlier", "first", "second", "later", "gate"])
  }))

it.effect("a handler runs outside the line: it may commit, and a handler that waits holds up no commit", () =>
  Effect.gen(function*() {
    const gate = yield* Deferred.make<void>()
    const { harness } = yield* open(memory().storage(), [[call("echo", { text: "a" })], "ok"])
    const ns = yield* harness.namespace("n", { sticky: { calls: 0 } })
    yield* harness.hooks(ns, "tool", {
      beforeTool: (_, api) =>
        Effect.andThen(
          ns.update(api.conversationID, (draft) => {
            draft.calls = 1
          }),
          Deferred.await(gate)
        )
    })
    yield* harness.resume
    const input = yield* harness.main.send(user("go"))
    yield* settle
    yield* harness.main.write("note", {})
    expect(yield* ns.get("c1")).toEqual({ calls: 1 })
    yield* Deferred.succeed(gate, undefined)
    expect(yield* input.wait).toMatchObject({ text: "ok" })
  }))

it.effect("unregistering takes a handler out of later chains, and the one that runs goes on to its end", () =>
  Effect.gen(function*() {
    const gate = yield* Deferred.make<void>()
    const { harness, model } = yield* open(memory().storage(), [[call("echo", { text: "a" })], [
      call("echo", { text: "b" })
    ], "ok"])
    const ns = yield* harness.namespace("n", {})
    const registration = yield* harness.hooks(ns, "tool", {
      beforeTool: () => Effect.as(Deferred.await(gate), { args: { text: "by the old one" } })
    })
    yield* harness.resume
    const input = yield* harness.main.send(user("go"))
    yield* settle
    yield* registration.unregister
    yield* registration.unregister
    yield* Deferred.succeed(gate, undefined)
    yield* input.wait
    const results = model.requests[2]?.messages.flatMap((message) =>
      message.role === "tool" ? message.content.map((part) => part.result) : []
    )
    expect(results).toEqual(["by the old one", "b"])
  }))

it.effect("every handler has ten seconds, and one that waits for a person has all the time", () =>
  Effect.gen(function*() {
    const { harness, reports } = yield* open(memory().storage(), [[call("echo", { text: "a" })], "ok"])
    const answer = yield* Deferred.make<void>()
    const ns = yield* harness.namespace("n", {})
    yield* harness.hooks(ns, "generation", { beforeRequest: () => Effect.never })
    yield* harness.hooks(ns, "tool", { beforeTool: (_, api) => Effect.andThen(api.waiting, Deferred.await(answer)) })
    yield* harness.resume
    const input = yield* harness.main.send(user("go"))
    yield* settle
    yield* TestClock.adjust("9999 millis")
    expect(reports).toEqual([])
    yield* TestClock.adjust("1 millis")
    expect(reports.map((report) => report.message)).toEqual([
      'The beforeRequest hook of "n" was skipped: the hook of "n" did not answer within 10s'
    ])
    yield* TestClock.adjust("2 days")
    expect((yield* harness.main.snapshot).view.turn?.tools[0]).toMatchObject({ waitingOn: "n" })
    yield* Deferred.succeed(answer, undefined)
    yield* settle
    yield* TestClock.adjust("10 seconds")
    expect(yield* input.wait).toMatchObject({ text: "ok" })
  }))

/** `waitingOn` after each commit of a turn, with the status of the call, as whoever watches sees it. */
const marksOf = (storage: ReturnType<typeof memory>) =>
  Effect.map(storage.storage().document("sticky:c1"), (document) => {
    const turn: unknown = Reflect.get(Object(document), "turn")
    const tools: unknown = turn === null ? [] : Reflect.get(Object(turn), "tools")
    return JSON.stringify(tools ?? [])
  })

it.effect("waitingOn goes in the same commit as started, as the blocked result, or in its own when the handler unwinds", () =>
  Effect.gen(function*() {
    const ways: ReadonlyArray<readonly [string, (api: BeforeToolApi) => Effect.Effect<{ block: string } | void>]> = [
      ["started", () => Effect.void],
      ["blocked", () => Effect.succeed({ block: "no" })],
      ["unwound", () => Effect.never]
    ]
    for (const [way, decide] of ways) {
      const session = memory()
      const seen: Array<ReadonlyArray<unknown>> = []
      const watching = session.storage()
      const storage = {
        ...watching,
        commit: (batch: Parameters<typeof watching.commit>[0]) =>
          Effect.tap(watching.commit(batch), () =>
            Effect.map(marksOf(session), (marks) => {
              seen.push([
                marks.includes('"waitingOn":"n"'),
                batch.tasks.some((task) => JSON.stringify(task.checkpoint).includes("started")),
                batch.entries.some((entry) => entry.kind === "bezel.tool_result")
              ])
            }))
      }
      const { harness } = yield* open(storage, [[call("echo", { text: "a" })], "ok"])
      const ns = yield* harness.namespace("n", {})
      yield* harness.hooks(ns, "tool", {
        beforeTool: (_, api) => Effect.andThen(api.waiting, Effect.suspend(() => decide(api)))
      })
      yield* harness.resume
      const input = yield* harness.main.send(user("go"))
      yield* settle
      if (way === "unwound") yield* harness.suspend
      else yield* input.wait
      const waits = seen.findIndex(([waiting]) => waiting)
      expect(waits, way).toBeGreaterThan(0)
      const cleared = seen.slice(waits).find(([waiting]) => !waiting)
      expect(cleared, way).toEqual([false, way === "started", way === "blocked"])
    }
  }))

it.effect("beforeTool tells whoever watches what is its namespace's to tell, in a commit of its own", () =>
  Effect.gen(function*() {
    const { harness } = yield* open(memory().storage(), [[call("echo", { text: "a" })], "ok"])
    const events: Array<unknown> = []
    const faults: Array<string> = []
    const ns = yield* harness.namespace("n", {})
    yield* harness.hooks(ns, "tool", {
      beforeTool: (hooked, api) =>
        Effect.andThen(
          api.emit("asked", { tool: hooked.name }),
          Effect.ignore(Effect.tapError(api.emit("bad", new Map() as unknown as null), (error) =>
            Effect.sync(() =>
              faults.push(error.code)
            )))
        )
    })
    yield* harness.resume
    const watch = yield* harness.main.watch
    yield* Effect.forkScoped(Stream.runForEach(watch.envelopes, (envelope) =>
      Effect.sync(() => {
        if (envelope.events.some((event) => event.type.startsWith("plugin."))) events.push(envelope.events)
      })))
    yield* ask(harness)
    yield* settle
    expect(events).toEqual([[{ type: "plugin.n.asked", data: { tool: "echo" } }]])
    expect(faults).toEqual(["invalid"])
  }))
