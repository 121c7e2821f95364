/** What a facet decides for turns, adds to prompts or takes back is a registration like any other: staged, whole, and gone with it. */
import type { Plugin } from "@bezel/core/host"
import { scriptedModel, testSessionHost } from "@bezel/core/testing"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { barrier, type Facet, generations, reload } from "./reload-fixture.ts"

/** Says in all three ways who it is. */
const says = (name: string): Facet => (ctx) =>
  Effect.gen(function*() {
    yield* ctx.turns.configure({
      agent: () => Effect.succeed({ enabled: {}, denied: [], prompt: `The agent of ${name}.` })
    })
    yield* ctx.intake(() =>
      Effect.succeed({
        files: [{ type: "file", mediaType: "text/plain", fileName: `${name}.txt`, data: "eA==" }],
        notices: [`${name} has seen it`]
      })
    )
    const revert = () => Effect.die(new Error(`reverted by ${name}`))
    yield* ctx.reverting({ stage: revert, clear: revert })
  })

const fails = (name: string): Facet => (ctx) => Effect.andThen(says(name)(ctx), Effect.fail(new Error("not today")))

const world = (...plugins: ReadonlyArray<Plugin>) =>
  Effect.gen(function*() {
    const model = scriptedModel(["one", "two", "three", "four"])
    const grants = ["turns", "reverting"]
    const host = yield* testSessionHost(plugins, {
      model,
      entries: Object.fromEntries(plugins.map(({ id }) => [id, { grants }]))
    })
    const { id: sessionID } = yield* host.session.create({ title: "t" })
    /** Who is heard: in a prompt's notices, in the request to the model, and when something is taken back. */
    const heard = Effect.gen(function*() {
      const { inputID, notices } = yield* host.session.prompt({ sessionID, prompt: { text: "hi", written: true } })
      yield* host.session.wait(sessionID, inputID)
      const request = JSON.stringify(model.requests.at(-1))
      const reverted = yield* Effect.sandbox(host.session.revert.clear(sessionID)).pipe(
        Effect.match({ onFailure: String, onSuccess: () => "done" })
      )
      return {
        agents: [...request.matchAll(/The agent of (\w+)\./g)].map(([, name]) => name),
        intakes: notices ?? [],
        reverter: /reverted by (\w+)/.exec(reverted)?.[1] ?? null
      }
    })
    return { heard, host }
  })

const of = (name: string) => ({ agents: [name], intakes: [`${name} has seen it`], reverter: name })
const nobody = { agents: [], intakes: [], reverter: null }

describe("what a facet decides for a host", () => {
  it.live("is not heard of where its setup fails", () =>
    Effect.gen(function*() {
      const { heard } = yield* world(generations("test.a", fails("a")))
      expect(yield* heard).toEqual(nobody)
    }).pipe(Effect.scoped))

  it.live("is the old code's until the new one is bound, and stays that where the new one fails", () =>
    Effect.gen(function*() {
      const inSetup = yield* barrier
      const waits: Facet = (ctx) => Effect.andThen(says("newer")(ctx), inSetup.pass)
      const { heard, host } = yield* world(generations("test.a", says("old"), fails("new"), waits))
      expect(yield* heard).toEqual(of("old"))
      expect((yield* Effect.flip(reload(host, "test.a"))).message).toContain("nothing was changed")
      expect(yield* heard).toEqual(of("old"))
      const reloading = yield* Effect.forkScoped(reload(host, "test.a"))
      yield* inSetup.reached
      expect(yield* heard).toEqual(of("old"))
      yield* inSetup.open
      yield* Fiber.join(reloading)
      expect(yield* heard).toEqual(of("newer"))
    }).pipe(Effect.scoped))

  it.live("keeps its place in the manifest when its code is exchanged, and the last in that order decides", () =>
    Effect.gen(function*() {
      const { heard, host } = yield* world(
        generations("test.a", says("a"), says("anew")),
        generations("test.b", says("b"))
      )
      expect(yield* heard).toEqual({ ...of("b"), intakes: ["a has seen it", "b has seen it"] })
      yield* reload(host, "test.a")
      expect(yield* heard).toEqual({ ...of("b"), intakes: ["anew has seen it", "b has seen it"] })
    }).pipe(Effect.scoped))
})
