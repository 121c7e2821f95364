/** What servers ask people, over a real server at an address: forms, declined, nobody there, interrupted. */
import type { JsonObject } from "@bezel/core/json"
import { InteractionBroker } from "@bezel/core/service"
import { call, type ScriptedTurn, testPresentation } from "@bezel/core/testing"
import { Question, type QuestionRequest, type QuestionResponse } from "@bezel/plugins/question"
import { describe, expect, it } from "@effect/vitest"
import { Context, Deferred, Effect, Fiber, Logger } from "effect"
import * as TestClock from "effect/testing/TestClock"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { realSite } from "./real-site.ts"
import { world } from "./world.ts"

const everything = join(
  import.meta.dirname,
  "../../../node_modules/@modelcontextprotocol/server-everything/dist/index.js"
)

type Answer = QuestionResponse | "declined"

const choose = (index: number): Answer => ({ outcome: "selected", index })
const say = (answer: string): Answer => ({ outcome: "custom", answer })

const form = (properties: JsonObject, required: ReadonlyArray<string> = Object.keys(properties)): JsonObject => ({
  message: "Who are you?\u001b[2J",
  requestedSchema: { type: "object", properties, required: [...required] }
})

/** A session in which the server's tool asks so, and a person who answers so, in order. */
const asked = (arguments_: JsonObject, answers: ReadonlyArray<Answer>, timeout = 120) =>
  Effect.gen(function*() {
    const site = yield* realSite
    const script: ReadonlyArray<ScriptedTurn> = [[call("real_ask", arguments_)], "ok"]
    const made = yield* world(() => ({ real: { url: site.url, timeout } }), script)
    const questions: Array<QuestionRequest> = []
    yield* testPresentation(made.host, {
      "test.person": (ctx) =>
        ctx.interactions.handle(Question, (request) => {
          questions.push(request)
          return Effect.succeed(answers[questions.length - 1] ?? "declined")
        })
    }, made.sessionID)
    yield* made.until("real", ({ status }) => status === "ready")
    expect(yield* made.host.ask(made.sessionID, "go")).toBe("ok")
    return { ...made, questions, answer: site.answers[0] }
  })

