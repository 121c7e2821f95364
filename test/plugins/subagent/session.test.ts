import { Plugin } from "@bezel/core/host"
import type { JsonValue } from "@bezel/core/json"
import { InteractionBroker } from "@bezel/core/service"
import { call, fail, finish, run, say, testPresentation } from "@bezel/core/testing"
import { tool } from "@bezel/core/tool"
import { Approval } from "@bezel/plugins/permissions/contract"
import { Question } from "@bezel/plugins/question/contract"
import { SubagentProgress } from "@bezel/plugins/subagent/contract"
import { describe, expect, it } from "@effect/vitest"
import { Context, Deferred, Effect, Option, Schema, Stream } from "effect"
import { children, detailsOf, finished, resultsIn, started, task, viewOf, world } from "./world.ts"

describe("a sub-agent", () => {
  it.live("works in a session of its own, with a fresh context, and gives its answer", () =>
    Effect.gen(function*() {
      const { host, id, model } = yield* world({ go: [[task("look")], "all done"], look: ["it is blue"] })
      expect(yield* host.ask(id, "go")).toBe("all done")
      expect(resultsIn(model.requests.at(-1))).toMatchObject([{ isFailure: false, result: "it is blue" }])
      const [child] = yield* children(host, id)
      expect(child).toMatchObject({ parentID: id, title: "do look", agent: "build" })
      const asked = model.requests[1]
      expect(asked?.messages.filter(({ role }) => role !== "system")).toMatchObject([{ role: "user" }])
      expect(JSON.stringify(asked?.messages)).toContain("You are a sub-agent")
      expect(JSON.stringify(model.requests[0]?.messages)).not.toContain("You are a sub-agent")
      const [data] = yield* finished(host, id)
      expect(detailsOf(data)).toMatchObject({ sessionID: child?.id, status: "completed", reason: null, calls: 0 })
    }).pipe(Effect.scoped))

  it.live("runs beside others that were called at the same time", () =>
    Effect.gen(function*() {
      const first = yield* Deferred.make<void>()
      const second = yield* Deferred.make<void>()
      const { host, id, model } = yield* world({
        go: [[task("a"), task("b")], "both"],
        a: [[started(first), run(Deferred.await(second)), say("A")]],
        b: [[started(second), run(Deferred.await(first)), say("B")]]
      })
      expect(yield* host.ask(id, "go")).toBe("both")
      expect(resultsIn(model.requests.at(-1))).toMatchObject([{ result: "A" }, { result: "B" }])
    }).pipe(Effect.scoped))

  it.live("uses its parent's model, or that of the agent it is told to be", () =>
    Effect.gen(function*() {
      const { host, id, model } = yield* world(
        {
          go: [[task("a"), task("b", { agent: "review" }), task("c", { agent: "nobody" })], "end"],
          a: ["A"],
          b: ["B"]
        },
        { agents: { review: { model: "test/other" } } }
      )
      yield* host.session.configure(id, { model: { provider: "test", model: "mine" } })
      yield* host.ask(id, "go")
      const made = yield* children(host, id)
      expect(made.map((child) => [child.agent, child.model?.model]).sort()).toEqual([["build", "mine"], [
        "review",
        "other"
      ]])
      expect(resultsIn(model.requests.at(-1))).toMatchObject([
        { result: "A" },
        { result: "B" },
        {
          isFailure: true,
          result: 'There is no agent "nobody" here; there are build, plan, review, explore.'
        }
      ])
    }).pipe(Effect.scoped))

  const odd: ReadonlyArray<readonly [tool: string, args: JsonValue, told: string]> = [
    ["subagent", {}, "description: is required"],
    ["subagent", { description: "", prompt: "p" }, "description: "],
    ["subagent", { description: "d", prompt: "" }, "prompt: "],
    ["subagent", { description: "d", prompt: 5 }, "prompt: expected string, got 5"],
    ["subagent", { description: "d", prompt: "p", agent: "" }, "agent: "],
    ["subagent", { description: "d", prompt: "p", agent: "nobody" }, 'There is no agent "nobody" here'],
    [
      "subagent",
      { description: "d", prompt: "p", agent: "x".repeat(5_000) },
      `There is no agent "${"x".repeat(80)}" here`
    ],
    ["subagent", { description: "d", prompt: "p", background: "yes" }, "background: expected boolean"],
    ["subagent", { description: "d", prompt: "p", model: "m" }, "model: there is no such parameter"],
    ["subagent_stop", {}, "session: is required"],
    ["subagent_stop", { session: "" }, "is no sub-agent of this session"],
    ["subagent_stop", { session: "../../etc" }, "is no sub-agent of this session"]
  ]
  it.live.each(odd)("is not begun or ended by %s with %j", ([name, args, told]) =>
    Effect.gen(function*() {
      const { host, id, model } = yield* world({ go: [[call(name, args)], "end"] })
      yield* host.ask(id, "go")
      expect(resultsIn(model.requests.at(-1))).toMatchObject([
        { isFailure: true, result: expect.stringContaining(told) }
      ])
      expect(yield* children(host, id)).toEqual([])
    }).pipe(Effect.scoped))

  it.live("that has no answer is an error result with the reason", () =>
    Effect.gen(function*() {
      const { host, id, model } = yield* world({
        go: [[task("fails")], "sorry"],
        fails: [[fail("auth", { message: "the key is wrong" })]]
      })
      expect(yield* host.ask(id, "go")).toBe("sorry")
      expect(resultsIn(model.requests.at(-1))).toMatchObject([{
        isFailure: true,
        result: expect.stringContaining("The sub-agent gave no answer: the key is wrong")
      }])
      const [data] = yield* finished(host, id)
      expect(detailsOf(data)).toMatchObject({ status: "unanswered", reason: "failed" })
    }).pipe(Effect.scoped))

  it.live("may have sub-agents of its own, three deep and no deeper", () =>
    Effect.gen(function*() {
      const { host, id, model } = yield* world({
        go: [[task("1")], "top"],
        1: [[task("2")], "one"],
        2: [[task("3")], "two"],
        3: [[task("4")], "three"]
      })
      expect(yield* host.ask(id, "go")).toBe("top")
      const deepest = model.requests.find((request) => JSON.stringify(request.messages).includes("may nest"))
      expect(resultsIn(deepest)).toMatchObject([{
        isFailure: true,
        result: expect.stringContaining("Sub-agents may nest 3 deep")
      }])
      expect((yield* host.session.list()).sessions).toHaveLength(4)
    }).pipe(Effect.scoped))

  it.live("counts its work and that of its own sub-agents, in calls, tokens and dollars", () =>
    Effect.gen(function*() {
      const { host, id } = yield* world({
        go: [[task("1")], "top"],
        1: [[task("2"), finish("tool-calls", { input: 1_000, output: 100 })], [
          say("one"),
          finish("stop", { input: 2_000, output: 200 })
        ]],
        2: [[say("two"), finish("stop", { input: 4_000, output: 400 })]]
      }, { cost: true })
      yield* host.ask(id, "go")
      const [data] = yield* finished(host, id)
      const { calls, usage } = detailsOf(data)
      expect(calls).toBe(1)
      expect(usage).toMatchObject({ input: 7_000, output: 700 })
      expect(usage.cost).toBeGreaterThan(0)
      const [child] = yield* children(host, id)
      expect(usage.cost).toBeGreaterThan(child?.cost ?? 0)
    }).pipe(Effect.scoped))

  it.live("shows what it does while it does it", () =>
    Effect.gen(function*() {
      const shown = yield* Deferred.make<void>()
      const { host, id } = yield* world({
        go: [[task("busy")], "top"],
        busy: [[call("touch", { name: "x" })], [run(Deferred.await(shown)), say("ok")]]
      })
      const broker = Context.get(host.services, InteractionBroker)
      const view = yield* viewOf(host, id)
      yield* host.session.prompt({ sessionID: id, prompt: { text: "go" } })
      const progress = (wanted: string) =>
        view.changes.pipe(
          Stream.map(({ turn }) => Schema.decodeUnknownOption(SubagentProgress)(turn?.tools[0]?.progress)),
          Stream.filter((found) => Option.isSome(found) && found.value.activity.includes(wanted)),
          Stream.runHead,
          Effect.map((found) => Option.getOrThrow(Option.flatten(found)))
        )
      expect((yield* progress("waits for an answer")).activity).toBe("waits for an answer: touch x")
      yield* broker.unattended(id, "deny")
      expect(yield* progress("thinking")).toMatchObject({ calls: 1 })
      yield* Deferred.succeed(shown, undefined)
      yield* host.session.wait(id)
    }).pipe(Effect.scoped))
})

