import { Conversation, conversationKey, Plugin, PluginKernel } from "@bezel/core/host"
import { InteractionBroker, type Unattended } from "@bezel/core/service"
import type { SettingsKey, SettingsReader } from "@bezel/core/settings"
import {
  call,
  emptySettings,
  fail,
  finish,
  run,
  say,
  scriptedModel,
  type ScriptedTurn,
  temporaryDirectory,
  testPresentation,
  type TestSessionHost,
  testSessionHost,
  testSessions
} from "@bezel/core/testing"
import { tool } from "@bezel/core/tool"
import { session as agents } from "@bezel/plugins/agents/session"
import { Approval } from "@bezel/plugins/permissions/contract"
import { session as permissions } from "@bezel/plugins/permissions/session"
import { Question } from "@bezel/plugins/question/contract"
import { session as question } from "@bezel/plugins/question/session"
import { AgentsSetting } from "@bezel/plugins/settings/contract"
import { SubagentDetails, SubagentProgress } from "@bezel/plugins/subagent/contract"
import { session as subagent } from "@bezel/plugins/subagent/session"
import { describe, expect, it } from "@effect/vitest"
import { Context, Deferred, Effect, Exit, Option, Schema, Scope, Stream } from "effect"

type Sessions = Effect.Success<typeof testSessions>

interface Given {
  readonly unattended?: Unattended
  readonly sessions?: Sessions
  readonly directory?: string
  readonly sessionID?: string
  readonly agents?: { readonly [name: string]: { readonly model?: string; readonly description?: string } }
  readonly maxDepth?: number
  readonly extra?: ReadonlyArray<Plugin>
  readonly cost?: boolean
  /** Stands in for resuming a session from within the tool. */
  readonly resume?: Effect.Effect<void>
}

const withAgents = (agents: NonNullable<Given["agents"]>): SettingsReader => ({
  ...emptySettings,
  get: <A>(key: SettingsKey<A>): A => key.name === AgentsSetting.name ? agents as A : key.default
})

/** A tool that needs approval and notes that it ran. */
const touchPlugin = (ran: Array<string>) =>
  Plugin.define({
    id: "test.touch",
    session: (ctx) =>
      Effect.asVoid(ctx.tool.transform((draft) =>
        draft.set(
          "touch",
          tool({
            description: "Touches",
            input: Schema.Struct({ name: Schema.String }),
            execute: ({ name }) =>
              Effect.sync(() => {
                ran.push(name)
                return `touched ${name}`
              })
          })
        )
      ))
  })

/**
 * A model that answers by what its conversation was asked: `script` has the turns of each first prompt. Parent and children
 * share it, so that the order of their requests does not matter.
 */
const modelOf = (scripts: { readonly [prompt: string]: ReadonlyArray<ScriptedTurn> }, cost = false) => {
  const left = new Map(Object.entries(scripts).map(([prompt, turns]) => [prompt, [...turns]]))
  return scriptedModel(
    Array.from({ length: 100 }, (): ScriptedTurn => (request) => {
      const user = request.messages.find((message) => message.role === "user")
      const first = user?.role === "user" ? user.content.find((part) => part.type === "text") : undefined
      const prompt = first?.type === "text" ? first.text : ""
      const turn = left.get(prompt)?.shift()
      if (turn === undefined) return [fail("invalid_request", { message: `no turn for ${JSON.stringify(prompt)}` })]
      return typeof turn === "function" ? turn(request) : turn
    }),
    cost ? { cost: { input: 1, output: 1, cacheRead: 0, cacheWrite: 0 } } : {}
  )
}

const world = (scripts: { readonly [prompt: string]: ReadonlyArray<ScriptedTurn> }, given: Given = {}) =>
  Effect.gen(function*() {
    const ran: Array<string> = []
    const model = modelOf(scripts, given.cost)
    const host = yield* testSessionHost(
      [
        touchPlugin(ran),
        ...given.extra ?? [],
        Plugin.define({ id: "bezel.question", session: question }),
        Plugin.define({ id: "bezel.permissions", session: permissions }),
        Plugin.define({ id: "bezel.agents", session: agents }),
        Plugin.define({
          id: "bezel.subagent",
          session: (ctx) => {
            const { resume } = given
            return subagent(resume === undefined ? ctx : { ...ctx, session: { ...ctx.session, resume: () => resume } })
          }
        })
      ],
      {
        model,
        settings: withAgents(given.agents ?? {}),
        entries: {
          "bezel.agents": { required: true, options: { configDirectory: yield* temporaryDirectory } },
          "bezel.subagent": {
            required: true,
            ...(given.maxDepth === undefined ? {} : { options: { maxDepth: given.maxDepth } })
          }
        },
        ...(given.sessions === undefined ? {} : { sessions: given.sessions }),
        ...(given.directory === undefined ? {} : { directory: given.directory })
      }
    )
    const id = given.sessionID ?? (yield* host.session.create({ title: "parent" })).id
    if (given.unattended !== undefined) {
      yield* Context.get(host.services, InteractionBroker).unattended(id, given.unattended)
    }
    return { host, model, id, ran }
  })

