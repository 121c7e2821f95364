/** Whoever takes something before a call gives it back exactly once, however the call ends. */
import { Plugin, type SessionContext } from "@bezel/core/host"
import { call, run, scriptedModel, type ScriptedTurn, testSessionHost } from "@bezel/core/testing"
import { tool, ToolFailure } from "@bezel/core/tool"
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Schema } from "effect"

type How = "ok" | "fails" | "dies" | "waits"

const works = (started: Deferred.Deferred<void>) =>
  tool({
    description: "Works in one of several ways",
    input: Schema.Struct({ how: Schema.String }),
    execute: ({ how }) =>
      Effect.suspend((): Effect.Effect<string, ToolFailure> => {
        if (how === "fails") return Effect.fail(new ToolFailure({ message: "no" }))
        if (how === "dies") return Effect.die(new Error("broken"))
        return how === "ok"
          ? Effect.succeed("done")
          : Effect.andThen(Deferred.succeed(started, undefined), Effect.never)
      })
  })

/** Runs one call in a session whose calls are leased by `lease`, and gives what the lease has noted. */
const leased = (
  how: How,
  lease: (ctx: SessionContext, log: Array<string>) => Effect.Effect<void>,
  after: ScriptedTurn = "end"
) =>
  Effect.gen(function*() {
    const log: Array<string> = []
    const started = yield* Deferred.make<void>()
    const model = scriptedModel([[call("work", { how })], after])
    const host = yield* testSessionHost([
      Plugin.define({
        id: "test.work",
        session: (ctx) => Effect.asVoid(ctx.tool.transform((draft) => draft.set("work", works(started))))
      }),
      Plugin.define({ id: "test.lease", session: (ctx) => lease(ctx, log) })
    ], { model })
    const { id } = yield* host.session.create()
    const asked = yield* Effect.forkChild(host.ask(id, "go"))
    if (how === "waits") {
      yield* Deferred.await(started)
      yield* host.session.interrupt(id)
    }
    yield* Fiber.await(asked)
    return log
  }).pipe(Effect.scoped)

/** The natural form: a wrap that acquires and releases. */
const wrapping = (ctx: SessionContext, log: Array<string>) =>
  Effect.asVoid(
    ctx.tool.transform((draft) =>
      draft.wrap("work", (next) => (input, toolCall) =>
        Effect.acquireUseRelease(
          Effect.sync(() => log.push("taken")),
          () => next(input, toolCall),
          (_, exit) =>
            Effect.sync(() => log.push(Exit.isSuccess(exit) ? "ok" : Exit.hasInterrupts(exit) ? "aborted" : "error"))
        ))
    )
  )

describe("a lease around a call", () => {
  it.live.each(
    [
      ["ok", "ok"],
      ["fails", "error"],
      ["dies", "error"],
      ["waits", "aborted"]
    ] as const
  )(
    "of a tool that %s is settled once, as %s",
    ([how, outcome]) => Effect.map(leased(how, wrapping), (log) => expect(log).toEqual(["taken", outcome]))
  )

  it.live("is settled once where the model dies that the call is from, and the one after it too", () =>
    Effect.map(
      leased("ok", wrapping, [run(Effect.die(new Error("the provider is gone")))]),
      (log) => expect(log).toEqual(["taken", "ok"])
    ))
})