describe("what a server asks a person", () => {
  it.live("is asked field by field in the session of the call, and answered as the fields are", () =>
    Effect.gen(function*() {
      const { answer, questions, results } = yield* asked(
        form({
          name: { type: "string", title: "Name", description: "as in your passport" },
          age: { type: "integer", minimum: 0 },
          colour: { type: "string", enum: ["r", "g"], enumNames: ["red", "green"] },
          member: { type: "boolean" },
          days: { type: "array", items: { type: "string", enum: ["mo", "tu", "we"] } },
          size: { type: "string", oneOf: [{ const: "s", title: "small" }, { const: "l", title: "large" }] }
        }),
        [say("Ada"), say(" 36 "), choose(1), choose(0), say("mo, we"), say("Large")]
      )
      expect(questions.map(({ options, question }) => [question, options.map(({ label }) => label)])).toEqual([
        ["The MCP server real asks: Who are you? [2J Name (as in your passport).", []],
        ["The MCP server real asks: Who are you? [2J age.", []],
        ["The MCP server real asks: Who are you? [2J colour.", ["red", "green"]],
        ["The MCP server real asks: Who are you? [2J member.", ["Yes", "No"]],
        ["The MCP server real asks: Who are you? [2J days. Several are divided by commas.", ["mo", "tu", "we"]],
        ["The MCP server real asks: Who are you? [2J size.", ["small", "large"]]
      ])
      const content = { name: "Ada", age: 36, colour: "g", member: true, days: ["mo", "we"], size: "l" }
      expect(answer).toEqual({ action: "accept", content })
      expect(results()[0]).toMatchObject({ isFailure: false })
    }).pipe(Effect.scoped))

  it.live("may be left out where it is not required, and is proposed where there is a default", () =>
    Effect.gen(function*() {
      const { answer, questions } = yield* asked(
        form({ nick: { type: "string" }, port: { type: "number", default: 80 } }, ["port"]),
        [choose(0), choose(0)]
      )
      expect(questions.map(({ options }) => options.map(({ label }) => label))).toEqual([["Leave it out"], ["80"]])
      expect(answer).toEqual({ action: "accept", content: { port: 80 } })
    }).pipe(Effect.scoped))

  it.live("is asked again with why where an answer does not fit, and declined after the third", () =>
    Effect.gen(function*() {
      const fields = { mail: { type: "string", format: "email" } }
      const { answer, questions } = yield* asked(form(fields), [say("nobody"), say("a@b.c")])
      expect(questions[1]?.question).toContain(" mail: of the form email.")
      expect(answer).toEqual({ action: "accept", content: { mail: "a@b.c" } })
      const stubborn = yield* asked(form({ age: { type: "integer", maximum: 9 } }), [
        say("x"),
        say("1.5"),
        say("10"),
        say("1")
      ])
      expect(stubborn.questions.map(({ question }) => question.replace(/.* age/, ""))).toEqual([
        ".",
        ": a number.",
        ": a whole number."
      ])
      expect(stubborn.answer).toEqual({ action: "decline" })
    }).pipe(Effect.scoped))

  it.live("is declined as a whole by whoever declines one field, and a mere yes or no is one question", () =>
    Effect.gen(function*() {
      const declined = yield* asked(form({ a: { type: "string" }, b: { type: "string" } }), [say("x"), "declined"])
      expect(declined.answer).toEqual({ action: "decline" })
      expect((yield* asked(form({}), [choose(0)])).answer).toEqual({ action: "accept", content: {} })
      expect((yield* asked(form({}), [choose(1)])).answer).toEqual({ action: "decline" })
    }).pipe(Effect.scoped))

  it.live("comes one form after the other, also from calls side by side", () =>
    Effect.gen(function*() {
      const site = yield* realSite
      const two = (first: string, second: string) =>
        call("real_ask", form({ [first]: { type: "string" }, [second]: { type: "string" } }))
      const { host, sessionID, until } = yield* world(() => ({ real: { url: site.url } }), [
        [two("a1", "a2"), two("b1", "b2")],
        "ok"
      ])
      const asked: Array<string> = []
      yield* testPresentation(host, {
        "test.person": (ctx) =>
          ctx.interactions.handle(Question, ({ question }) => {
            asked.push(/ (\w\d)\.$/.exec(question)?.[1] ?? question)
            return Effect.succeed(say("x"))
          })
      }, sessionID)
      yield* until("real", ({ status }) => status === "ready")
      yield* host.ask(sessionID, "go")
      expect([["a1", "a2", "b1", "b2"], ["b1", "b2", "a1", "a2"]]).toContainEqual(asked)
      expect(site.answers).toHaveLength(2)
    }).pipe(Effect.scoped))

  it.live("is declined at once where nobody is there", () =>
    Effect.gen(function*() {
      const site = yield* realSite
      const { host, sessionID, until } = yield* world(() => ({ real: { url: site.url } }), [
        [call("real_ask", form({ a: { type: "string" } }))],
        "ok"
      ])
      yield* Context.get(host.services, InteractionBroker).unattended(sessionID, "deny")
      yield* until("real", ({ status }) => status === "ready")
      expect(yield* host.ask(sessionID, "go")).toBe("ok")
      expect(site.answers).toEqual([{ action: "decline" }])
    }).pipe(Effect.scoped))

  it.live("is answered to the protocol's own test server, with all kinds of fields", () =>
    Effect.gen(function*() {
      const { host, results, sessionID, until } = yield* world(
        () => ({ every: { command: [process.execPath, everything, "stdio"] } }),
        [[call("every_trigger-elicitation-request", {})], "ok"]
      )
      const questions: Array<string> = []
      yield* testPresentation(host, {
        "test.person": (ctx) =>
          ctx.interactions.handle(Question, ({ options, question }) => {
            questions.push(question)
            return Effect.succeed(options.length > 0 ? choose(0) : say("Ada"))
          })
      }, sessionID)
      yield* until("every", ({ status }) => status === "ready")
      expect(yield* host.ask(sessionID, "go")).toBe("ok")
      expect(questions.length).toBeGreaterThan(5)
      expect(results()[0]).toMatchObject({
        isFailure: false,
        result: expect.stringMatching(/User provided the requested information[\s\S]*Ada/)
      })
    }).pipe(Effect.scoped), 60_000)

  it.live("goes with its call: whose turn is interrupted is asked no more", () =>
    Effect.gen(function*() {
      const site = yield* realSite
      const { host, sessionID, until } = yield* world(() => ({ real: { url: site.url } }), [
        [call("real_ask", form({ a: { type: "string" } }))],
        [call("real_echo", { n: 1 })],
        "ok"
      ])
      const shown = yield* Deferred.make<void>()
      const gone = yield* Deferred.make<void>()
      yield* testPresentation(host, {
        "test.person": (ctx) =>
          ctx.interactions.handle(Question, () =>
            Effect.andThen(Deferred.succeed(shown, undefined), Effect.never).pipe(
              Effect.onInterrupt(() => Deferred.succeed(gone, undefined))
            ))
      }, sessionID)
      yield* until("real", ({ status }) => status === "ready")
      const asked = yield* Effect.forkScoped(host.ask(sessionID, "go"))
      yield* Deferred.await(shown)
      yield* Effect.orDie(host.session.interrupt(sessionID))
      yield* Deferred.await(gone)
      expect(yield* Fiber.join(asked)).toContain("aborted")
      expect(yield* host.ask(sessionID, "again")).toBe("ok")
    }).pipe(Effect.scoped))

  it.effect("may take longer than a call may: a person takes their time", () =>
    Effect.gen(function*() {
      const site = yield* realSite
      const { host, sessionID, until } = yield* world(() => ({ real: { url: site.url, timeout: 5 } }), [
        [call("real_ask", form({ a: { type: "string" } }))],
        "ok"
      ])
      const shown = yield* Deferred.make<void>()
      const answer = yield* Deferred.make<Answer>()
      yield* testPresentation(host, {
        "test.person": (ctx) =>
          ctx.interactions.handle(Question, () =>
            Effect.andThen(Deferred.succeed(shown, undefined), Deferred.await(answer)))
      }, sessionID)
      yield* until("real", ({ status }) =>
        status === "ready")
      const ended = yield* Effect.forkChild(host.ask(sessionID, "go"))
      yield* Deferred.await(shown)
      for (let minute = 0; minute < 10; minute++) yield* TestClock.adjust("1 minute")
      yield* Deferred.succeed(answer, say("late"))
      expect(yield* Fiber.join(ended)).toBe("ok")
      expect(site.answers).toEqual([{ action: "accept", content: { a: "late" } }])
    }).pipe(Effect.scoped))
})