const viewOf = (host: TestSessionHost, sessionID: string) =>
  Effect.gen(function*() {
    const connection = yield* host.connect(sessionID)
    const conversation = yield* connection.use(Conversation, { key: conversationKey(sessionID, "c1") })
    yield* conversation.ready
    return conversation.view
  })

/** What clients see of the finished calls. */
const finished = (host: TestSessionHost, sessionID: string) =>
  Effect.gen(function*() {
    const view = Option.getOrThrow(yield* Stream.runHead((yield* viewOf(host, sessionID)).changes))
    return view.entries.filter((entry) => entry.kind === "bezel.tool_result").map((entry) => entry.data)
  })

const detailsOf = (data: unknown) => Schema.decodeUnknownSync(SubagentDetails)(Reflect.get(Object(data), "details"))

const children = (host: TestSessionHost, parentID: string) =>
  Effect.map(host.session.list({ parentID }), ({ sessions }) => sessions)

const resultsIn = (
  request: { readonly messages: ReadonlyArray<{ readonly role: string; readonly content: unknown }> } | undefined
) => request?.messages.findLast((message) => message.role === "tool")?.content

const task = (prompt: string, more: { readonly agent?: string } = {}, id?: string) =>
  call("subagent", { description: `do ${prompt}`, prompt, ...more }, id)

const started = (latch: Deferred.Deferred<void>) => run(Effect.asVoid(Deferred.succeed(latch, undefined)))

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
                asked.push(request.tool)
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
      expect(asked).toEqual(["touch", "Which?"])
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

describe("an interrupt of the parent", () => {
  it.live("ends the sub-agent and its own, and nothing of them starts afterwards", () =>
    Effect.gen(function*() {
      const deep = yield* Deferred.make<void>()
      const { host, id, model } = yield* world({
        go: [[task("1")]],
        1: [[task("2")]],
        2: [[started(deep), run(Effect.never)]]
      })
      yield* host.session.prompt({ sessionID: id, prompt: { text: "go" } })
      yield* Deferred.await(deep)
      yield* host.session.interrupt(id)
      expect(yield* finished(host, id)).toMatchObject([{ code: "aborted" }])
      expect(yield* host.session.active).toEqual([])
      const [child] = yield* children(host, id)
      expect(yield* finished(host, child?.id ?? "")).toMatchObject([{ code: "aborted" }])
      yield* Effect.forEach([id, child?.id ?? ""], (each) => host.session.resume(each))
      yield* Effect.sleep(20)
      expect(model.requests).toHaveLength(3)
    }).pipe(Effect.scoped))

  it.live("between the prompt and the work on it takes the prompt back", () =>
    Effect.gen(function*() {
      const prompted = yield* Deferred.make<void>()
      const { host, id, model } = yield* world({ go: [[task("1")]], 1: ["never said"] }, {
        resume: Effect.andThen(Deferred.succeed(prompted, undefined), Effect.never)
      })
      yield* host.session.prompt({ sessionID: id, prompt: { text: "go" } })
      yield* Deferred.await(prompted)
      yield* host.session.interrupt(id)
      const [child] = yield* children(host, id)
      yield* host.session.resume(child?.id ?? "")
      yield* host.session.wait(child?.id ?? "")
      expect(yield* host.session.finalText(child?.id ?? "")).toBe("")
      expect(model.requests).toHaveLength(1)
    }).pipe(Effect.scoped))

  it.live("leaves nothing at work, whenever it comes", () =>
    Effect.gen(function*() {
      for (const delay of [0, 1, 2, 3, 5, 8, 13]) {
        const { host, id } = yield* world({ go: [[task("1")]], 1: [[run(Effect.sleep(5)), run(Effect.never)]] })
        yield* host.session.prompt({ sessionID: id, prompt: { text: "go" } })
        yield* Effect.sleep(delay)
        yield* host.session.interrupt(id)
        for (const child of yield* children(host, id)) {
          yield* host.session.resume(child.id)
          yield* host.session.wait(child.id)
        }
        expect(yield* host.session.active).toEqual([])
      }
    }).pipe(Effect.scoped), 20_000)
})

