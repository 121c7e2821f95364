import { LocationMap, Plugin } from "@bezel/core/host"
import { declareSection, SessionRuntime, SessionStore } from "@bezel/core/session"
import { SessionStorage, StorageError } from "@bezel/core/storage"
import {
  call,
  run,
  say,
  scriptedModel,
  temporaryDirectory,
  testGlobals,
  testSessionHost,
  testSessions,
  wrappedSessionFiles
} from "@bezel/core/testing"
import { tool } from "@bezel/core/tool"
import { assert, describe, expect, it } from "@effect/vitest"
import { Context, Deferred, Effect, Exit, Fiber, Layer, Scope } from "effect"
import * as Schema from "effect/Schema"
import { TestClock } from "effect/testing"
import * as fs from "node:fs"
import { drained } from "../../eventually.ts"

describe("SessionRuntime", () => {
  it.live("gives a prompt with a request id that it has accepted before the same input", () =>
    Effect.gen(function*() {
      const model = scriptedModel(["one"])
      const { session } = yield* testSessionHost([], { model })
      const { id } = yield* session.create()
      const first = yield* session.prompt({ sessionID: id, prompt: { text: "a" }, requestID: "r" })
      yield* session.wait(id)
      expect(yield* session.prompt({ sessionID: id, prompt: { text: "a" }, requestID: "r" })).toEqual(first)
      yield* session.wait(id)
      expect(model.requests).toHaveLength(1)
    }).pipe(Effect.scoped))

  it.live("stops taking work while its storage is full, and goes on by itself when there is room again", () =>
    Effect.gen(function*() {
      let full = false
      const sessions = yield* testSessions
      const files = wrappedSessionFiles(Context.get(sessions, SessionStorage), (storage) => ({
        ...storage,
        commit: (batch) =>
          Effect.suspend(() =>
            full
              ? Effect.fail(new StorageError({ kind: "disk_full", message: "there is no room", path: null }))
              : storage.commit(batch)
          )
      }))
      const model = scriptedModel(["one", "two"])
      const host = yield* testSessionHost([], { model, sessions: Context.add(sessions, SessionStorage, files) })
      const { id } = yield* host.session.create()
      // Somebody holds the session open all the while, as a screen does.
      const held = yield* Context.get(host.services, SessionRuntime).open(id)
      yield* host.ask(id, "first")
      full = true
      const refused = yield* Effect.flip(
        host.session.prompt({ sessionID: id, prompt: { text: "second" }, requestID: "r" })
      )
      expect(refused).toMatchObject({ code: "faulted", message: expect.stringContaining("there is no room") })
      expect(model.requests).toHaveLength(1)
      full = false
      const { inputID } = yield* host.session.prompt({ sessionID: id, prompt: { text: "second" }, requestID: "r" })
      expect(yield* host.session.wait(id, inputID)).toMatchObject({ status: "done", text: "two" })
      expect((yield* held.main.snapshot).view.entries.map((entry) => entry.kind)).toEqual([
        "bezel.user",
        "bezel.assistant",
        "bezel.user",
        "bezel.assistant"
      ])
    }).pipe(Effect.scoped))

  it.live("accepts a prompt without running it until it is resumed", () =>
    Effect.gen(function*() {
      const model = scriptedModel(["one"])
      const { session } = yield* testSessionHost([], { model })
      const { id } = yield* session.create()
      const { inputID } = yield* session.prompt({ sessionID: id, prompt: { text: "a" }, resume: false })
      yield* drained
      expect(model.requests).toHaveLength(0)
      yield* session.resume(id)
      expect(yield* session.wait(id, inputID)).toMatchObject({ status: "done", text: "one" })
    }).pipe(Effect.scoped))

  it.live("ends the running turn when interrupted, and lists the session as active until then", () =>
    Effect.gen(function*() {
      const started = yield* Deferred.make<void>()
      const model = scriptedModel([[run(Effect.asVoid(Deferred.succeed(started, undefined))), run(Effect.never)]])
      const { session } = yield* testSessionHost([], { model })
      const { id } = yield* session.create()
      const { inputID } = yield* session.prompt({ sessionID: id, prompt: { text: "a" } })
      yield* Deferred.await(started)
      expect(yield* session.active).toEqual([id])
      yield* session.interrupt(id, "enough")
      expect(yield* session.wait(id, inputID)).toMatchObject({ status: "unanswered", reason: "aborted" })
      expect(yield* session.active).toEqual([])
    }).pipe(Effect.scoped))

  it.live("ends what was accepted and never resumed, without beginning it", () =>
    Effect.gen(function*() {
      const model = scriptedModel(["never"])
      const { session } = yield* testSessionHost([], { model })
      const { id } = yield* session.create()
      const { inputID } = yield* session.prompt({ sessionID: id, prompt: { text: "a" }, resume: false })
      yield* session.interrupt(id)
      expect(yield* session.wait(id, inputID)).toMatchObject({ status: "unanswered", reason: "aborted" })
      expect(model.requests).toHaveLength(0)
    }).pipe(Effect.scoped))

  it.effect("gives the writer's lease back after the idle time, and not while work runs", () =>
    Effect.gen(function*() {
      const started = yield* Deferred.make<void>()
      const finish = yield* Deferred.make<void>()
      const model = scriptedModel([[
        run(Effect.asVoid(Deferred.succeed(started, undefined))),
        run(Deferred.await(finish)),
        say("done")
      ]])
      const context = yield* Layer.build(LocationMap.layer.pipe(Layer.provideMerge(testGlobals([], { model }))))
      const directory = fs.realpathSync(yield* temporaryDirectory)
      const services = yield* Context.get(context, LocationMap).get(directory)
      const runtime = Context.get(services, SessionRuntime)
      const files = Context.get(context, SessionStorage)
      const { id } = yield* Context.get(context, SessionStore).create({ location: { directory, workspaceID: null } })
      const isFree = Effect.exit(Effect.scoped(files.write(id))).pipe(Effect.map(Exit.isSuccess))
      yield* runtime.prompt({ sessionID: id, prompt: { text: "go" } })
      yield* Deferred.await(started)
      yield* TestClock.adjust("1 hour")
      expect(yield* isFree).toBe(false)
      yield* Deferred.succeed(finish, undefined)
      yield* runtime.settled
      yield* TestClock.adjust("400 millis")
      expect(yield* isFree).toBe(false)
      yield* TestClock.adjust("200 millis")
      expect(yield* isFree).toBe(true)
    }))

  it.live("names the holder of a session that another host writes", () =>
    Effect.gen(function*() {
      const host = yield* testSessionHost([])
      const { id } = yield* host.session.create()
      const elsewhere = yield* Scope.make()
      const failure = yield* Effect.flip(Effect.gen(function*() {
        const context = yield* Layer.build(LocationMap.layer.pipe(Layer.provideMerge(testGlobals([]))))
        const directory = fs.realpathSync(yield* temporaryDirectory)
        const services = yield* Context.get(context, LocationMap).get(directory)
        const session = yield* Context.get(context, SessionStore).create({ location: { directory, workspaceID: null } })
        yield* Context.get(context, SessionStorage).write(session.id).pipe(Scope.provide(elsewhere))
        return yield* Context.get(services, SessionRuntime).resume(session.id)
      }))
      assert(failure._tag === "SessionInUse")
      expect(failure.holder.pid).toBe(process.pid)
      expect(id).toMatch(/^ses_/)
      yield* Scope.close(elsewhere, Exit.void)
    }).pipe(Effect.scoped))

  it.live("runs nothing of a session before the gates of all plugins are there", () =>
    Effect.gen(function*() {
      const steps: Array<string> = []
      const model = scriptedModel([[call("touch", {})], "done"])
      const early = Plugin.define({
        id: "early",
        session: (ctx) =>
          Effect.gen(function*() {
            yield* ctx.tool.transform((draft) =>
              draft.set(
                "touch",
                tool({
                  description: "Touches",
                  input: Schema.Struct({}),
                  execute: () =>
                    Effect.sync(() => {
                      steps.push("touched")
                      return "ok"
                    })
                })
              )
            )
            // Prompts its own session while that is still being opened.
            yield* ctx.onSession((session) =>
              Effect.asVoid(
                ctx.session.prompt({ sessionID: session.identity.sessionID, prompt: { text: "now" }, requestID: "own" })
              )
            )
          })
      })
      const late = Plugin.define({
        id: "late",
        session: (ctx) =>
          Effect.gen(function*() {
            const namespace = yield* ctx.namespace("late", {})
            yield* ctx.onSession(() => Effect.sleep(30))
            yield* ctx.hooks(namespace, "tool", {
              beforeTool: () =>
                Effect.sync(() => {
                  steps.push("asked")
                  return { block: "no" }
                })
            }, { gate: true })
          })
      })
      const { session } = yield* testSessionHost([early, late], { model })
      const { id } = yield* session.create()
      yield* session.resume(id)
      yield* session.wait(id)
      expect(yield* session.finalText(id)).toBe("done")
      expect(steps).toEqual(["asked"])
    }).pipe(Effect.scoped))

  it.live("does not open a session whose gates could not be put up", () =>
    Effect.gen(function*() {
      const { services, session } = yield* testSessionHost([], { model: scriptedModel(["never asked"]) })
      const { id } = yield* session.create()
      yield* Context.get(services, SessionRuntime).declare({
        remove: [],
        add: [{
          ...declareSection({ plugin: "broken", order: 0 }, { id: "s", order: 0, text: () => Effect.succeed(null) }),
          apply: () => Effect.fail(new Error("no"))
        }]
      })
      const error = yield* Effect.flip(session.prompt({ sessionID: id, prompt: { text: "a" } }))
      expect(error).toMatchObject({
        _tag: "HarnessError",
        message: `The section "s" of plugin broken failed in session ${id}.`
      })
    }).pipe(Effect.scoped))

  it.live("gives an open session what is declared later, and takes it away again", () =>
    Effect.gen(function*() {
      const model = scriptedModel(["one", "two", "three"])
      const { services, session, ask } = yield* testSessionHost([], { model })
      const { id } = yield* session.create()
      expect(yield* ask(id, "a")).toBe("one")
      const runtime = Context.get(services, SessionRuntime)
      const section = declareSection({ plugin: "p", order: 0 }, {
        id: "s",
        order: 0,
        text: () => Effect.succeed("A late section")
      })
      yield* runtime.declare({ add: [section], remove: [] })
      expect(yield* ask(id, "b")).toBe("two")
      yield* runtime.declare({ add: [], remove: [section] })
      expect(yield* ask(id, "c")).toBe("three")
      const has = model.requests.map(({ messages }) => JSON.stringify(messages).includes("A late section"))
      expect(has).toEqual([false, true, false])
    }).pipe(Effect.scoped))

  it.effect("opens a session although the effect of a plugin for it never settles", () =>
    Effect.gen(function*() {
      const stuck = Plugin.define({ id: "stuck", session: (ctx) => ctx.onSession(() => Effect.never) })
      const { ask, session } = yield* testSessionHost([stuck], { model: scriptedModel(["hello"]) })
      const { id } = yield* session.create()
      const asking = yield* Effect.forkScoped(ask(id, "a"), { startImmediately: true })
      yield* Effect.repeat(Effect.yieldNow, { times: 100 })
      yield* TestClock.adjust("10 seconds")
      expect(yield* Fiber.join(asking)).toBe("hello")
    }))
})
