/**
 * Anything that a person, a plugin and a model may do to a session, in any order: whatever comes of it, every input ends,
 * every call has one result, each request is paired, watchers see the view, and storage has what memory has.
 */
import type { Conversation, HarnessError } from "@bezel/core/harness"
import { apply } from "@bezel/core/json"
import { tool, type ToolDraft, ToolFailure, toolResult } from "@bezel/core/tool"
import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import * as fc from "fast-check"
import {
  brokenCall,
  call,
  fail,
  never,
  say,
  type ScriptedStep,
  type ScriptedTurn
} from "../../packages/core/src/testing/model.ts"
import { echo, memory, open, settle, simpleKind, user } from "../core/turn/fixture.ts"
import { pairingFaults } from "./session-checks.ts"

const steps = [
  "send",
  "steer",
  "reject",
  "take back",
  "abort",
  "pass",
  "write",
  "reset",
  "collapse",
  "fork",
  "configure",
  "task",
  "abort task",
  "close",
  "suspend"
] as const

const answers: ReadonlyArray<ReadonlyArray<ScriptedStep>> = [
  [say("an answer")],
  [say("two calls"), call("echo", { text: "a" }), call("slow", {})],
  [call("failing", {}), call("missing", {}), call("alone", {})],
  [brokenCall("echo", '{"text":')],
  [say("half"), fail("unavailable", { retryAfterMs: 1_000 })],
  [fail("overflow")],
  [fail("auth")],
  [say("and silence"), never],
  [call("hand", {})],
  [call("stop", {})]
]

const scenario = fc.record({
  steps: fc.array(fc.constantFrom(...steps), { minLength: 5, maxLength: 40 }),
  answers: fc.array(fc.nat(answers.length - 1), { minLength: 40, maxLength: 40 })
})

const tools = (draft: ToolDraft): void => {
  const make = (execute: Parameters<typeof tool>[0]["execute"], more: object = {}) =>
    tool({ description: "does it", input: Schema.Struct({}), execute, ...more })
  draft.set("echo", echo)
  draft.set(
    "slow",
    make((_, api) => Effect.andThen(api.stream("working"), Effect.as(Effect.sleep("5 seconds"), "slow")))
  )
  draft.set("alone", make(() => Effect.as(Effect.sleep("1 second"), "alone"), { executionMode: "sequential" }))
  draft.set("failing", make(() => Effect.fail(new ToolFailure({ message: "no" }))))
  draft.set("hand", make(() => Effect.succeed(toolResult({ content: "h", control: { handoff: "fresh" } }))))
  draft.set("stop", make(() => Effect.succeed(toolResult({ content: "s", control: { terminate: true } }))))
}

/** Refusals are answers; anything else that fails is a fault. */
const allowed = <A>(effect: Effect.Effect<A, HarnessError>) =>
  Effect.catch(
    Effect.asVoid(effect),
    (error) =>
      ["busy", "not_found", "not_permitted", "closed", "invalid"].includes(error.code)
        ? Effect.void
        : Effect.die(error)
  )

