import { Conversation, conversationKey, Plugin, Plugins, type SessionContext } from "@bezel/core/host"
import { FacetClosed } from "@bezel/core/kernel"
import { ServiceDirectory } from "@bezel/core/service"
import { SessionRuntime } from "@bezel/core/session"
import { call, run, say, scriptedModel, testSessionHost } from "@bezel/core/testing"
import { assert, describe, expect, it } from "@effect/vitest"
import { Context, Effect, Exit, Fiber, Schema, Stream } from "effect"
import { spawn } from "node:child_process"
import { drained, eventually } from "../../eventually.ts"
import {
  barrier,
  Counter,
  counter,
  type Facet,
  generations,
  offers,
  reload,
  results,
  says,
  Scratch
} from "./reload-fixture.ts"

describe("reload of a plugin under a running host", () => {
  it.live("keeps the facade of a remote consumer, which never sees the service missing", () =>
    Effect.gen(function*() {
      const host = yield* testSessionHost([generations("test.counter", counter(1), counter(100))])
      const connection = yield* host.connect()
      const facade = yield* connection.use(Counter)
      yield* facade.ready
      let failed = 0
      let called = 0
      const caller = yield* Effect.forkScoped(
        facade.add(1).pipe(
          Effect.tap(() => Effect.sync(() => called++)),
          Effect.catch(() => Effect.sync(() => failed++)),
          Effect.andThen(Effect.yieldNow),
          Effect.forever
        )
      )
      yield* eventually(() => called > 10)
      yield* reload(host, "test.counter")
      const after = yield* facade.count.changes.pipe(Stream.filter(({ value }) => value >= 100), Stream.runHead)
      yield* Fiber.interrupt(caller)
      expect(after._tag).toBe("Some")
      expect(failed).toBe(0)
    }).pipe(Effect.scoped))

  it.live("exchanges services in one step: at no moment is one of them absent", () =>
    Effect.gen(function*() {
      const perSession: Facet = (ctx) =>
        ctx.providePerSession(Scratch, () => Effect.succeed({ tell: () => Effect.void }))
      const both = (start: number): Facet => (ctx) => Effect.andThen(counter(start)(ctx), perSession(ctx))
      const host = yield* testSessionHost([generations("test.counter", both(1), both(100))])
      const directory = Context.get(host.services, ServiceDirectory)
      const { id } = yield* host.session.create()
      yield* host.connect(id)
      const seen: Array<boolean> = []
      directory.watch(() => {
        seen.push(directory.lookup({ service: "test.counter", key: null, session: null }) !== undefined)
        seen.push(directory.lookup({ service: "test.scratch", key: null, session: id }) !== undefined)
        seen.push(
          directory.lookup({ service: Conversation.id, key: conversationKey(id, "c1"), session: id }) !== undefined
        )
      })
      yield* reload(host, "test.counter")
      expect(seen.length).toBeGreaterThan(3)
      expect(seen).not.toContain(false)
    }).pipe(Effect.scoped))

  it.live("reloads those that use its services in this process with it", () =>
    Effect.gen(function*() {
      const seen: Array<number> = []
      const early = Plugin.define({
        id: "early",
        session: (ctx) =>
          Effect.gen(function*() {
            const held = yield* ctx.use(Counter)
            yield* ctx.onActivate(Effect.sync(() => void seen.push(held.count.value.value)))
          })
      })
      const late = Plugin.define({
        id: "late",
        session: (ctx) =>
          ctx.onActivate(
            Effect.flatMap(ctx.use(Counter), (held) => Effect.sync(() => void seen.push(held.count.value.value)))
          )
      })
      const host = yield* testSessionHost([generations("test.counter", counter(1), counter(100)), early, late])
      expect(yield* reload(host, "test.counter")).toEqual(["test.counter", "early", "late"])
      expect(seen).toEqual([1, 1, 100, 100])
    }).pipe(Effect.scoped))

  it.live("goes unnoticed by a session that streams, whose answer calls the new code", () =>
    Effect.gen(function*() {
      const stream = yield* barrier
      const model = scriptedModel([[say("thinking"), run(stream.pass), call("echo", {})], "done"])
      const host = yield* testSessionHost([generations("echo", says("echo", "old"), says("echo", "new"))], { model })
      const { id } = yield* host.session.create()
      const asking = yield* Effect.forkScoped(host.ask(id, "go"))
      yield* stream.reached
      yield* reload(host, "echo")
      yield* stream.open
      expect(yield* Fiber.join(asking)).toBe("done")
      expect(model.requests).toHaveLength(2)
      expect(results(model)).toEqual(["new"])
    }).pipe(Effect.scoped))

  it.live("tells the model of a tool that new code no longer has, and runs nothing of the old", () =>
    Effect.gen(function*() {
      const stream = yield* barrier
      const model = scriptedModel([[run(stream.pass), call("echo", {})], "done"])
      const host = yield* testSessionHost([generations("echo", says("echo", "old"), () => Effect.void)], { model })
      const { id } = yield* host.session.create()
      const asking = yield* Effect.forkScoped(host.ask(id, "go"))
      yield* stream.reached
      yield* reload(host, "echo")
      yield* stream.open
      expect(yield* Fiber.join(asking)).toBe("done")
      expect(String(results(model))).toContain("has been removed since it was offered")
    }).pipe(Effect.scoped))

  it.live("runs a call again under new code if it was in the middle of the old and may be repeated", () =>
    Effect.gen(function*() {
      const started = yield* barrier
      const model = scriptedModel([[call("echo", {})], "done"])
      const host = yield* testSessionHost([
        generations(
          "echo",
          offers("echo", () => Effect.as(started.pass, "old"), "safe"),
          offers("echo", () => Effect.succeed("new"), "safe")
        )
      ], { model })
      const { id } = yield* host.session.create()
      const asking = yield* Effect.forkScoped(host.ask(id, "go"))
      yield* started.reached
      yield* reload(host, "echo")
      expect(yield* Fiber.join(asking)).toBe("done")
      expect(results(model)).toEqual(["new"])
    }).pipe(Effect.scoped))

  it.live("ends a call that was in the middle of old code and may not be repeated, and the turn goes on", () =>
    Effect.gen(function*() {
      const started = yield* barrier
      const model = scriptedModel([[call("echo", {})], "done"])
      const host = yield* testSessionHost([generations("echo", offers("echo", () => Effect.as(started.pass, "old")))], {
        model
      })
      const { id } = yield* host.session.create()
      const asking = yield* Effect.forkScoped(host.ask(id, "go"))
      yield* started.reached
      yield* reload(host, "echo")
      expect(yield* Fiber.join(asking)).toBe("done")
      expect(String(results(model))).toContain("It is unknown whether the call took effect")
    }).pipe(Effect.scoped))

  it.live("suspends only the sessions that are in the middle of its code", () =>
    Effect.gen(function*() {
      const started = yield* barrier
      const stream = yield* barrier
      let other = 0
      const model = scriptedModel([
        [call("echo", {})],
        [run(Effect.andThen(Effect.sync(() => other++), stream.pass)), say("unmoved")],
        "done"
      ])
      const host = yield* testSessionHost([
        generations(
          "echo",
          offers("echo", () => Effect.as(started.pass, "old"), "safe"),
          offers("echo", () => Effect.succeed("new"), "safe")
        )
      ], { model })
      const first = yield* host.session.create()
      const second = yield* host.session.create()
      const asking = yield* Effect.forkScoped(host.ask(first.id, "go"))
      yield* started.reached
      const streaming = yield* Effect.forkScoped(host.ask(second.id, "stream"))
      yield* stream.reached
      yield* reload(host, "echo")
      expect(yield* Fiber.join(asking)).toBe("done")
      yield* stream.open
      expect(yield* Fiber.join(streaming)).toBe("unmoved")
      expect(other).toBe(1)
    }).pipe(Effect.scoped))

  it.live("does not ask a person twice: a decision that was taken holds under new code", () =>
    Effect.gen(function*() {
      let asked = 0
      const decided = yield* barrier
      const gate = (afterwards: Effect.Effect<void>): Facet => (ctx) =>
        Effect.gen(function*() {
          const namespace = yield* ctx.namespace("approval", {})
          yield* ctx.hooks(namespace, "tool", {
            beforeTool: (_, api) =>
              Effect.gen(function*() {
                yield* api.waiting
                if ((yield* api.memo("decision")) === undefined) {
                  asked++
                  yield* api.memo("decision", "allow")
                }
                yield* afterwards
              })
          }, { gate: true })
        })
      const model = scriptedModel([[call("echo", {})], "done"])
      const host = yield* testSessionHost([
        Plugin.define({ id: "echo", session: says("echo", "ran") }),
        generations("approval", gate(decided.pass), gate(Effect.void))
      ], { model })
      const { id } = yield* host.session.create()
      const asking = yield* Effect.forkScoped(host.ask(id, "go"))
      yield* decided.reached
      yield* reload(host, "approval")
      expect(yield* Fiber.join(asking)).toBe("done")
      expect([asked, results(model)]).toEqual([1, ["ran"]])
    }).pipe(Effect.scoped))

  it.live("runs the new handler in a chain of hooks that had begun before it", () =>
    Effect.gen(function*() {
      const waiting = yield* barrier
      const steps: Array<string> = []
      const hook = (name: string, effect: Effect.Effect<void>): Facet => (ctx) =>
        Effect.gen(function*() {
          const namespace = yield* ctx.namespace(name, {})
          yield* ctx.hooks(namespace, "tool", {
            beforeTool: () => Effect.andThen(effect, Effect.sync(() => void steps.push(name)))
          })
        })
      const noted = (text: string): Facet => hook("second", Effect.sync(() => void steps.push(text)))
      const model = scriptedModel([[call("echo", {})], "done"])
      const host = yield* testSessionHost([
        Plugin.define({ id: "echo", session: says("echo", "ran") }),
        Plugin.define({ id: "first", session: hook("first", waiting.pass) }),
        generations("second", noted("old"), noted("new"))
      ], { model })
      const { id } = yield* host.session.create()
      const asking = yield* Effect.forkScoped(host.ask(id, "go"))
      yield* waiting.reached
      yield* reload(host, "second")
      yield* waiting.open
      yield* Fiber.join(asking)
      expect(steps).toEqual(["first", "new", "second"])
    }).pipe(Effect.scoped))

  it.live("lets nothing of a session begin before the new code is active", () =>
    Effect.gen(function*() {
      const waiting = yield* barrier
      const activation = yield* barrier
      const steps: Array<string> = []
      const hook = (name: string, effect: Effect.Effect<void>): Facet => (ctx) =>
        Effect.gen(function*() {
          const namespace = yield* ctx.namespace(name, {})
          yield* ctx.hooks(namespace, "tool", { beforeTool: () => effect })
        })
      const slow: Facet = (ctx) =>
        Effect.gen(function*() {
          yield* hook("second", Effect.sync(() => void steps.push("handler")))(ctx)
          yield* ctx.onActivate(Effect.andThen(activation.pass, Effect.sync(() => void steps.push("active"))))
        })
      const model = scriptedModel([[call("echo", {})], () => {
        steps.push("request")
        return "done"
      }, "done too"])
      const host = yield* testSessionHost([
        Plugin.define({ id: "echo", session: says("echo", "ran") }),
        Plugin.define({ id: "first", session: hook("first", waiting.pass) }),
        generations("second", () => Effect.void, hook("second", Effect.void), slow)
      ], { model })
      yield* reload(host, "second")
      const [one, two] = [yield* host.session.create(), yield* host.session.create()]
      const { main } = yield* Context.get(host.services, SessionRuntime).open(two.id)
      const asking = yield* Effect.forkScoped(host.ask(one.id, "go"))
      yield* waiting.reached
      const reloading = yield* Effect.forkScoped(reload(host, "second"))
      yield* activation.reached
      // A chain of hooks that goes on, and a new prompt: both are due while the new code is not active yet.
      yield* waiting.open
      const second = yield* Effect.forkScoped(host.ask(two.id, "go"))
      yield* eventually(() => Effect.runPromise(main.busy))
      yield* drained
      expect(steps).toEqual([])
      yield* activation.open
      yield* Fiber.join(reloading)
      expect([yield* Fiber.join(asking), yield* Fiber.join(second)].sort()).toEqual(["done", "done too"])
      expect(steps.toSorted()).toEqual(["active", "handler", "request"])
      expect(steps[0]).toBe("active")
    }).pipe(Effect.scoped))

  it.live("lets what a plugin runs for a session register more, when the session opens and when it is open already", () =>
    Effect.gen(function*() {
      const steps: Array<string> = []
      const perSession = (name: string): Facet => (ctx) =>
        ctx.onSession(() =>
          Effect.gen(function*() {
            const namespace = yield* ctx.namespace("registers", {})
            yield* ctx.hooks(namespace, "tool", { beforeTool: () => Effect.sync(() => void steps.push(name)) })
            yield* ctx.tool.transform((draft) => draft.list())
          })
        )
      const model = scriptedModel([[call("echo", {})], "one", [call("echo", {})], "two"])
      const host = yield* testSessionHost([
        Plugin.define({ id: "echo", session: says("echo", "ran") }),
        generations("registers", perSession("old"), perSession("new"))
      ], { model })
      const { id } = yield* host.session.create()
      yield* Context.get(host.services, SessionRuntime).open(id)
      expect(yield* host.ask(id, "go")).toBe("one")
      yield* reload(host, "registers")
      expect(yield* host.ask(id, "again")).toBe("two")
      expect(steps).toEqual(["old", "new"])
    }).pipe(Effect.scoped))

  it.live("leaves hooks in the order of the manifest, whenever they were registered", () =>
    Effect.gen(function*() {
      const steps: Array<string> = []
      const hook = (name: string): Facet => (ctx) =>
        Effect.gen(function*() {
          const namespace = yield* ctx.namespace(name, {})
          yield* ctx.hooks(namespace, "tool", { beforeTool: () => Effect.sync(() => void steps.push(name)) })
        })
      const model = scriptedModel([[call("echo", {})], "one", [call("echo", {})], "two"])
      const host = yield* testSessionHost([
        Plugin.define({ id: "echo", session: says("echo", "ran") }),
        Plugin.define({ id: "a", session: hook("a") }),
        Plugin.define({ id: "b", session: hook("b") })
      ], { model })
      const { id } = yield* host.session.create()
      yield* Context.get(host.services, SessionRuntime).open(id)
      yield* host.ask(id, "go")
      yield* reload(host, "a")
      yield* host.ask(id, "again")
      expect(steps).toEqual(["a", "b", "a", "b"])
    }).pipe(Effect.scoped))

  it.live("leaves the old code active when the new does not come up, and sessions go on", () =>
    Effect.gen(function*() {
      const model = scriptedModel(["one", [call("echo", {})], "two"])
      const broken: Facet = (ctx) =>
        Effect.andThen(says("echo", "broken")(ctx), ctx.onActivate(Effect.fail(new Error("port in use"))))
      const host = yield* testSessionHost(
        [generations("echo", says("echo", "old"), broken, says("echo", "old again"))],
        { model }
      )
      const { id } = yield* host.session.create()
      expect(yield* host.ask(id, "a")).toBe("one")
      const error = yield* Effect.flip(reload(host, "echo"))
      expect(error.message).toContain("port in use; the old code is active again")
      expect(yield* host.ask(id, "b")).toBe("two")
      expect(results(model)).toEqual(["old again"])
    }).pipe(Effect.scoped))

  it.live("gives a service of sessions to attached clients again, from new code and without a gap", () =>
    Effect.gen(function*() {
      const perSession = (start: number): Facet => (ctx) =>
        ctx.providePerSession(
          Counter,
          () =>
            Effect.map(ctx.state(Schema.Struct({ value: Schema.Finite }), { value: start }), (count) => ({
              count,
              add: () => Effect.void
            }))
        )
      const host = yield* testSessionHost([generations("test.counter", perSession(1), perSession(2))])
      const { id } = yield* host.session.create()
      const connection = yield* host.connect(id)
      const facade = yield* connection.use(Counter)
      yield* facade.ready
      let failed = 0
      yield* Effect.forkScoped(
        facade.add(1).pipe(
          Effect.catch(() => Effect.sync(() => failed++)),
          Effect.andThen(Effect.yieldNow),
          Effect.forever
        )
      )
      yield* reload(host, "test.counter")
      const after = yield* facade.count.changes.pipe(Stream.filter(({ value }) => value === 2), Stream.runHead)
      expect([after._tag, failed]).toEqual(["Some", 0])
    }).pipe(Effect.scoped))

  it.live("ends timers and child processes of the old code; what still holds its context dies alone", () =>
    Effect.gen(function*() {
      const contexts: Array<SessionContext> = []
      const children: Array<ReturnType<typeof spawn>> = []
      let ticks = 0
      let shutdowns = 0
      const old: Facet = (ctx) =>
        Effect.gen(function*() {
          contexts.push(ctx)
          yield* ctx.onActivate(Effect.gen(function*() {
            yield* Effect.acquireRelease(
              Effect.sync(() => setInterval(() => ticks++, 1)),
              (timer) => Effect.sync(() => clearInterval(timer))
            )
            children.push(
              yield* Effect.acquireRelease(
                Effect.sync(() => spawn("sleep", ["60"])),
                (child) => Effect.sync(() => child.kill("SIGKILL"))
              )
            )
            yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep(1), ctx.session.list())))
          }))
          yield* ctx.onDispose(Effect.sync(() => shutdowns++))
        })
      const host = yield* testSessionHost([generations("timers", old, () => Effect.void)])
      yield* eventually(() => ticks > 0)
      yield* reload(host, "timers")
      const [child] = children
      const [stale] = contexts
      assert(child !== undefined && stale !== undefined)
      const before = ticks
      // Timers of another generation go off meanwhile, so the old ones had their time.
      let later = 0
      const timer = setInterval(() => later++, 1)
      yield* eventually(() => later > 10)
      clearInterval(timer)
      expect([ticks - before, shutdowns, child.killed]).toEqual([0, 1, true])
      const uses: ReadonlyArray<Effect.Effect<unknown, unknown>> = [
        stale.session.list(),
        stale.tool.list,
        stale.tool.transform(() => {}),
        stale.use(Counter)
      ]
      for (const use of uses) {
        const exit = yield* Effect.exit(use)
        assert(Exit.isFailure(exit))
        expect(Exit.findDefect(exit)).toMatchObject({ success: expect.any(FacetClosed) })
      }
      expect(yield* host.session.list()).toMatchObject({ sessions: [] })
    }).pipe(Effect.scoped))

  it.live("closes an open session in which a gate could not be put up, and opens it only with the gate", () =>
    Effect.gen(function*() {
      const failing: Facet = (ctx) => Effect.asVoid(ctx.namespace("bezel", {}))
      const model = scriptedModel(["one", "never asked", "two"])
      const host = yield* testSessionHost([generations("gate", () => Effect.void, failing, () => Effect.void)], {
        model
      })
      const { id } = yield* host.session.create()
      const connection = yield* host.connect(id)
      const conversation = yield* connection.use(Conversation, { key: conversationKey(id, "c1") })
      yield* conversation.ready
      expect(yield* host.ask(id, "a")).toBe("one")
      yield* reload(host, "gate")
      const refused = yield* Effect.flip(host.session.prompt({ sessionID: id, prompt: { text: "b" } }))
      expect(refused.message).toContain('The namespace "bezel" of plugin gate failed in session')
      expect(model.requests).toHaveLength(1)
      yield* reload(host, "gate")
      // A client that had been attached all the time finds the session there again.
      yield* conversation.ready
      const sent = yield* conversation.send({ text: "c" })
      expect(yield* conversation.wait(sent)).toMatchObject({ text: "never asked" })
    }).pipe(Effect.scoped))
})

describe("the service of plugins", () => {
  it.live("lists plugins and reloads them for a client, and tells it why not", () =>
    Effect.gen(function*() {
      const host = yield* testSessionHost([
        generations("echo", says("echo", "old"), says("echo", "new"), () => Effect.fail(new Error("no key")))
      ])
      const connection = yield* host.connect()
      const plugins = yield* connection.use(Plugins)
      yield* plugins.ready
      expect(yield* plugins.reload({ plugins: ["echo"] })).toEqual({ plugins: ["echo"] })
      // None of them has code of its own to load.
      expect(yield* plugins.reload({})).toEqual({ plugins: [] })
      const error = yield* Effect.flip(plugins.reload({ plugins: ["echo"] }))
      expect(error).toMatchObject({
        _tag: "ReloadFailed",
        message: "Plugin echo failed in the session host during setup: no key; nothing was changed"
      })
      expect((yield* plugins.list()).map(({ id, state }) => [id, state])).toEqual([["test.model", "loaded"], [
        "echo",
        "loaded"
      ]])
      expect(yield* plugins.reloadSettings()).toEqual({ plugins: [] })
    }).pipe(Effect.scoped))
})
