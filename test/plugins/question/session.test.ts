import { Conversation, conversationKey, Plugin, PluginKernel } from "@bezel/core/host"
import type { JsonValue } from "@bezel/core/json"
import { InteractionBroker, type Unattended } from "@bezel/core/service"
import type { SettingsKey, SettingsReader } from "@bezel/core/settings"
import {
  call,
  emptySettings,
  scriptedModel,
  type ScriptedTurn,
  testPresentation,
  type TestSessionHost,
  testSessionHost,
  testSessions
} from "@bezel/core/testing"
import { Question, type QuestionRequest, type QuestionResponse } from "@bezel/plugins/question/contract"
import { session as question } from "@bezel/plugins/question/session"
import { LimitsSetting } from "@bezel/plugins/settings"
import { describe, expect, it } from "@effect/vitest"
import { Context, Deferred, Effect, Exit, Fiber, Option, Scope, Stream } from "effect"
import { drained, eventually } from "../../eventually.ts"

type Sessions = Effect.Success<typeof testSessions>

/** Where an answer has to come within a second. */
const hasty: SettingsReader = {
  ...emptySettings,
  get: <A>(key: SettingsKey<A>): A => key.name === LimitsSetting.name ? { answerSeconds: 1 } as A : key.default
}

const world = (
  script: ReadonlyArray<ScriptedTurn>,
  given: {
    readonly settings?: SettingsReader
    readonly unattended?: Unattended
    readonly sessions?: Sessions
    readonly sessionID?: string
    readonly directory?: string
    readonly extra?: ReadonlyArray<Plugin>
  } = {}
) =>
  Effect.gen(function*() {
    const model = scriptedModel(script)
    const host = yield* testSessionHost([
      ...given.extra ?? [],
      Plugin.define({ id: "bezel.question", session: question })
    ], {
      model,
      entries: {
        "bezel.question": { required: true }
      },
      ...(given.settings === undefined ? {} : { settings: given.settings }),
      ...(given.sessions === undefined ? {} : { sessions: given.sessions }),
      ...(given.directory === undefined ? {} : { directory: given.directory })
    })
    const id = given.sessionID ?? (yield* host.session.create({ title: "t" })).id
    if (given.unattended !== undefined) {
      yield* Context.get(host.services, InteractionBroker).unattended(id, given.unattended)
    }
    /** The results that the model got last. */
    const results = () => {
      const message = model.requests.at(-1)?.messages.findLast((each) => each.role === "tool")
      return message?.role === "tool" ? message.content : []
    }
    return { host, model, id, results }
  })

/** A person at a client who answers like this, and what was asked. */
const person = (
  host: TestSessionHost,
  sessionID: string,
  answer: (request: QuestionRequest) => Effect.Effect<QuestionResponse | "declined", unknown>
) =>
  Effect.gen(function*() {
    const asked: Array<QuestionRequest> = []
    yield* testPresentation(host, {
      "test.person": (ctx) =>
        ctx.interactions.handle(Question, (request) => {
          asked.push(request)
          return answer(request)
        })
    }, sessionID)
    return asked
  })

/** What clients see of the finished calls. */
const finished = (host: TestSessionHost, sessionID: string) =>
  Effect.gen(function*() {
    const connection = yield* host.connect(sessionID)
    const conversation = yield* connection.use(Conversation, { key: conversationKey(sessionID, "c1") })
    yield* conversation.ready
    const view = Option.getOrThrow(yield* Stream.runHead(conversation.view.changes))
    return view.entries.filter((entry) => entry.kind === "bezel.tool_result").map((entry) => entry.data)
  })

const colours = { question: "Which colour?", options: ["red", { label: "green", description: "like grass" }] }

