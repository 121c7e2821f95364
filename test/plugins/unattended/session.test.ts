/** What becomes of what a session asks while nobody is there, by the setting. */
import { Plugin } from "@bezel/core/host"
import type { SettingsKey } from "@bezel/core/settings"
import { call, emptySettings, scriptedModel, testPresentation, testSessionHost } from "@bezel/core/testing"
import { Question } from "@bezel/plugins/question"
import { session as question } from "@bezel/plugins/question/session"
import { session } from "@bezel/plugins/unattended/session"
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Scope } from "effect"

const world = (policy: "wait" | "deny") =>
  Effect.gen(function*() {
    const model = scriptedModel([[call("question", { question: "Which?", options: ["a", "b"] })], "ok"])
    const host = yield* testSessionHost([
      Plugin.define({ id: "bezel.question", session: question }),
      Plugin.define({ id: "bezel.unattended", session })
    ], {
      model,
      settings: {
        ...emptySettings,
        get: <A>(key: SettingsKey<A>): A => (key.name === "unattended" ? policy : key.default) as A
      },
      entries: { "bezel.question": { required: true }, "bezel.unattended": { required: true } }
    })
    const { id } = yield* host.session.create({ title: "t" })
    const asked = yield* Deferred.make<void>()
    /** A client that shows the question and says nothing, until its scope ends. */
    const client = testPresentation(host, {
      "test.person": (ctx) =>
        ctx.interactions.handle(Question, () => Effect.andThen(Deferred.succeed(asked, undefined), Effect.never))
    }, id)
    const told = () => JSON.stringify(model.requests[1]?.messages.at(-1))
    return { host, id, asked, client, told }
  })

const nobody = "Nobody is here to answer, so the question was not asked."

describe("what a session asks while nobody is there", () => {
  it.live("is denied at once where the setting says deny", () =>
    Effect.gen(function*() {
      const { host, id, told } = yield* world("deny")
      expect(yield* host.ask(id, "go")).toBe("ok")
      expect(told()).toContain(nobody)
    }).pipe(Effect.scoped))

  it.live("is put to whoever is there all the same, and denied when the last one leaves", () =>
    Effect.gen(function*() {
      const { asked, client, host, id, told } = yield* world("deny")
      const place = yield* Scope.make()
      yield* Scope.provide(client, place)
      const answer = yield* Effect.forkScoped(host.ask(id, "go"))
      yield* Deferred.await(asked)
      yield* Scope.close(place, Exit.void)
      expect(yield* Fiber.join(answer)).toBe("ok")
      expect(told()).toContain(nobody)
    }).pipe(Effect.scoped))

  it.live("waits for somebody where the setting says wait", () =>
    Effect.gen(function*() {
      const { asked, client, host, id, told } = yield* world("wait")
      const answer = yield* Effect.forkScoped(host.ask(id, "go"))
      yield* client
      yield* Deferred.await(asked)
      expect(told()).toBe(undefined)
      yield* Fiber.interrupt(answer)
    }).pipe(Effect.scoped))
})
