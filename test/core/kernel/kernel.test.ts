import { FacetClosed, HostFailed, Kernel } from "@bezel/core/kernel"
import type { Facet, FacetScope, KernelOptions, ManifestEntry, PluginFailure } from "@bezel/core/kernel"
import { assert, describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Logger, Scope } from "effect"
import { TestClock } from "effect/testing"

interface Context extends FacetScope<string> {
  readonly plugins: Kernel.Kernel["plugins"]
}

type Plugin = Partial<ManifestEntry> & {
  readonly facet?: Facet<Context>
  readonly load?: Effect.Effect<Facet<Context>, unknown>
}

/** A host whose registrations are words; `needs:x` is at fault while nobody registered `x`. */
const makeHost = () => {
  const steps: Array<string> = []
  const reports: Array<PluginFailure> = []
  let visible: ReadonlyArray<string> = []
  let changes = 0
  const boot = (plugins: Record<string, Plugin>, options?: Partial<KernelOptions<Context, string>>) =>
    Kernel.make<Context, string>({
      host: "test",
      plugins: Object.entries(plugins).map(([id, { facet, load, ...entry }]) => ({
        entry: { id, ...entry },
        load: load ?? Effect.succeed(facet)
      })),
      makeContext: (facet, kernel) => ({ ...facet, plugins: kernel.plugins }),
      bind: {
        check: (current) =>
          current.flatMap(({ item, plugin }) => {
            const needed = item.startsWith("needs:") ? item.slice("needs:".length) : null
            return needed === null || current.some((other) => other.item === needed)
              ? []
              : [{ plugin, message: `nobody provides ${needed}` }]
          }),
        apply: (change) =>
          Effect.sync(() => {
            changes++
            visible = change.current.map(({ item }) => item)
          })
      },
      report: (failure) => Effect.sync(() => void reports.push(failure)),
      ...options
    })
  return {
    boot,
    steps,
    reports,
    visible: () => visible,
    changes: () => changes,
    log: (step: string) => Effect.sync(() => void steps.push(step))
  }
}

const states = (kernel: Kernel.Kernel) =>
  Effect.map(kernel.plugins, (plugins) => Object.fromEntries(plugins.map(({ id, state }) => [id, state])))

describe("a plugin that is granted a power that there is not", () => {
  it.effect("is not loaded, and says which; the others are", () =>
    Effect.gen(function*() {
      const host = makeHost()
      const loads = Effect.sync(() => {
        host.steps.push("loaded")
        return () => Effect.void
      })
      const kernel = yield* host.boot({
        greedy: { grants: ["fleet.look", "fleet.kill"], load: loads },
        modest: { grants: ["fleet.look"], facet: () => Effect.void }
      }, { powers: ["fleet.look", "fleet.list"] })
      expect(yield* states(kernel)).toEqual({ greedy: "failed", modest: "loaded" })
      expect(host.steps).toEqual([])
      expect(host.reports.map(({ message }) => message)).toEqual([
        'Plugin greedy failed in the test host during load: grants[1]: there is no power "fleet.kill" to grant; there are fleet.look, fleet.list'
      ])
    }).pipe(Effect.scoped))
})