describe("the question tool", () => {
  it.live("asks the person who is there, with plain options and such that are described, and tells the model the choice", () =>
    Effect.gen(function*() {
      const { host, id, results } = yield* world([[call("question", colours)], "done"])
      const asked = yield* person(host, id, () => Effect.succeed({ outcome: "selected", index: 1 }))
      expect(yield* host.ask(id, "go")).toBe("done")
      expect(asked).toEqual([{
        question: "Which colour?",
        options: [{ label: "red", description: null }, { label: "green", description: "like grass" }]
      }])
      expect(results()).toMatchObject([{ isFailure: false, result: "The user chose: green" }])
      expect(yield* finished(host, id)).toMatchObject([{
        isError: false,
        details: { question: "Which colour?", options: ["red", "green"], outcome: "selected", answer: "green" }
      }])
    }).pipe(Effect.scoped))

  it.live("takes an answer in the person's own words, with options and without", () =>
    Effect.gen(function*() {
      const { host, id, results } = yield* world([[call("question", colours)], [
        call("question", { question: "Name?" })
      ], "done"])
      yield* person(host, id, ({ question }) => Effect.succeed({ outcome: "custom", answer: `${question} blue` }))
      yield* host.ask(id, "go")
      expect(results()).toMatchObject([{ isFailure: false, result: "The user answered: Name? blue" }])
      expect((yield* finished(host, id)).map((data) => Reflect.get(Object(data), "details"))).toMatchObject([
        { outcome: "custom", answer: "Which colour? blue" },
        { outcome: "custom", answer: "Name? blue", options: [] }
      ])
    }).pipe(Effect.scoped))

  it.live("gives four different results for an answer, a person who would not, a time that ran out, and nobody", () =>
    Effect.gen(function*() {
      const ask = [[call("question", colours)], "done"] as const
      const declined = yield* world(ask)
      yield* person(declined.host, declined.id, () => Effect.succeed("declined"))
      yield* declined.host.ask(declined.id, "go")
      const expired = yield* world(ask, { settings: hasty })
      yield* person(expired.host, expired.id, () => Effect.never)
      yield* expired.host.ask(expired.id, "go")
      const unattended = yield* world(ask, { unattended: "deny" })
      yield* unattended.host.ask(unattended.id, "go")
      const ends = yield* Effect.forEach([declined, expired, unattended], ({ host, id }) => finished(host, id))
      expect(ends.flat()).toMatchObject([
        { isError: true, code: "declined", details: { outcome: "declined", answer: null } },
        { isError: true, code: "expired", details: { outcome: "expired", answer: null } },
        { isError: true, code: "unattended", details: { outcome: "unattended", answer: null } }
      ])
      const texts = [declined, expired, unattended].map(({ results }) => results()[0]?.result)
      expect(new Set(texts).size).toBe(3)
      expect(texts[2]).toContain("Nobody is here to answer")
    }).pipe(Effect.scoped))

  it.live("waits where nobody is and the policy says so, and asks who comes later", () =>
    Effect.gen(function*() {
      const { host, id } = yield* world([[call("question", colours)], "done"])
      const asking = yield* Effect.forkScoped(host.ask(id, "go"))
      const broker = Context.get(host.services, InteractionBroker)
      yield* eventually(async () => (await Effect.runPromise(broker.open(id))).length > 0)
      yield* person(host, id, () => Effect.succeed({ outcome: "selected", index: 0 }))
      expect(yield* Fiber.join(asking)).toBe("done")
      expect(yield* broker.open(id)).toEqual([])
    }).pipe(Effect.scoped))

  it.live("is withdrawn when the turn is interrupted", () =>
    Effect.gen(function*() {
      const { host, id } = yield* world([[call("question", colours)]])
      const shown = yield* Deferred.make<void>()
      const gone = yield* Deferred.make<void>()
      yield* person(host, id, () =>
        Effect.andThen(Deferred.succeed(shown, undefined), Effect.never).pipe(
          Effect.onInterrupt(() => Deferred.succeed(gone, undefined))
        ))
      yield* host.session.prompt({ sessionID: id, prompt: { text: "go" } })
      yield* Deferred.await(shown)
      yield* host.session.interrupt(id)
      yield* Deferred.await(gone)
      expect(yield* finished(host, id)).toMatchObject([{ code: "aborted" }])
    }).pipe(Effect.scoped))

  it.live("does not take an answer that names no option, and gives up on a client that gives no other", () =>
    Effect.gen(function*() {
      const { host, id, results } = yield* world([[call("question", colours)], [call("question", colours)], "done"])
      let times = 0
      yield* person(host, id, () => Effect.succeed({ outcome: "selected", index: ++times === 2 ? 0 : 7 }))
      yield* host.ask(id, "go")
      expect(times).toBe(5)
      expect(yield* finished(host, id)).toMatchObject([{ details: { answer: "red" } }, { isError: true }])
      expect(results()[0]?.result).toContain("options that were not offered")
    }).pipe(Effect.scoped))

  it.live("asks one question at a time, also when the model calls it twice at once", () =>
    Effect.gen(function*() {
      const { host, id } = yield* world([
        [call("question", { question: "A?" }), call("question", { question: "B?" })],
        "done"
      ])
      let open = 0
      let most = 0
      yield* person(host, id, () =>
        Effect.gen(function*() {
          most = Math.max(most, ++open)
          yield* drained
          open--
          return { outcome: "custom", answer: "x" } as const
        }))
      yield* host.ask(id, "go")
      expect(most).toBe(1)
    }).pipe(Effect.scoped))

  const odd: ReadonlyArray<readonly [args: JsonValue, told: string]> = [
    [{}, "question: is required"],
    [{ question: "" }, "question: "],
    [{ question: 5 }, "question: expected string, got 5"],
    [{ question: "a", options: "x" }, "options: expected array"],
    [{ question: "a", options: [3] }, "options.0: "],
    [{ question: "a", options: [""] }, "options.0: "],
    [{ question: "a", options: [{}] }, "options.0"],
    [{ question: "a", options: [{ label: "b", more: 1 }] }, "options.0"],
    [{ question: "a", choices: ["b"] }, "choices: there is no such parameter"],
    // These are questions, and nobody is there.
    [{ question: "a", options: [] }, "Nobody is here to answer"],
    [{ question: "a\u0000\u001b[2J\n".repeat(2_000), options: ["b", "b"] }, "Nobody is here to answer"],
    [{ question: "a", options: Array.from({ length: 500 }, (_, n) => `${n}`) }, "Nobody is here to answer"]
  ]
  it.live.each(odd)("tells the model what is wrong with %j, if anything", ([args, told]) =>
    Effect.gen(function*() {
      const { host, id, results } = yield* world([[call("question", args)], "done"], { unattended: "deny" })
      yield* host.ask(id, "go")
      expect(results()).toMatchObject([{ result: expect.stringContaining(told) }])
    }).pipe(Effect.scoped))
})