describe("a reload of the plugin", () => {
  it.live("leaves the sub-agent at work, and the call finds it again", () =>
    Effect.gen(function*() {
      const working = yield* Deferred.make<void>()
      const finish = yield* Deferred.make<void>()
      const { host, id, model } = yield* world({
        go: [[task("long")], "top"],
        long: [[started(working), run(Deferred.await(finish)), say("the answer")]]
      })
      yield* host.session.prompt({ sessionID: id, prompt: { text: "go" } })
      yield* Deferred.await(working)
      yield* Context.get(host.services, PluginKernel).reload({ plugins: ["bezel.subagent"] })
      yield* Deferred.succeed(finish, undefined)
      yield* host.session.wait(id)
      expect(yield* host.session.finalText(id)).toBe("top")
      expect(resultsIn(model.requests.at(-1))).toMatchObject([{ isFailure: false, result: "the answer" }])
      expect(yield* children(host, id)).toHaveLength(1)
      expect(model.requests).toHaveLength(3)
    }).pipe(Effect.scoped))
})

describe("after a crash", () => {
  const directory = Effect.map(testSessionHost([]), ({ location }) => location.directory)

  const crashing = <A, E>(use: Effect.Effect<A, E, Scope.Scope>) =>
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      const value = yield* Scope.provide(use, scope)
      yield* Scope.close(scope, Exit.void)
      return value
    })

  it.live("the same call finds the same sub-agent, which goes on and was asked once", () =>
    Effect.gen(function*() {
      const sessions = yield* testSessions
      const place = yield* directory
      const id = yield* crashing(Effect.gen(function*() {
        const working = yield* Deferred.make<void>()
        const first = yield* world(
          {
            go: [[task("long")]],
            long: [[call("subagent", { description: "d", prompt: "deep" })]],
            deep: [[started(working), run(Effect.never)]]
          },
          { sessions, directory: place }
        )
        yield* first.host.session.prompt({ sessionID: first.id, prompt: { text: "go" } })
        yield* Deferred.await(working)
        return first.id
      }))
      const second = yield* world(
        { go: ["top"], long: ["after all"], deep: ["deep too"] },
        { sessions, directory: place, sessionID: id }
      )
      const before = yield* children(second.host, id)
      expect(before).toHaveLength(1)
      yield* second.host.session.resume(id)
      yield* second.host.session.wait(id)
      expect(yield* second.host.session.finalText(id)).toBe("top")
      expect((yield* children(second.host, id)).map((child) => child.id)).toEqual(before.map((child) => child.id))
      const messages = yield* second.host.session.messages(before[0]?.id ?? "")
      expect(messages.messages.filter((message) => message.kind === "bezel.user")).toHaveLength(1)
      expect(resultsIn(second.model.requests.find((request) => JSON.stringify(request.messages).includes("after all"))))
        .toMatchObject([{ result: "after all" }])
    }).pipe(Effect.scoped))

  it.live("a sub-agent that had answered is not asked again", () =>
    Effect.gen(function*() {
      const sessions = yield* testSessions
      const place = yield* directory
      const stuck = yield* Deferred.make<void>()
      const slow = (hold: boolean) =>
        Plugin.define({
          id: "test.slow",
          session: (ctx) =>
            Effect.gen(function*() {
              const namespace = yield* ctx.namespace("slow", {})
              yield* ctx.hooks(namespace, "tool", {
                afterTool: () => hold ? Effect.andThen(Deferred.succeed(stuck, undefined), Effect.never) : Effect.void
              })
            })
        })
      const id = yield* crashing(Effect.gen(function*() {
        const first = yield* world(
          { go: [[task("quick")]], quick: ["the answer"] },
          { sessions, directory: place, extra: [slow(true)] }
        )
        yield* first.host.session.prompt({ sessionID: first.id, prompt: { text: "go" } })
        yield* Deferred.await(stuck)
        return first.id
      }))
      const second = yield* world({ go: ["top"] }, { sessions, directory: place, sessionID: id, extra: [slow(false)] })
      yield* second.host.session.resume(id)
      yield* second.host.session.wait(id)
      expect(resultsIn(second.model.requests.at(-1))).toMatchObject([{ isFailure: false, result: "the answer" }])
      expect(second.model.requests).toHaveLength(1)
    }).pipe(Effect.scoped))
})
