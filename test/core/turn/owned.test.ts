import { TaskKind } from "@bezel/core/harness"
import { tool } from "@bezel/core/tool"
import { expect, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import { call, never, type ScriptedTurn } from "../../../packages/core/src/testing/model.ts"
import { echo, memory, open, user } from "./fixture.ts"

const settle = Effect.gen(function*() {
  for (let n = 0; n < 80; n++) yield* Effect.yieldNow
})

const subagent = tool({
  description: "Asks a conversation of its own.",
  input: Schema.Struct({ prompt: Schema.String }),
  replay: "safe",
  execute: ({ prompt }, api) =>
    Effect.gen(function*() {
      const child = yield* api.conversation("child", { context: "You are a helper." })
      const answer = yield* child.ask(prompt, "first")
      return answer.status === "done" ? `helper said: ${answer.text}` : `helper failed: ${answer.reason}`
    })
})

/** Answers by who asks: the helper knows its context, everybody else is the main conversation. */
const byAsker = (
  main: ReadonlyArray<ScriptedTurn>,
  helper: ReadonlyArray<ScriptedTurn>
): ReadonlyArray<ScriptedTurn> => {
  const mains = [...main]
  const helpers = [...helper]
  const turn: ScriptedTurn = (request) => {
    const next = JSON.stringify(request.messages[0]).includes("You are a helper") ? helpers.shift() : mains.shift()
    return typeof next === "function" ? next(request) : next ?? "nothing left to say"
  }
  return Array.from({ length: 20 }, () => turn)
}

const tools = {
  tools: (draft: Parameters<NonNullable<NonNullable<Parameters<typeof open>[2]>["tools"]>>[0]) => {
    draft.set("subagent", subagent)
    draft.set("echo", echo)
  }
}

it.effect("a tool waits for a conversation that it owns, which starts empty but for its seed", () =>
  Effect.gen(function*() {
    const { harness, model } = yield* open(
      memory().storage(),
      byAsker([[call("subagent", { prompt: "look" })], "done"], ["found it"]),
      tools
    )
    yield* harness.main.configure({ thinking: "high" })
    yield* harness.resume
    const outcome = yield* Effect.flatMap(harness.main.send(user("go")), (input) => input.wait)
    expect(outcome).toMatchObject({ text: "done" })
    expect(JSON.stringify(model.requests.at(-1)?.messages)).toContain("helper said: found it")
    const asked = model.requests[1]
    expect(asked?.messages.map((message) => message.role)).toEqual(["user", "user"])
    expect(asked?.thinking).toBe("off")
  }))

it.effect("aborting the turn aborts the conversation that its tool owns, and nothing starts afterwards", () =>
  Effect.gen(function*() {
    const { harness, model } = yield* open(
      memory().storage(),
      byAsker([[call("subagent", { prompt: "look" })], "again"], [[never]]),
      tools
    )
    yield* harness.resume
    const input = yield* harness.main.send(user("go"))
    yield* settle
    expect(model.requests.length).toBe(2)
    yield* harness.main.abort()
    expect(yield* input.wait).toMatchObject({ reason: "aborted" })
    yield* settle
    expect(model.requests.length).toBe(2)
    expect(yield* harness.quiescent).toBe(true)
  }))

it.effect("after a crash a safe tool finds the same conversation and the same input again", () =>
  Effect.gen(function*() {
    const session = memory()
    const scope = yield* Scope.make()
    const first = yield* open(session.storage(), byAsker([[call("subagent", { prompt: "look" })]], [[never]]), tools)
      .pipe(Scope.provide(scope))
    yield* first.harness.resume
    yield* first.harness.main.send({ ...user("go"), requestID: "r" })
    yield* settle
    yield* Scope.close(scope, Exit.void)
    const second = yield* open(session.storage(), byAsker(["all done"], ["found after all"]), tools)
    yield* second.harness.resume
    const input = yield* second.harness.main.send({ ...user("go"), requestID: "r" })
    expect(yield* input.wait).toMatchObject({ text: "all done" })
    expect(JSON.stringify(second.model.requests.at(-1)?.messages)).toContain("helper said: found after all")
    const conversations = yield* session.storage().conversations
    expect(conversations.length).toBe(2)
    expect(
      second.model.requests.filter((request) => JSON.stringify(request.messages).includes("You are a helper")).length
    ).toBe(1)
  }))

it.effect("a tool starts a task of a registered kind, reads its slot and waits for it", () =>
  Effect.gen(function*() {
    const hold = yield* Deferred.make<void>()
    const counting = TaskKind.make("counting", {
      input: Schema.Struct({ to: Schema.Int }),
      checkpoint: Schema.Struct({ phase: Schema.Literal("counting") }),
      slot: { schema: Schema.Struct({ at: Schema.mutableKey(Schema.Int) }), initial: { at: 0 } },
      result: Schema.Struct({ at: Schema.Int }),
      failure: Schema.Never,
      initial: (task, api) =>
        Effect.gen(function*() {
          yield* api.commit((tx) => {
            tx.slot.at = task.input.to
          })
          yield* Deferred.await(hold)
          return { done: (tx) => ({ status: "completed", result: { at: tx.slot.at } }) } as const
        }),
      phases: { counting: () => Effect.succeed("retry" as const) }
    })
    const seen: Array<unknown> = []
    const counter = tool({
      description: "Counts.",
      input: Schema.Struct({}),
      execute: (_, api) =>
        Effect.gen(function*() {
          const ref = yield* api.task(counting, { to: 3 })
          yield* settle
          seen.push(yield* api.slot(ref))
          yield* Deferred.succeed(hold, undefined)
          const outcome = yield* api.waitForTask(ref)
          seen.push(yield* api.slot(ref))
          return JSON.stringify(outcome.result)
        })
    })
    const { harness, model } = yield* open(memory().storage(), [[call("counter", {})], "ok"], {
      tools: (draft) => draft.set("counter", counter)
    })
    yield* harness.task(counting)
    yield* harness.resume
    yield* Effect.flatMap(harness.main.send(user("go")), (input) => input.wait)
    expect(seen).toEqual([{ at: 3 }, null])
    expect(JSON.stringify(model.requests[1]?.messages)).toContain('{\\"at\\":3}')
  }))

it.effect("a call cannot wait for itself, nor for what waits for it", () =>
  Effect.gen(function*() {
    const refusals: Array<string> = []
    const waiter = tool({
      description: "Waits.",
      input: Schema.Struct({}),
      execute: (_, api) =>
        Effect.gen(function*() {
          const following = `t${Number(api.taskID.slice(1)) + 1}`
          for (const id of [api.taskID, following]) {
            yield* Effect.catch(Effect.asVoid(api.waitForTask({ id, kind: "any" })), (error) =>
              Effect.sync(() => {
                refusals.push(error.message)
              }))
          }
        })
    })
    const { harness } = yield* open(memory().storage(), [[call("waiter", {})], "ok"], {
      tools: (draft) => draft.set("waiter", waiter)
    })
    yield* harness.resume
    yield* Effect.flatMap(harness.main.send(user("go")), (input) => input.wait)
    expect(refusals.length).toBe(2)
    for (const refusal of refusals) expect(refusal).toContain("neither would ever end")
  }))

it.effect("hooks of one conversation run in those that it owns only with subtree", () =>
  Effect.gen(function*() {
    const seen: Array<string> = []
    const { harness } = yield* open(
      memory().storage(),
      byAsker([[call("subagent", { prompt: "look" })], "done"], [[call("echo", { text: "a" })], "found it"]),
      tools
    )
    const ns = yield* harness.namespace("n", {})
    const note = (name: string) => ({
      beforeTool: (hooked: { readonly name: string }) => Effect.sync(() => void seen.push(`${name} ${hooked.name}`))
    })
    yield* harness.hooks(ns, "tool", note("own"), { conversation: harness.main.id })
    yield* harness.hooks(ns, "tool", note("subtree"), { conversation: harness.main.id, subtree: true })
    yield* harness.hooks(ns, "tool", note("other"), { conversation: "c999", subtree: true })
    yield* harness.resume
    yield* Effect.flatMap(harness.main.send(user("go")), (input) => input.wait)
    expect(seen).toEqual(["own subagent", "subtree subagent", "subtree echo"])
  }))

it.effect("inputs that wait in an owned conversation end with the call that owns it, when that is aborted", () =>
  Effect.gen(function*() {
    const session = memory()
    const asking = tool({
      description: "asks twice at once",
      input: Schema.Struct({}),
      execute: (_, api) =>
        Effect.gen(function*() {
          const owned = yield* api.conversation("child")
          yield* Effect.all([owned.ask("one", "1"), owned.ask("two", "2")], { concurrency: 2 })
          return "answered"
        })
    })
    const { harness } = yield* open(session.storage(), [[call("asking", {})], [never]], {
      tools: (draft) => draft.set("asking", asking)
    })
    yield* harness.resume
    const input = yield* harness.main.send(user("go"))
    yield* settle
    expect((yield* session.storage().liveInputs).length).toBe(3)
    yield* harness.main.abort()
    expect(yield* input.wait).toMatchObject({ reason: "aborted" })
    expect(yield* session.storage().liveInputs).toEqual([])
    expect(yield* session.storage().liveTasks).toEqual([])
  }))