describe("a reload of the plugin", () => {
  it.live("asks an open question again, and no other", () =>
    Effect.gen(function*() {
      const { host, id, results } = yield* world([[call("question", colours)], [
        call("question", { question: "Name?" })
      ], "done"])
      const open = yield* Deferred.make<void>()
      let times = 0
      const asked = yield* person(host, id, ({ question }) =>
        question === "Name?" && ++times === 1
          ? Effect.andThen(Deferred.succeed(open, undefined), Effect.never)
          : Effect.succeed({ outcome: "custom", answer: "Ada" }))
      yield* host.session.prompt({ sessionID: id, prompt: { text: "go" } })
      yield* Deferred.await(open)
      yield* Context.get(host.services, PluginKernel).reload({ plugins: ["bezel.question"] })
      yield* host.session.wait(id)
      expect(asked.map(({ question }) => question)).toEqual(["Which colour?", "Name?", "Name?"])
      expect(results()).toMatchObject([{ result: "The user answered: Ada" }])
    }).pipe(Effect.scoped))
})

describe("after a crash", () => {
  const directory = Effect.map(testSessionHost([]), ({ location }) => location.directory)

  /** Runs `use` in a host over these sessions, which is gone afterwards as after a crash. */
  const crashing = <A, E>(use: (scope: Scope.Scope) => Effect.Effect<A, E, Scope.Scope>) =>
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      const value = yield* Scope.provide(use(scope), scope)
      yield* Scope.close(scope, Exit.void)
      return value
    })

  it.live("a question without an answer is asked again", () =>
    Effect.gen(function*() {
      const sessions = yield* testSessions
      const place = yield* directory
      const id = yield* crashing(() =>
        Effect.gen(function*() {
          const first = yield* world([[call("question", colours)]], { sessions, directory: place })
          const shown = yield* Deferred.make<void>()
          yield* person(first.host, first.id, () => Effect.andThen(Deferred.succeed(shown, undefined), Effect.never))
          yield* first.host.session.prompt({ sessionID: first.id, prompt: { text: "go" } })
          yield* Deferred.await(shown)
          return first.id
        })
      )
      const second = yield* world(["done"], { sessions, directory: place, sessionID: id })
      const asked = yield* person(second.host, id, () => Effect.succeed({ outcome: "selected", index: 0 }))
      yield* second.host.session.resume(id)
      yield* second.host.session.wait(id)
      expect(asked).toHaveLength(1)
      expect(yield* second.host.session.finalText(id)).toBe("done")
      expect(second.results()).toMatchObject([{ result: "The user chose: red" }])
    }).pipe(Effect.scoped))

  it.live("a question that was answered is not asked again, and keeps its answer", () =>
    Effect.gen(function*() {
      const sessions = yield* testSessions
      const place = yield* directory
      const stuck = yield* Deferred.make<void>()
      // Holds the result back once the answer is stored: the crash comes between the two.
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
      const id = yield* crashing(() =>
        Effect.gen(function*() {
          const first = yield* world([[call("question", colours)]], { sessions, directory: place, extra: [slow(true)] })
          yield* person(first.host, first.id, () => Effect.succeed({ outcome: "selected", index: 1 }))
          yield* first.host.session.prompt({ sessionID: first.id, prompt: { text: "go" } })
          yield* Deferred.await(stuck)
          return first.id
        })
      )
      const second = yield* world(["done"], { sessions, directory: place, sessionID: id, extra: [slow(false)] })
      const asked = yield* person(second.host, id, () => Effect.succeed({ outcome: "selected", index: 0 }))
      yield* second.host.session.resume(id)
      yield* second.host.session.wait(id)
      expect(asked).toEqual([])
      expect(second.results()).toMatchObject([{ result: "The user chose: green" }])
    }).pipe(Effect.scoped))
})
