/** For whom a server asks while calls of several sessions run at it, over a real server at an address. */
import type { JsonObject } from "@bezel/core/json"
import { call, type ScriptedTurn, testPresentation } from "@bezel/core/testing"
import { Question } from "@bezel/plugins/question"
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Logger } from "effect"
import * as TestClock from "effect/testing/TestClock"
import { realSite } from "./real-site.ts"
import { eventually, world } from "./world.ts"

const asks = (name: string, how: JsonObject = {}): ScriptedTurn => [
  call("real_ask", {
    message: "Who are you?",
    requestedSchema: { type: "object", properties: { [name]: { type: "string" } }, required: [name] },
    ...how
  })
]

/** Sessions with a person at each, who says who was asked for what and answers when told to. */
const people = (script: ReadonlyArray<ScriptedTurn>) =>
  Effect.gen(function*() {
    const site = yield* realSite
    const made = yield* world(() => ({ real: { url: site.url, timeout: 5 } }), script)
    yield* made.until("real", ({ status }) => status === "ready")
    const asked: Array<string> = []
    let watchers: ReadonlyArray<() => void> = []
    const person = (who: string, sessionID: string) =>
      Effect.gen(function*() {
        const may = yield* Deferred.make<void>()
        yield* testPresentation(made.host, {
          [`test.${who}`]: (ctx) =>
            ctx.interactions.handle(Question, ({ question }) => {
              asked.push(`${who}: ${/ (\w+)\.$/.exec(question)?.[1]}`)
              for (const look of watchers) look()
              return Effect.as(Deferred.await(may), { outcome: "custom", answer: who } as const)
            })
        }, sessionID)
        return Deferred.succeed(may, undefined)
      })
    const questions = (count: number) =>
      Effect.promise(() =>
        new Promise<void>((resolve) => {
          const look = () => {
            if (asked.length >= count) resolve()
          }
          watchers = [...watchers, look]
          look()
        })
      )
    const session = (parentID?: string) =>
      Effect.map(
        Effect.orDie(made.host.session.create({ title: "t", ...(parentID === undefined ? {} : { parentID }) })),
        ({ id }) => id
      )
    return { ...made, site, asked, person, questions, session }
  })

const answeredBy = (name: string, who: string) => ({ action: "accept", content: { [name]: who } })

describe("a server that asks while calls of several sessions run", () => {
  it.live("on the stream of a call's answer is answered by that call's people, also when another call began later", () =>
    Effect.gen(function*() {
      const { asked, host, person, questions, session, site } = yield* people([
        asks("first", { own: true, times: 2 }),
        asks("second", { own: true }),
        "ok",
        "ok"
      ])
      const [a, b] = [yield* session(), yield* session()]
      const [letA, letB] = [yield* person("a", a), yield* person("b", b)]
      const one = yield* Effect.forkScoped(host.ask(a, "go"))
      yield* questions(1)
      const two = yield* Effect.forkScoped(host.ask(b, "go"))
      // Neither waits for the other's form.
      yield* questions(2)
      yield* letA
      yield* Fiber.join(one)
      yield* letB
      yield* Fiber.join(two)
      expect(asked).toEqual(["a: first", "b: second", "a: first"])
      expect(site.answers).toEqual([
        answeredBy("first", "a"),
        answeredBy("first", "a"),
        answeredBy("second", "b")
      ])
    }).pipe(Effect.scoped))

  it.live("without saying for which is declined, which the log says, while one that is asked already goes on", () => {
    const logged: Array<string> = []
    return Effect.gen(function*() {
      const { asked, host, person, questions, session, site } = yield* people([
        asks("first"),
        asks("second"),
        "ok",
        "ok"
      ])
      const [a, b] = [yield* session(), yield* session()]
      const letA = yield* person("a", a)
      yield* person("b", b)
      const one = yield* Effect.forkScoped(host.ask(a, "go"))
      yield* questions(1)
      expect(yield* host.ask(b, "go")).toBe("ok")
      expect(site.answers).toEqual([{ action: "decline" }])
      yield* letA
      yield* Fiber.join(one)
      expect(asked).toEqual(["a: first"])
      expect(site.answers[1]).toEqual(answeredBy("first", "a"))
      expect(logged.join("\n")).toContain(
        "it asked something while calls of several sessions ran, without saying for which; it was declined"
      )
    }).pipe(
      Effect.provide(Logger.layer([Logger.make(({ message }) => {
        logged.push(JSON.stringify(message))
      })])),
      Effect.scoped
    )
  })

  it.effect("lets the time of that call rest, and not that of another session's", () =>
    Effect.gen(function*() {
      const { host, model, person, questions, session, site } = yield* people([
        asks("first", { own: true }),
        [call("real_echo", { never: true })],
        "ok",
        "ok"
      ])
      const [a, b] = [yield* session(), yield* session()]
      const letA = yield* person("a", a)
      const one = yield* Effect.forkScoped(host.ask(a, "go"))
      yield* questions(1)
      const two = yield* Effect.forkScoped(host.ask(b, "go"))
      yield* eventually(() => site.called.includes("echo"))
      for (let second = 0; second < 20; second++) yield* TestClock.adjust("1 second")
      expect(yield* Fiber.join(two)).toBe("ok")
      expect(JSON.stringify(model.requests.at(-1)?.messages.at(-1))).toContain("it did not answer within 5s")
      yield* letA
      yield* Fiber.join(one)
      expect(site.answers).toEqual([answeredBy("first", "a")])
    }).pipe(Effect.scoped))

  it.live("without saying for which is asked where they all come from, if that is one session", () =>
    Effect.gen(function*() {
      const { asked, host, person, questions, session, site } = yield* people([
        asks("first"),
        asks("second"),
        "ok",
        "ok"
      ])
      const root = yield* session()
      const [child, grandchild] = [yield* session(root), yield* session(yield* session(root))]
      const [letRoot, letChild] = [yield* person("root", root), yield* person("child", child)]
      const one = yield* Effect.forkScoped(host.ask(child, "go"))
      yield* questions(1)
      const two = yield* Effect.forkScoped(host.ask(grandchild, "go"))
      yield* questions(2)
      yield* letRoot
      yield* Fiber.join(two)
      yield* letChild
      yield* Fiber.join(one)
      expect(asked).toEqual(["child: first", "root: second"])
      expect(site.answers).toEqual([answeredBy("second", "root"), answeredBy("first", "child")])
    }).pipe(Effect.scoped))
})
