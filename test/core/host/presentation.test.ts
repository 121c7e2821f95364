import { Conversation, conversationKey, Plugin } from "@bezel/core/host"
import { Interaction, RemoteService } from "@bezel/core/service"
import { call, scriptedModel, testPresentation, testSessionHost } from "@bezel/core/testing"
import { tool } from "@bezel/core/tool"
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Schema, Scope, Stream } from "effect"
import { eventually } from "../../eventually.ts"

const Question = Interaction.make("test.question")({
  request: Schema.Struct({ text: Schema.String }),
  response: Schema.Struct({ answer: Schema.String }),
  unattended: "deny"
})

const asking = Plugin.define({
  id: "test.asking",
  session: (ctx) =>
    Effect.asVoid(ctx.tool.transform((draft) =>
      draft.set(
        "ask",
        tool({
          description: "Asks a person",
          input: Schema.Struct({ text: Schema.String }),
          execute: ({ text }, running) =>
            Effect.map(
              ctx.interactions.request(Question, { text }, { sessionID: running.sessionID }),
              (outcome) => outcome.type === "answered" ? outcome.response.answer : `nobody: ${outcome.type}`
            )
        })
      )
    ))
})

const resultOf = (model: ReturnType<typeof scriptedModel>) => {
  const last = model.requests.at(-1)?.messages.at(-1)
  return last?.role === "tool" ? last.content[0]?.result : undefined
}

describe("presentation host", () => {
  it.live("answers what a tool asks through the facet that handles it", () =>
    Effect.gen(function*() {
      const model = scriptedModel([[call("ask", { text: "Red or blue?" })], "ok"])
      const host = yield* testSessionHost([asking], { model })
      const { id } = yield* host.session.create()
      yield* testPresentation(host, {
        broken: (ctx) => ctx.interactions.handle(Question, () => Effect.die(new Error("no dialog"))),
        person: (ctx) => ctx.onActivate(Effect.void)
      }, id)
      yield* testPresentation(host, {
        person: (ctx) => ctx.interactions.handle(Question, ({ text }) => Effect.succeed({ answer: `blue, to ${text}` }))
      }, id)
      expect(yield* host.ask(id, "go")).toBe("ok")
      expect(resultOf(model)).toBe("blue, to Red or blue?")
    }).pipe(Effect.scoped))

  it.live("asks the client first that has sent the input, and then the others", () =>
    Effect.gen(function*() {
      const model = scriptedModel([[call("ask", { text: "1" })], "ok", [call("ask", { text: "2" })], "ok"])
      const host = yield* testSessionHost([asking], { model })
      const { id } = yield* host.session.create()
      let asked: ReadonlyArray<string> = []
      const client = (name: string) =>
        Effect.gen(function*() {
          const connection = yield* host.connect(id)
          yield* connection.interactions.handle(Question, () =>
            Effect.suspend(() => {
              asked = [...asked, name]
              return Effect.as(eventually(() => asked.length === 2), { answer: name })
            }))
          // Behind what this client has said that it handles.
          yield* connection.catalogue
          const conversation = yield* connection.use(Conversation, { key: conversationKey(id, "c1") })
          return Effect.gen(function*() {
            asked = []
            const { inputID } = yield* conversation.send({ text: "go" })
            yield* conversation.wait({ inputID })
            return asked
          })
        })
      const [one, two] = [yield* client("one"), yield* client("two")]
      expect(yield* two).toEqual(["two", "one"])
      expect(yield* one).toEqual(["one", "two"])
    }).pipe(Effect.scoped))

  it.live("settles what a tool asks at once where nobody is there, as the interaction says", () =>
    Effect.gen(function*() {
      const model = scriptedModel([[call("ask", { text: "Anybody?" })], "ok"])
      const host = yield* testSessionHost([asking], { model })
      const { id } = yield* host.session.create()
      expect(yield* host.ask(id, "go")).toBe("ok")
      expect(resultOf(model)).toBe("nobody: unattended")
    }).pipe(Effect.scoped))

  it.live("ends what a facet observes when the host closes", () =>
    Effect.gen(function*() {
      class Ticker extends RemoteService.make("test.ticker")({ methods: { tick: {} } }) {}
      const provider = Plugin.define({
        id: "test.ticker",
        session: (ctx) => ctx.providePerSession(Ticker, () => Effect.succeed({ tick: () => Effect.void }))
      })
      const host = yield* testSessionHost([provider])
      const { id } = yield* host.session.create()
      const steps: Array<string> = []
      const scope = yield* Scope.make()
      const used = yield* Deferred.make<void>()
      yield* testPresentation(host, {
        view: (ctx) =>
          Effect.gen(function*() {
            const ticker = yield* ctx.use(Ticker)
            yield* ctx.onDispose(Effect.sync(() => void steps.push("disposed")))
            yield* ctx.onActivate(Effect.andThen(ticker.tick(), Deferred.succeed(used, undefined)).pipe(Effect.asVoid))
          })
      }, id).pipe(Scope.provide(scope))
      yield* Deferred.await(used)
      yield* Scope.close(scope, Exit.void)
      expect(steps).toEqual(["disposed"])
    }).pipe(Effect.scoped))

  it.live("shows which session it is attached to, and follows a selection", () =>
    Effect.gen(function*() {
      const host = yield* testSessionHost([])
      const one = yield* host.session.create()
      const two = yield* host.session.create()
      const seen: Array<string | null> = []
      const both = yield* Deferred.make<void>()
      yield* testPresentation(host, {
        view: (ctx) =>
          Effect.gen(function*() {
            yield* ctx.onActivate(Effect.asVoid(Effect.forkScoped(Stream.runForEach(ctx.session.changes, (identity) =>
              Effect.suspend(() => {
                seen.push(identity?.sessionID ?? null)
                return seen.length === 2 ? Deferred.succeed(both, undefined) : Effect.void
              })))))
            yield* ctx.onActivate(
              Effect.asVoid(
                Effect.forkScoped(Effect.andThen(eventually(() => seen.length === 1), ctx.session.select(two.id)))
              )
            )
          })
      }, one.id)
      yield* Deferred.await(both)
      expect(seen).toEqual([one.id, two.id])
    }).pipe(Effect.scoped))
})
