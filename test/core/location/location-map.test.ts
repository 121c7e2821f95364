import { LocationMap, Plugin, PluginKernel, SessionHost, SessionPlugins } from "@bezel/core/host"
import { ClientIdentity } from "@bezel/core/service"
import { SessionRuntime, SessionStore } from "@bezel/core/session"
import { run, say, scriptedModel, temporaryDirectory, testGlobals } from "@bezel/core/testing"
import type { TestHostOptions } from "@bezel/core/testing"
import { assert, describe, expect, it } from "@effect/vitest"
import { Context, Deferred, Effect, Exit, Fiber, Layer, Scope } from "effect"
import { TestClock } from "effect/testing"
import * as fs from "node:fs"
import * as path from "node:path"

/** A global tier whose boots and closings are counted. */
const makeMap = (options: TestHostOptions & { readonly setup?: Effect.Effect<void, unknown> } = {}) =>
  Effect.gen(function*() {
    const log: Array<string> = []
    const plugin = Plugin.define({
      id: "test.log",
      session: (ctx) =>
        Effect.gen(function*() {
          log.push("boot")
          yield* ctx.onDispose(Effect.sync(() => void log.push("close")))
          yield* options.setup ?? Effect.void
        })
    })
    const globals = testGlobals([plugin], { ...options, entries: { "test.log": { required: true } } })
    const context = yield* Layer.build(
      LocationMap.layerWith({ idleTime: "10 seconds" }).pipe(Layer.provideMerge(globals))
    )
    return { log, map: Context.get(context, LocationMap), store: Context.get(context, SessionStore), context }
  })

describe("LocationMap", () => {
  it.effect("boots a location once under concurrent demand, also through a symbolic link", () =>
    Effect.gen(function*() {
      const { log, map } = yield* makeMap()
      const directory = yield* temporaryDirectory
      const link = path.join(yield* temporaryDirectory, "link")
      fs.symlinkSync(directory, link)
      const hosts = yield* Effect.forEach([directory, link, `${directory}/.`], (place) => map.get(place), {
        concurrency: "unbounded"
      })
      expect(new Set(hosts.map((context) => Context.get(context, SessionHost))).size).toBe(1)
      expect(log).toEqual(["boot"])
    }))

  it.effect("gives each directory a location of its own", () =>
    Effect.gen(function*() {
      const { log, map } = yield* makeMap()
      const one = yield* map.get(yield* temporaryDirectory)
      const two = yield* map.get(yield* temporaryDirectory)
      expect(Context.get(one, SessionRuntime)).not.toBe(Context.get(two, SessionRuntime))
      expect(log).toEqual(["boot", "boot"])
    }))

  it.effect("says of a directory that does not exist that it does not", () =>
    Effect.gen(function*() {
      const { map } = yield* makeMap()
      const directory = path.join(yield* temporaryDirectory, "absent")
      const error = yield* Effect.flip(map.get(directory))
      expect(error).toMatchObject({
        _tag: "LocationUnavailable",
        message: `The directory ${directory} cannot be used: it does not exist.`
      })
    }))

  it.effect("keeps a location while it is held, and closes it after its idle time", () =>
    Effect.gen(function*() {
      const { log, map } = yield* makeMap()
      const directory = yield* temporaryDirectory
      const scope = yield* Scope.make()
      yield* map.get(directory).pipe(Scope.provide(scope))
      yield* TestClock.adjust("1 hour")
      expect(log).toEqual(["boot"])
      yield* Scope.close(scope, Exit.void)
      yield* TestClock.adjust("9 seconds")
      expect(log).toEqual(["boot"])
      yield* TestClock.adjust("1 seconds")
      expect(log).toEqual(["boot", "close"])
    }))

  it.effect("keeps a location whose session works after everybody has left, until the work is done", () =>
    Effect.gen(function*() {
      const started = yield* Deferred.make<void>()
      const finish = yield* Deferred.make<void>()
      const model = scriptedModel([[
        run(Deferred.succeed(started, undefined)),
        run(Deferred.await(finish)),
        say("done")
      ]])
      const { log, map, store } = yield* makeMap({ model })
      const directory = fs.realpathSync(yield* temporaryDirectory)
      const session = yield* store.create({ location: { directory, workspaceID: null } })
      yield* Effect.scoped(Effect.gen(function*() {
        const context = yield* map.get(directory)
        yield* Context.get(context, SessionRuntime).prompt({ sessionID: session.id, prompt: { text: "go" } })
      }))
      yield* Deferred.await(started)
      yield* TestClock.adjust("1 hour")
      expect(log).toEqual(["boot"])
      yield* Deferred.succeed(finish, undefined)
      yield* TestClock.adjust("1 minute")
      expect(log).toEqual(["boot", "close"])
      expect((yield* store.get(session.id)).status).toBe("idle")
    }))

  it.effect("reports a boot that fails to each caller, and tries again on the next demand", () =>
    Effect.gen(function*() {
      let broken = true
      const { map } = yield* makeMap({
        setup: Effect.suspend(() => broken ? Effect.fail(new Error("no key")) : Effect.void)
      })
      const directory = yield* temporaryDirectory
      const errors = yield* Effect.all([Effect.flip(map.get(directory)), Effect.flip(map.get(directory))], {
        concurrency: 2
      })
      const told = ["HostFailed", "Plugin test.log failed in the session host during setup: no key"]
      expect(errors.map(({ _tag, message }) => [_tag, message])).toEqual([told, told])
      broken = false
      const context = yield* map.get(directory)
      expect((yield* Context.get(context, PluginKernel).plugins).every(({ state }) => state === "loaded")).toBe(true)
    }))

  it.effect("boots a location without anything of the caller who asked first", () =>
    Effect.gen(function*() {
      const seen: Array<unknown> = []
      const { map } = yield* makeMap({
        setup: Effect.flatMap(ClientIdentity, (client) => Effect.sync(() => void seen.push(client)))
      })
      yield* map.get(yield* temporaryDirectory).pipe(
        Effect.provideService(ClientIdentity, { id: "c", label: "the first", user: "someone" })
      )
      expect(seen).toEqual([null])
    }))

  it.effect("goes on booting for others when the first caller gives up", () =>
    Effect.gen(function*() {
      const go = yield* Deferred.make<void>()
      const { log, map } = yield* makeMap({ setup: Deferred.await(go) })
      const directory = yield* temporaryDirectory
      const first = yield* Effect.forkChild(Effect.scoped(map.get(directory)), { startImmediately: true })
      yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
      const second = yield* Effect.forkChild(map.get(directory), { startImmediately: true })
      yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
      yield* Fiber.interrupt(first)
      yield* Deferred.succeed(go, undefined)
      yield* Fiber.join(second)
      expect(log).toEqual(["boot"])
    }))

  it.effect("refuses, by name of both places, a session that belongs elsewhere", () =>
    Effect.gen(function*() {
      const { map, store } = yield* makeMap()
      const here = fs.realpathSync(yield* temporaryDirectory)
      const there = fs.realpathSync(yield* temporaryDirectory)
      const session = yield* store.create({ location: { directory: there, workspaceID: null } })
      const context = yield* map.get(here)
      const error = yield* Effect.flip(Context.get(context, SessionRuntime).resume(session.id))
      assert(error._tag === "SessionLocationMismatch")
      expect(error).toMatchObject({ expected: there, actual: here })
      expect(SessionPlugins).toBeDefined()
    }))
})