/** Gives how many requests the model was asked. */
const session = (given: typeof scenario extends fc.Arbitrary<infer A> ? A : never) =>
  Effect.gen(function*() {
    const stored = memory()
    let answer = 0
    const script: ReadonlyArray<ScriptedTurn> = Array.from({ length: 500 }, () => (request) => {
      const faults = pairingFaults(request.messages)
      if (faults.length > 0) throw new Error(faults.join())
      if (JSON.stringify(request.messages).includes("Summarize this conversation")) return "a summary"
      return answers[given.answers[answer++ % given.answers.length] ?? 0] ?? "an answer"
    })
    const kind = simpleKind("k", () => Effect.as(Effect.sleep("20 seconds"), "done"))
    const retry = { attempts: 3, firstWait: 500, longestWait: 2_000 }
    const life = Effect.gen(function*() {
      const scope = yield* Scope.make()
      const { harness } = yield* Scope.provide(open(stored.storage(), script, { tools, retry }), scope)
      yield* Scope.provide(harness.task(kind), scope)
      yield* harness.resume
      const watch = yield* Scope.provide(harness.main.watch, scope)
      const seen = { view: watch.view, revision: watch.revision }
      yield* Scope.provide(
        Effect.forkScoped(Stream.runForEach(watch.envelopes, ({ operations, revision }) =>
          Effect.sync(() => {
            expect(revision).toBe(seen.revision + 1)
            seen.revision = revision
            seen.view = apply(seen.view, operations)
          }))),
        scope
      )
      return { scope, harness, seen }
    })
    let { harness, scope, seen } = yield* life
    const tasks: Array<{ readonly id: string; readonly kind: string }> = []
    const sent: Array<string> = []
    let conversation: Conversation = harness.main
    const run = (step: typeof steps[number], n: number): Effect.Effect<void> => {
      switch (step) {
        case "send":
        case "steer":
        case "reject":
          return allowed(Effect.map(
            conversation.send({
              ...user(`input ${n}`),
              requestID: `r${n}`,
              whenBusy: step === "send" ? "followUp" : step
            }),
            ({ id }) => sent.push(id)
          ))
        case "take back":
          return allowed(
            Effect.flatMap(conversation.input(sent.at(-1) ?? "i0"), (input) => input?.abort ?? Effect.succeed("ended"))
          )
        case "abort":
          return allowed(conversation.abort())
        case "pass":
          return TestClock.adjust("3 seconds")
        case "write":
          return allowed(
            conversation.write("bezel.notice", {
              model: [{ role: "user", content: [{ type: "text", text: `notice ${n}` }] }]
            })
          )
        case "reset":
          return allowed(conversation.reset(n % 2 === 0 ? "handed on" : undefined))
        case "collapse":
          return allowed(conversation.collapse())
        case "fork":
          return allowed(Effect.gen(function*() {
            const entries = yield* conversation.entries({})
            conversation = yield* conversation.fork(entries[n % Math.max(1, entries.length)]?.id ?? "e0")
          }))
        case "configure":
          return allowed(conversation.configure({ queue: n % 2 === 0 ? "all" : "one" }))
        case "task":
          return allowed(Effect.map(
            conversation.commit((tx) => tx.createTask(kind, {}, { background: n % 2 === 0 })),
            (ref) => tasks.push(ref)
          ))
        case "abort task":
          return allowed(conversation.abortTask(tasks.at(-1) ?? { id: "t0", kind: "k" }))
        case "close":
        case "suspend":
          return Effect.gen(function*() {
            if (step === "suspend") yield* harness.suspend
            yield* Scope.close(scope, Exit.void)
            const next = yield* Effect.orDie(life)
            harness = next.harness
            scope = next.scope
            seen = next.seen
            conversation = (yield* Effect.orDie(harness.conversation(conversation.id))) ?? harness.main
          })
      }
    }
    for (const [n, step] of given.steps.entries()) {
      yield* run(step, n)
      yield* settle
    }
    // A person who wants it to end: in every conversation, until nothing waits.
    for (const { id } of yield* harness.tree) {
      const each = (yield* harness.conversation(id)) ?? harness.main
      for (let round = 0; round < 60 && (yield* each.snapshot).view.inbox.length > 0; round++) {
        const [waiting] = (yield* each.snapshot).view.inbox
        const input = yield* each.input(waiting?.id ?? "")
        if (input !== null) yield* input.abort
      }
      yield* each.abort()
    }
    yield* TestClock.adjust("10 minutes")
    yield* settle
    yield* settle
    expect(seen.view).toEqual((yield* harness.main.snapshot).view)
    for (const id of sent) expect((yield* stored.storage().input(id))?.status, id).toMatch(/done|unanswered/)
    expect(yield* stored.storage().liveInputs).toEqual([])
    expect(yield* stored.storage().liveTasks).toEqual([])
    expect(yield* harness.quiescent).toBe(true)
    for (const { id } of yield* harness.tree) {
      const each = (yield* harness.conversation(id)) ?? harness.main
      expect(pairingFaults(yield* each.context)).toEqual([])
      const results = (yield* each.entries({ kind: "bezel.tool_result" })).map((entry) =>
        String(Reflect.get(Object(entry.data), "callID"))
      )
      const answered = (yield* each.entries({ kind: "bezel.assistant" })).flatMap((entry) =>
        (entry.model ?? []).flatMap((message) =>
          message.role === "assistant" ? message.content.filter((part) => part.type === "tool-call") : []
        )
      )
      expect(results.length, `results in ${id}`).toBe(answered.length)
    }
    const inMemory = yield* Effect.map(harness.main.snapshot, ({ view }) => view)
    yield* Scope.close(scope, Exit.void)
    const again = yield* open(stored.storage(), [])
    expect((yield* again.harness.main.snapshot).view).toEqual(inMemory)
    return answer
  })

/** Another seed looks elsewhere; one that finds something belongs here. */
const seed = Number(process.env.BEZEL_TEST_SEED ?? 20_261_130)
const scenarios = fc.sample(scenario, { numRuns: 80, seed })

it.effect(`a session is whole whatever is done to it, eighty times (seed ${seed})`, () =>
  Effect.gen(function*() {
    let asked = 0
    for (const given of scenarios) {
      asked += yield* Effect.tapCause(Effect.scoped(session(given)), () => Effect.logError(JSON.stringify(given)))
    }
    yield* Effect.logInfo(`${scenarios.length} sessions, ${asked} requests to the model, every session whole`)
    expect(asked).toBeGreaterThan(scenarios.length)
  }), 60_000)