describe("Kernel", () => {
  it.effect("sets all facets up in manifest order before any is activated, and closes them in reverse", () =>
    Effect.gen(function*() {
      const host = makeHost()
      const facet = (id: string): Facet<Context> => (ctx) =>
        Effect.gen(function*() {
          yield* host.log(`setup ${id}`)
          yield* ctx.onActivate(host.log(`activate ${id}`))
          yield* ctx.onDispose(host.log(`dispose ${id}`))
        })
      yield* Effect.scoped(host.boot({ a: { facet: facet("a") }, b: { facet: facet("b") }, c: { facet: facet("c") } }))
      expect(host.steps).toEqual([
        "setup a",
        "setup b",
        "setup c",
        "activate a",
        "activate b",
        "activate c",
        "dispose c",
        "dispose b",
        "dispose a"
      ])
    }))

  it.effect("makes everything staged visible in one step after the last setup", () =>
    Effect.gen(function*() {
      const host = makeHost()
      const seen: Array<ReadonlyArray<string>> = []
      const facet = (item: string): Facet<Context> => (ctx) =>
        Effect.gen(function*() {
          yield* ctx.register(item)
          seen.push(host.visible())
          yield* ctx.onActivate(Effect.sync(() => void seen.push(host.visible())))
        })
      yield* host.boot({ a: { facet: facet("one") }, b: { facet: facet("two") } })
      expect(seen).toEqual([[], [], ["one", "two"], ["one", "two"]])
      expect(host.changes()).toBe(1)
    }))

  it.effect("shows a registration that comes after bind at once, and takes it back when asked, once", () =>
    Effect.gen(function*() {
      const host = makeHost()
      const scopes: Array<Context> = []
      yield* host.boot({ a: { facet: (ctx) => Effect.sync(() => void scopes.push(ctx)) } })
      const [ctx] = scopes
      assert(ctx !== undefined)
      const unregister = yield* ctx.register("late")
      expect(host.visible()).toEqual(["late"])
      yield* unregister
      yield* unregister
      expect(host.visible()).toEqual([])
      expect(host.changes()).toBe(2)
    }))

  it.effect("refuses a late registration that does not hold together, and forgets it", () =>
    Effect.gen(function*() {
      const host = makeHost()
      const scopes: Array<Context> = []
      yield* host.boot({ a: { facet: (ctx) => Effect.sync(() => void scopes.push(ctx)) } })
      const [ctx] = scopes
      assert(ctx !== undefined)
      const exit = yield* Effect.exit(ctx.register("needs:nothing"))
      expect(Exit.isFailure(exit)).toBe(true)
      yield* ctx.register("fine")
      expect(host.visible()).toEqual(["fine"])
    }))

  it.effect("fails only the plugin whose import throws", () =>
    Effect.gen(function*() {
      const host = makeHost()
      const kernel = yield* host.boot({
        bad: {
          load: Effect.sync(() => {
            throw new Error("ENOENT: no such file, open 'table.json'")
          })
        },
        good: { facet: (ctx) => Effect.asVoid(ctx.register("good")) }
      })
      const [bad, good] = yield* kernel.plugins
      expect(bad).toMatchObject({ id: "bad", state: "failed", phase: "load" })
      expect(bad?.error).toContain("table.json")
      expect(good).toMatchObject({ id: "good", state: "loaded", error: null })
      expect(host.visible()).toEqual(["good"])
      expect(host.reports.map(({ plugin, phase }) => [plugin, phase])).toEqual([["bad", "load"]])
    }))

  it.effect("takes back everything of an optional plugin whose setup fails, and goes on", () =>
    Effect.gen(function*() {
      const host = makeHost()
      const kernel = yield* host.boot({
        bad: {
          facet: (ctx) =>
            Effect.gen(function*() {
              yield* ctx.register("half")
              yield* Effect.acquireRelease(host.log("acquired"), () => host.log("released"))
              return yield* Effect.fail(new Error("no key"))
            })
        },
        good: { facet: (ctx) => Effect.asVoid(ctx.register("good")) }
      })
      expect(host.visible()).toEqual(["good"])
      expect(host.steps).toEqual(["acquired", "released"])
      expect(yield* states(kernel)).toEqual({ bad: "failed", good: "loaded" })
    }))

  it.effect("fails the host when a required plugin fails, names it, and has closed everything again", () =>
    Effect.gen(function*() {
      const host = makeHost()
      const error = yield* Effect.flip(host.boot({
        first: { facet: (ctx) => ctx.onDispose(host.log("closed first")) },
        core: { required: true, facet: () => Effect.fail(new Error("no database")) },
        never: { facet: () => host.log("never set up") }
      }))
      expect(error).toBeInstanceOf(HostFailed)
      expect(error.message).toBe("Plugin core failed in the test host during setup: no database")
      expect(host.steps).toEqual(["closed first"])
    }))

  it.effect("takes out, together with a failed plugin, those that need it", () =>
    Effect.gen(function*() {
      const host = makeHost()
      const seen: Array<ReadonlyArray<string>> = []
      const kernel = yield* host.boot({
        base: {
          facet: (ctx) => Effect.andThen(ctx.register("base"), ctx.onActivate(Effect.fail(new Error("port in use"))))
        },
        user: {
          facet: (ctx) =>
            Effect.gen(function*() {
              yield* ctx.register("needs:base")
              yield* ctx.onActivate(host.log("activated user"))
              yield* ctx.onDispose(Effect.sync(() => void seen.push(host.visible())))
            })
        },
        other: { facet: (ctx) => Effect.asVoid(ctx.register("other")) }
      })
      expect(yield* states(kernel)).toEqual({ base: "failed", user: "failed", other: "loaded" })
      expect(host.visible()).toEqual(["other"])
      expect(host.steps).toEqual([])
      // Both had left in one step before the first of them was closed.
      expect(seen).toEqual([["other"]])
    }))

  it.effect("fails the host when a required plugin needs an optional one that failed", () =>
    Effect.gen(function*() {
      const host = makeHost()
      const error = yield* Effect.flip(host.boot({
        base: { facet: () => Effect.fail(new Error("broken")) },
        core: { required: true, facet: (ctx) => Effect.asVoid(ctx.register("needs:base")) }
      }))
      expect(error.failures.map(({ plugin, phase }) => [plugin, phase])).toEqual([["core", "bind"]])
    }))

  it.effect("reports all faults of a bind together", () =>
    Effect.gen(function*() {
      const host = makeHost()
      const needs = (word: string): Facet<Context> => (ctx) => Effect.asVoid(ctx.register(`needs:${word}`))
      const error = yield* Effect.flip(host.boot({
        a: { required: true, facet: needs("x") },
        b: { required: true, facet: needs("y") }
      }))
      expect(error.message.split("\n")).toEqual([
        "Plugin a failed in the test host during bind: nobody provides x",
        "Plugin b failed in the test host during bind: nobody provides y"
      ])
    }))

  it.effect("says after a second which plugin it waits for, once", () =>
    Effect.gen(function*() {
      const host = makeHost()
      const told: Array<unknown> = []
      const booting = yield* Effect.forkScoped(
        host.boot({ slow: { facet: () => Effect.sleep("5 seconds") }, good: { facet: () => Effect.void } }).pipe(
          Effect.provide(Logger.layer([Logger.make(({ message }) => told.push(message))]))
        )
      )
      yield* TestClock.adjust("999 millis")
      expect(told).toEqual([])
      yield* TestClock.adjust("1 millis")
      const line = "Waiting for plugin slow (setup in the test host, at most 10 s)."
      expect(told.flat()).toEqual([line])
      yield* TestClock.adjust("5 seconds")
      yield* Fiber.join(booting)
      expect(told.flat()).toEqual([line])
    }))

  it.effect("names a plugin whose setup never settles after its time, and goes on without it", () =>
    Effect.gen(function*() {
      const host = makeHost()
      const booting = yield* Effect.forkScoped(host.boot({
        stuck: { facet: () => Effect.never },
        deaf: { facet: (ctx) => ctx.onActivate(Effect.uninterruptible(Effect.never)) },
        good: { facet: () => Effect.void }
      }, { limits: { setup: "2 seconds" } }))
      yield* TestClock.adjust("1999 millis")
      expect(booting.pollUnsafe()).toBeUndefined()
      yield* TestClock.adjust("1 millis")
      yield* TestClock.adjust("10 seconds")
      // The deaf one holds its scope until the limit of closing has passed.
      yield* TestClock.adjust("10 seconds")
      const kernel = yield* Fiber.join(booting)
      const [stuck, deaf, good] = yield* kernel.plugins
      expect(stuck).toMatchObject({ state: "failed", phase: "setup" })
      expect(stuck?.error).toContain("did not finish within 2 s")
      expect(deaf).toMatchObject({ state: "failed", phase: "activate" })
      expect(good).toMatchObject({ state: "loaded" })
      expect(host.reports.map(({ message }) => message)).toContain(
        "Plugin deaf failed in the test host during dispose: work of it could not be interrupted within 10 s"
      )
    }))

  it.effect("interrupts what is activated late and does not finish in its time, and keeps the plugin", () =>
    Effect.gen(function*() {
      const host = makeHost()
      const facets: Array<Context> = []
      const kernel = yield* host.boot({ late: { facet: (ctx) => Effect.sync(() => void facets.push(ctx)) } })
      const hanging = Effect.onInterrupt(Effect.never, () => host.log("interrupted"))
      const activating = yield* Effect.forkScoped(facets[0]?.onActivate(hanging) ?? Effect.void)
      yield* TestClock.adjust("10 seconds")
      expect(Exit.findDefect(yield* Fiber.await(activating))).toMatchObject({
        success: { message: "Plugin late failed in the test host during activate: it did not finish within 10 s" }
      })
      expect(host.steps).toEqual(["interrupted"])
      expect(yield* states(kernel)).toEqual({ late: "loaded" })
    }))

  it.effect("runs every finalizer and reports every failure when closing", () =>
    Effect.gen(function*() {
      const host = makeHost()
      yield* Effect.scoped(host.boot({
        a: {
          facet: (ctx) => Effect.andThen(ctx.onDispose(host.log("a")), ctx.onDispose(Effect.die(new Error("a broke"))))
        },
        b: { facet: (ctx) => ctx.onDispose(Effect.die(new Error("b broke"))) },
        c: { facet: (ctx) => ctx.onDispose(host.log("c")) }
      }))
      expect(host.steps).toEqual(["c", "a"])
      expect(host.reports.map(({ message }) => message)).toEqual([
        "Plugin b failed in the test host during dispose: b broke",
        "Plugin a failed in the test host during dispose: a broke"
      ])
    }))

  it.effect("refuses what a facet that slept through the closing of its host registers on waking", () =>
    Effect.gen(function*() {
      const host = makeHost()
      const scope = yield* Scope.make()
      const entered = yield* Deferred.make<void>()
      const wake = Promise.withResolvers<void>()
      const late = Promise.withResolvers<Exit.Exit<unknown, unknown>>()
      yield* host.boot({
        sleeper: {
          facet: (ctx) =>
            Effect.gen(function*() {
              yield* Deferred.succeed(entered, undefined)
              // Code outside Effect, which no interruption reaches.
              yield* Effect.promise(async () => {
                await wake.promise
                await Effect.runPromiseExit(ctx.onDispose(host.log("late finalizer")))
                late.resolve(await Effect.runPromiseExit(ctx.register("late")))
              })
            })
        }
      }).pipe(Scope.provide(scope), Effect.exit, Effect.forkScoped)
      yield* Deferred.await(entered)
      yield* Scope.close(scope, Exit.void)
      wake.resolve()
      const exit = yield* Effect.promise(() => late.promise)
      expect([host.visible(), host.steps]).toEqual([[], []])
      assert(Exit.isFailure(exit))
      expect(Exit.findDefect(exit)).toMatchObject({ success: expect.any(FacetClosed) })
    }))

  it.effect("tears down what a facet acquires in its scope after that has closed", () =>
    Effect.gen(function*() {
      const host = makeHost()
      const scopes: Array<Context> = []
      yield* Effect.scoped(host.boot({ a: { facet: (ctx) => Effect.sync(() => void scopes.push(ctx)) } }))
      const [ctx] = scopes
      assert(ctx !== undefined)
      yield* Effect.acquireRelease(host.log("acquired"), () => host.log("released")).pipe(Scope.provide(ctx.scope))
      expect(host.steps).toEqual(["acquired", "released"])
    }))

  it.effect("interrupts the background work of a facet when its host closes", () =>
    Effect.gen(function*() {
      const host = makeHost()
      yield* Effect.scoped(
        host.boot({
          a: {
            facet: (ctx) =>
              ctx.onActivate(
                Effect.asVoid(Effect.forkScoped(Effect.onInterrupt(Effect.never, () => host.log("stopped"))))
              )
          }
        }).pipe(Effect.andThen(Effect.yieldNow))
      )
      expect(host.steps).toEqual(["stopped"])
    }))

  it.effect("lists a plugin without a facet for this host as absent", () =>
    Effect.gen(function*() {
      const host = makeHost()
      const kernel = yield* host.boot({ elsewhere: {}, here: { version: "1.2.0", facet: () => Effect.void } })
      expect(yield* kernel.plugins).toMatchObject([
        { id: "elsewhere", version: null, state: "absent" },
        { id: "here", version: "1.2.0", state: "loaded" }
      ])
    }))
})
