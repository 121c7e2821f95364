import { TaskKind } from "@bezel/core/harness"
import type { Plugin } from "@bezel/core/host"
import { Conversation, conversationKey } from "@bezel/core/host"
import { SessionRuntime } from "@bezel/core/session"
import { call, scriptedModel, testSessionHost } from "@bezel/core/testing"
import { describe, expect, it } from "@effect/vitest"
import { Context, Deferred, Effect, Fiber, Schema, Stream } from "effect"
import { drained } from "../../eventually.ts"
import { barrier, type Facet, generations, offers, reload } from "./reload-fixture.ts"

describe("a session that is suspended for a reload", () => {
  /** A session that is in the middle of a call of `echo`, which may be repeated. */
  const inTheMiddle = (...more: ReadonlyArray<Plugin>) =>
    Effect.gen(function*() {
      const started = yield* barrier
      const model = scriptedModel([[call("echo", {})], "done", "more"])
      const host = yield* testSessionHost([
        generations(
          "echo",
          offers("echo", () => Effect.as(started.pass, "old"), "safe"),
          offers("echo", () => Effect.succeed("new"), "safe")
        ),
        ...more
      ], { model })
      const { id } = yield* host.session.create()
      return { host, id, model, started }
    })

  it.live("shows an attached client the whole turn, as if nothing had been", () =>
    Effect.gen(function*() {
      const { host, id, started } = yield* inTheMiddle()
      const connection = yield* host.connect(id)
      const conversation = yield* connection.use(Conversation, { key: conversationKey(id, "c1") })
      yield* conversation.ready
      const { inputID } = yield* conversation.send({ text: "go" })
      const waiting = yield* Effect.forkScoped(conversation.wait({ inputID }), { startImmediately: true })
      yield* started.reached
      yield* drained
      yield* reload(host, "echo")
      expect(yield* Fiber.join(waiting)).toMatchObject({ status: "done", text: "done" })
      const view = yield* conversation.view.changes.pipe(Stream.filter(({ turn }) => turn === null), Stream.runHead)
      expect(view).toMatchObject({
        value: {
          entries: [{ kind: "bezel.user" }, { kind: "bezel.assistant" }, { kind: "bezel.tool_result" }, {
            kind: "bezel.assistant"
          }]
        }
      })
      const more = yield* conversation.send({ text: "more" })
      expect(yield* conversation.wait(more)).toMatchObject({ status: "done", text: "more" })
    }).pipe(Effect.scoped))

  it.live("takes inputs and answers waits of those who had it before, once it is open again", () =>
    Effect.gen(function*() {
      const during: Array<Effect.Effect<void>> = []
      const slow: Facet = (ctx) => ctx.onActivate(Effect.suspend(() => Effect.all(during, { discard: true })))
      const { host, id, started } = yield* inTheMiddle(generations("other", slow))
      const session = yield* Context.get(host.services, SessionRuntime).open(id)
      const first = yield* session.main.send({ content: [{ type: "text", text: "go" }] })
      const idle = yield* Effect.forkScoped(session.main.idle, { startImmediately: true })
      yield* started.reached
      const sent = yield* Deferred.make<string>()
      during.push(Effect.asVoid(Effect.forkDetach(
        session.main.send({ content: [{ type: "text", text: "more" }] }).pipe(
          Effect.flatMap((handle) => handle.wait),
          Effect.flatMap((outcome) =>
            Deferred.succeed(sent, outcome.status === "done" ? outcome.text : outcome.reason)
          ),
          Effect.orDie
        ),
        { startImmediately: true }
      )))
      yield* reload(host, "echo", "other")
      expect(yield* first.wait).toMatchObject({ status: "done", text: "done" })
      expect(yield* Deferred.await(sent)).toBe("more")
      yield* Fiber.join(idle)
      expect(yield* session.main.finalText).toBe("more")
    }).pipe(Effect.scoped))

  it.live("runs a task of a kind on under the new code of that kind", () =>
    Effect.gen(function*() {
      const scanning = yield* barrier
      const kind = (answer: string, work: Effect.Effect<void>) =>
        TaskKind.make("test.scan", {
          input: Schema.Struct({}),
          checkpoint: Schema.Struct({ phase: Schema.Literal("scanning") }),
          slot: { schema: Schema.Struct({}), initial: {} },
          result: Schema.Struct({ by: Schema.String }),
          failure: Schema.Never,
          initial: () => Effect.succeed({ next: { phase: "scanning" } } as const),
          phases: {
            scanning: () => Effect.as(work, { done: () => ({ status: "completed", result: { by: answer } }) } as const)
          }
        })
      const old = kind("old", scanning.pass)
      const host = yield* testSessionHost([
        generations("scan", (ctx) =>
          Effect.asVoid(ctx.task(old)), (ctx) =>
          Effect.asVoid(ctx.task(kind("new", Effect.void))))
      ])
      const { id } = yield* host.session.create()
      const { main } = yield* Context.get(host.services, SessionRuntime).open(id)
      const task = yield* main.commit((tx) =>
        tx.createTask(old, {}, { background: true })
      )
      const waiting = yield* Effect.forkScoped(main.waitForTask(task), { startImmediately: true })
      yield* scanning.reached
      yield* reload(host, "scan")
      expect(yield* Fiber.join(waiting)).toMatchObject({ status: "completed", result: { by: "new" } })
    }).pipe(Effect.scoped))
})
