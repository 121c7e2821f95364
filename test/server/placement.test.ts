import { Conversation, conversationKey, LocationMap, Plugin } from "@bezel/core/host"
import { makeMemoryPair } from "@bezel/core/rpc"
import { scriptedModel, temporaryDirectory, testGlobals } from "@bezel/core/testing"
import { connectTo, Placement } from "@bezel/server"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"

const inline = (plugins: ReadonlyArray<Plugin>, ...answers: ReadonlyArray<string>) =>
  Placement.inline.pipe(
    Layer.provide(LocationMap.layer),
    Layer.provide(testGlobals(plugins, { model: scriptedModel(answers) }))
  )

describe("a connection to a host that is there and says nothing", () => {
  it.effect("is given up with timeout when its time is over", () =>
    Effect.gen(function*() {
      const silent = Effect.sync(() => makeMemoryPair()[0])
      const waiting = yield* Effect.forkChild(
        Effect.flip(Effect.scoped(connectTo(silent, { label: "test", timeLimit: "3 seconds" })))
      )
      yield* TestClock.adjust("2 seconds")
      expect(waiting.pollUnsafe()).toBeUndefined()
      yield* TestClock.adjust("1 second")
      expect(yield* Fiber.join(waiting)).toMatchObject({
        code: "timeout",
        message: "The session host did not answer in time."
      })
    }))
})

describe("Placement.inline", () => {
  it.live("gives a connection to a host in this process, attached to the session that was asked for", () =>
    Effect.gen(function*() {
      const host = yield* Effect.flatMap(
        Placement,
        ({ place }) => Effect.flatMap(temporaryDirectory, (directory) => place(directory))
      )
      const session = yield* host.session.create()
      const connection = yield* host.connect({ label: "test", sessionID: session.id })
      const conversation = yield* connection.use(Conversation, { key: conversationKey(session.id, "c1") })
      const { inputID } = yield* conversation.send({ text: "hi" })
      expect(yield* conversation.wait({ inputID })).toMatchObject({ status: "done", text: "hello" })
    }).pipe(Effect.scoped, Effect.provide(inline([], "hello"))))

  it.live("says which session it could not attach to", () =>
    Effect.gen(function*() {
      const host = yield* Effect.flatMap(Placement, ({ place }) =>
        Effect.flatMap(temporaryDirectory, (directory) => place(directory)))
      const error = yield* Effect.flip(host.connect({ label: "test", sessionID: "ses_unknown" }))
      expect(error).toMatchObject({ code: "invalid_arguments" })
      expect(error.message).toContain("ses_unknown")
    }).pipe(Effect.scoped, Effect.provide(inline([]))))

  it.live("lists the plugins of the place with the state of each", () =>
    Effect.gen(function*() {
      const host = yield* Effect.flatMap(Placement, ({ place }) =>
        Effect.flatMap(temporaryDirectory, (directory) => place(directory)))
      expect((yield* host.plugins).map(({ id, state }) => [id, state])).toEqual([
        ["test.model", "loaded"],
        ["broken", "failed"]
      ])
    }).pipe(
      Effect.scoped,
      Effect.provide(inline([Plugin.define({
        id: "broken",
        session: () =>
          Effect.fail(new Error("no"))
      })]))
    ))
})

describe("Placement.cluster", () => {
  it.effect("says that it is not built yet", () =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(Effect.scoped(Layer.build(Placement.cluster)))
      expect(error.message).toBe("Placing session hosts on many machines is not built yet.")
    }))
})