describe("an agent's limits", () => {
  it.live("hold for its sub-agents, whatever agent those are told to be", () =>
    Effect.gen(function*() {
      const write = Plugin.define({
        id: "test.write",
        session: (ctx) =>
          Effect.asVoid(ctx.tool.transform((draft) =>
            draft.set(
              "write",
              tool({
                description: "Writes",
                input: Schema.Struct({}),
                permission: () => ({ access: "write", subjects: [`${ctx.location.directory}/x`] }),
                execute: () => Effect.succeed("written")
              })
            )
          ))
      })
      const { host, id } = yield* world({
        go: [[task("change", { agent: "build" })], "top"],
        change: [[call("write", {})], "tried"]
      }, { extra: [write] })
      yield* host.session.configure(id, { agent: "plan" })
      expect(yield* host.ask(id, "go")).toBe("top")
      const [child] = yield* children(host, id)
      expect(child?.agent).toBe("build")
      expect(yield* finished(host, child?.id ?? "")).toMatchObject([{ isError: true, code: "denied_by_rule" }])
    }).pipe(Effect.scoped))

  it.live("are named to the model where it may choose one", () =>
    Effect.gen(function*() {
      const { host, id, model } = yield* world({ go: ["hi"] }, { agents: { tester: { description: "Writes tests." } } })
      yield* host.ask(id, "go")
      const described = model.requests[0]?.tools.find(({ name }) => name === "subagent")?.description
      expect(described).toContain("- explore: Finds its way")
      expect(described).toContain("- tester: Writes tests.")
    }).pipe(Effect.scoped))
})

