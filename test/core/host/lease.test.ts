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

type SessionFacet = NonNullable<Parameters<typeof Plugin.define>[0]["session"]>

/** Registers what notes in `log`; `started` is for one that waits, so that it is interrupted then. */
type Lease = (ctx: SessionContext, log: Array<string>, started: Deferred.Deferred<void>) => ReturnType<SessionFacet>

/** Runs one call in a session whose calls are leased by `lease`, and gives what the lease has noted. */
const leased = (
  how: How,
  lease: Lease,
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
      Plugin.define({ id: "test.lease", session: (ctx) => lease(ctx, log, started) })
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

const outcomeOf = (exit: Exit.Exit<unknown, unknown>): string =>
  Exit.isSuccess(exit) ? "ok" : Exit.hasInterrupts(exit) ? "aborted" : "error"

/** A hook that acquires in the scope of the call; `behind` is what it or a later hook does then. */
const hooked = (behind: "goes on" | "blocks" | "fails" | "dies" | "is blocked behind" | "asks" = "goes on"): Lease =>
  Effect.fnUntraced(function*(ctx, log, started) {
    const namespace = yield* ctx.namespace("lease", {})
    yield* ctx.hooks(namespace, "tool", {
      beforeTool: (_call, api) =>
        Effect.gen(function*() {
          yield* Effect.acquireRelease(
            Effect.sync(() => log.push("taken")),
            (_, exit) => Effect.sync(() => log.push(outcomeOf(exit)))
          )
          if (behind === "blocks") return { block: "not today" }
          if (behind === "fails") return yield* Effect.fail({ message: "no" })
          if (behind === "dies") return yield* Effect.die(new Error("broken"))
          if (behind === "asks") {
            yield* Effect.ignore(api.waiting)
            yield* Deferred.succeed(started, undefined)
            yield* Effect.never
          }
          return undefined
        })
    })
    if (behind === "is blocked behind") {
      yield* ctx.hooks(namespace, "tool", { beforeTool: () => Effect.succeed({ block: "not today" }) }, { gate: true })
    }
  })

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

  it.live.each(
    [
      ["ok", "ok"],
      ["fails", "error"],
      ["dies", "error"],
      ["waits", "aborted"]
    ] as const
  )(
    "that a before-hook takes in the scope of a call of a tool that %s is settled once, as %s",
    ([how, outcome]) => Effect.map(leased(how, hooked()), (log) => expect(log).toEqual(["taken", outcome]))
  )

  it.live.each(["blocks", "fails", "dies", "is blocked behind"] as const)(
    "that a before-hook takes which then %s is settled once, as an error",
    (behind) => Effect.map(leased("ok", hooked(behind)), (log) => expect(log).toEqual(["taken", "error"]))
  )

  it.live("that a before-hook takes is settled once where the model dies that the call is from, and the one after it", () =>
    Effect.map(
      leased("ok", hooked(), [run(Effect.die(new Error("the provider is gone")))]),
      (log) => expect(log).toEqual(["taken", "ok"])
    ))

  it.live("that a before-hook takes is settled once, as aborted, where it waits for a person and is interrupted", () =>
    Effect.map(leased("waits", hooked("asks")), (log) => expect(log).toEqual(["taken", "aborted"])))

  it.live("that two before-hooks take is given back in the other order, each with what the tool gave", () =>
    Effect.map(
      leased(
        "ok",
        Effect.fnUntraced(function*(ctx, log) {
          for (const name of ["first", "second"]) {
            yield* ctx.hooks(yield* ctx.namespace(name, {}), "tool", {
              beforeTool: () =>
                Effect.asVoid(
                  Effect.acquireRelease(
                    Effect.sync(() => log.push(name)),
                    (_, exit) =>
                      Effect.sync(() => log.push(`${name} ${JSON.stringify(Exit.isSuccess(exit) ? exit.value : null)}`))
                  )
                )
            })
          }
        })
      ),
      (log) => {
        expect(log.slice(0, 2)).toEqual(["first", "second"])
        expect(log.slice(2)).toEqual([
          expect.stringMatching(/^second .*"text":"done"/),
          expect.stringMatching(/^first .*"text":"done"/)
        ])
      }
    ))

  it.live("that a before-hook takes and never gives back holds up neither the call nor the lease of another", () =>
    Effect.map(
      leased(
        "ok",
        Effect.fnUntraced(function*(ctx, log, started) {
          yield* hooked()(ctx, log, started)
          yield* ctx.hooks(yield* ctx.namespace("stuck", {}), "tool", {
            beforeTool: () => Effect.asVoid(Effect.acquireRelease(Effect.void, () => Effect.never))
          }, { limit: "20 millis" })
        })
      ),
      (log) => expect(log).toEqual(["taken", "ok"])
    ))
})