describe("a server", () => {
  it.live("has its tools offered in one order, whatever the order it lists them in", () =>
    Effect.gen(function*() {
      const site = yield* realSite
      const { host, model, sessionID, until } = yield* world(() => ({ real: { url: site.url } }), ["one", "two"])
      yield* until("real", ({ status }) => status === "ready")
      yield* host.ask(sessionID, "go")
      site.tools.reverse()
      yield* Effect.promise(site.announce)
      yield* Effect.promise(() => site.listed(2))
      yield* host.ask(sessionID, "again")
      const offered = model.requests.map(({ tools }) => tools.map(({ name }) => name))
      expect(offered[0]).toEqual(["real_ask", "real_echo", "real_repeat", "real_roots", "real_slow"])
      expect(offered[1]).toEqual(offered[0])
    }).pipe(Effect.scoped))

  it.live("is told the location as its root, and what it tells of is shown with the call and in the log", () => {
    const logged: Array<string> = []
    return Effect.gen(function*() {
      const site = yield* realSite
      const { directory, host, results, sessionID, until } = yield* world(() => ({ real: { url: site.url } }), [
        [call("real_roots", {}), call("real_slow", { id: 7 })],
        "ok"
      ])
      yield* until("real", ({ status }) => status === "ready")
      yield* host.ask(sessionID, "go")
      expect(results()[0]?.result).toContain(pathToFileURL(directory).href)
      expect(logged.join("\n")).toContain("warning: half way of 7")
    }).pipe(
      Effect.provide(Logger.layer([Logger.make(({ message }) => {
        logged.push(JSON.stringify(message))
      })])),
      Effect.scoped
    )
  })
})