describe("who is asked", () => {
  it.live("the parent's person answers what a sub-agent needs approval for and what it asks, however deep", () =>
    Effect.gen(function*() {
      const { host, id, ran } = yield* world({
        go: [[task("1")], "top"],
        1: [[task("2")], "one"],
        2: [[call("touch", { name: "x" })], [call("question", { question: "Which?", options: ["a", "b"] })], "two"]
      })
      const asked: Array<string> = []
      yield* testPresentation(host, {
        "test.person": (ctx) =>
          Effect.andThen(
            ctx.interactions.handle(Approval, (request) =>
              Effect.sync(() => {
                asked.push(`${request.tool} for ${request.subagent?.agent}: ${request.subagent?.title}`)
                return { decision: "once" } as const
              })),
            ctx.interactions.handle(Question, (request) =>
              Effect.sync(() => {
                asked.push(request.question)
                return { outcome: "selected", index: 0 } as const
              }))
          )
      }, id)
      expect(yield* host.ask(id, "go")).toBe("top")
      expect(asked).toEqual(["touch for build: do 2", "Which?"])
      expect(ran).toEqual(["x"])
    }).pipe(Effect.scoped))

  it.live("where the parent is denied because nobody is there, the sub-agent is, and the call says so", () =>
    Effect.gen(function*() {
      const { host, id, ran } = yield* world({
        go: [[task("1")], "top"],
        1: [[task("2")], "one"],
        2: [[call("touch", { name: "x" }), call("question", { question: "Which?" })], "two"]
      }, { unattended: "deny" })
      expect(yield* host.ask(id, "go")).toBe("top")
      expect(ran).toEqual([])
      expect(yield* finished(host, id)).toMatchObject([{ isError: false, code: "unattended" }])
    }).pipe(Effect.scoped))
})
