import { FacetClosed, Kernel, ReloadFailed } from "@bezel/core/kernel"
import type { Facet, FacetScope, KernelOptions, ManifestEntry, PluginFailure } from "@bezel/core/kernel"
import { assert, describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Scope } from "effect"
import { TestClock } from "effect/testing"

type Context = FacetScope<string>

type Code = Facet<Context>

interface Source {
  code: Code | undefined
  /** Given by a reload instead of `code`, if there is one. */
  next?: Code
  entry?: Partial<ManifestEntry>
  nextEntry?: ManifestEntry
  failing?: string
}

/** Words are registered; `needs:x` wants somebody to have registered `x`, and its plugin holds what that plugin made. */
const makeHost = () => {
  const steps: Array<string> = []
  const reports: Array<PluginFailure> = []
  const snapshots: Array<ReadonlyArray<string>> = []
  let visible: ReadonlyArray<string> = []
  const boot = (sources: Record<string, Source>, options?: Partial<KernelOptions<Context, string>>) =>
    Kernel.make<Context, string>({
      host: "test",
      plugins: Object.entries(sources).map(([id, source]) => ({
        entry: { id, ...source.entry },
        load: Effect.suspend(() =>
          source.failing === undefined ? Effect.succeed(source.code) : Effect.fail(new Error(source.failing))
        ),
        reload: Effect.suspend(() =>
          source.failing === undefined
            ? Effect.succeed({ entry: source.nextEntry ?? { id, ...source.entry }, facet: source.next ?? source.code })
            : Effect.fail(new Error(source.failing))
        )
      })),
      makeContext: (facet) => facet,
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
            visible = change.current.map(({ item }) => item)
            snapshots.push(visible)
          }),
        dependents: (current, plugins) =>
          current.flatMap(({ item, plugin }) =>
            current.some((other) => plugins.includes(other.plugin) && item === `needs:${other.item}`) ? [plugin] : []
          )
      },
      report: (failure) => Effect.sync(() => void reports.push(failure)),
      ...options
    })
  const word = (name: string): Code => (ctx) =>
    Effect.gen(function*() {
      yield* ctx.register(name)
      yield* ctx.onActivate(Effect.sync(() => void steps.push(`activate ${name}`)))
      yield* ctx.onDispose(Effect.sync(() => void steps.push(`close ${name}`)))
    })
  return { boot, word, steps, reports, snapshots, visible: () => visible }
}

const states = (kernel: Kernel.Kernel) =>
  Effect.map(kernel.plugins, (plugins) => Object.fromEntries(plugins.map(({ id, state }) => [id, state])))

describe("Kernel.reload", () => {
  it.effect("exchanges what a plugin registered in one step, closes the old code and then activates the new", () =>
    Effect.gen(function*() {
      const host = makeHost()
      const kernel = yield* host.boot({
        a: { code: host.word("one"), next: host.word("two") },
        b: { code: host.word("other") }
      })
      host.steps.length = 0
      host.snapshots.length = 0
      expect(yield* kernel.reload({ plugins: ["a"] })).toEqual(["a"])
      expect(host.snapshots).toEqual([["two", "other"]])
      expect(host.steps).toEqual(["close one", "activate two"])
    }))

  it.effect("refuses code that does not load without a trace: the old code stays as it is", () =>
    Effect.gen(function*() {
      const host = makeHost()
      const source: Source = { code: host.word("one") }
      const kernel = yield* host.boot({ a: source })
      host.steps.length = 0
      source.failing = "Unexpected token"
      const error = yield* Effect.flip(kernel.reload({ plugins: ["a"] }))
      expect(error).toBeInstanceOf(ReloadFailed)
      expect(error.message).toBe("Plugin a failed in the test host during load: Unexpected token; nothing was changed")
      expect([host.steps, host.visible(), yield* states(kernel)]).toEqual([[], ["one"], { a: "loaded" }])
    }))

  it.effect("refuses code whose setup fails, and takes back all that it had acquired", () =>
    Effect.gen(function*() {
      const host = makeHost()
      const next: Code = (ctx) =>
        Effect.gen(function*() {
          yield* host.word("two")(ctx)
          return yield* Effect.fail(new Error("no key"))
        })
      const kernel = yield* host.boot({ a: { code: host.word("one"), next } })
      host.steps.length = 0
      host.snapshots.length = 0
      const error = yield* Effect.flip(kernel.reload())
      expect(error.message).toContain("during setup: no key; nothing was changed")
      expect(host.steps).toEqual(["close two"])
      expect(host.snapshots).toEqual([])
      expect(host.visible()).toEqual(["one"])
    }))

  it.effect("refuses code that no longer provides what another plugin needs", () =>
    Effect.gen(function*() {
      const host = makeHost()
      const kernel = yield* host.boot({
        a: { code: host.word("one"), next: host.word("two") },
        b: { code: host.word("needs:one") }
      })
      const error = yield* Effect.flip(kernel.reload({ plugins: ["a"] }))
      expect(error.message).toBe(
        "Plugin b failed in the test host during bind: nobody provides one; nothing was changed"
      )
      expect(host.visible()).toEqual(["one", "needs:one"])
    }))

  it.effect("sets up and activates the old code again when the new one fails while it is activated", () =>
    Effect.gen(function*() {
      const host = makeHost()
      const next: Code = (ctx) =>
        Effect.andThen(host.word("two")(ctx), ctx.onActivate(Effect.fail(new Error("port in use"))))
      const kernel = yield* host.boot({
        a: { code: host.word("one"), next },
        b: { code: host.word("other") }
      })
      host.steps.length = 0
      host.snapshots.length = 0
      const error = yield* Effect.flip(kernel.reload({ plugins: ["a"] }))
      expect(error.message).toContain("port in use; the old code is active again")
      expect(host.steps).toEqual(["close one", "activate two", "close two", "activate one"])
      expect(host.snapshots).toEqual([["two", "other"], ["one", "other"]])
      expect(yield* states(kernel)).toEqual({ a: "loaded", b: "loaded" })
      yield* kernel.reload({ plugins: ["b"] })
      expect(host.visible()).toEqual(["one", "other"])
    }))

  it.effect("takes a plugin out whose old code cannot be taken up again either", () =>
    Effect.gen(function*() {
      const host = makeHost()
      let setups = 0
      const once: Code = (ctx) =>
        Effect.suspend(() => ++setups === 1 ? host.word("one")(ctx) : Effect.fail(new Error("only once")))
      const kernel = yield* host.boot({
        a: { code: once, next: (ctx) => ctx.onActivate(Effect.fail(new Error("broken"))) },
        b: { code: host.word("other") }
      })
      const error = yield* Effect.flip(kernel.reload({ plugins: ["a"] }))
      expect(error.message).toContain("broken; Plugin a failed in the test host during setup: only once")
      expect(error.message).toContain("the old code could not be taken up again")
      expect(host.visible()).toEqual(["other"])
      expect(yield* states(kernel)).toEqual({ a: "failed", b: "loaded" })
    }))

  it.effect("closes the host when that happens to a required plugin", () =>
    Effect.gen(function*() {
      const host = makeHost()
      let setups = 0
      const kernel = yield* host.boot({
        gate: {
          entry: { required: true },
          code: (ctx) =>
            Effect.suspend(() => ++setups === 1 ? host.word("gate")(ctx) : Effect.fail(new Error("only once"))),
          next: (ctx) => ctx.onActivate(Effect.fail(new Error("broken")))
        },
        b: { code: host.word("other") }
      })
      const error = yield* Effect.flip(kernel.reload({ plugins: ["gate"] }))
      expect(error.message).toContain("and so the host was closed")
      expect(host.visible()).toEqual([])
      expect((yield* Effect.flip(kernel.reload())).message).toBe("The test host is closed.")
    }))

  it.effect("reloads with a plugin those that hold what it provides, and theirs in turn, in manifest order", () =>
    Effect.gen(function*() {
      const host = makeHost()
      const both = (own: string, needs: string): Code => (ctx) =>
        Effect.andThen(host.word(own)(ctx), Effect.asVoid(ctx.register(`needs:${needs}`)))
      const kernel = yield* host.boot({
        base: { code: host.word("base") },
        middle: { code: both("middle", "base") },
        aside: { code: host.word("aside") },
        top: { code: both("top", "middle") }
      })
      host.steps.length = 0
      expect(yield* kernel.reload({ plugins: ["base"] })).toEqual(["base", "middle", "top"])
      expect(host.steps).toEqual([
        "close top",
        "close middle",
        "close base",
        "activate base",
        "activate middle",
        "activate top"
      ])
    }))

  it.effect("takes in a plugin that had failed once its code is right, and says so of no other", () =>
    Effect.gen(function*() {
      const host = makeHost()
      const broken: Source = { code: undefined, failing: "Unexpected token" }
      const kernel = yield* host.boot({ broken, good: { code: host.word("good") } })
      expect(yield* states(kernel)).toEqual({ broken: "failed", good: "loaded" })
      delete broken.failing
      broken.next = host.word("mended")
      broken.nextEntry = { id: "acme.mended", version: "2.0.0" }
      expect(yield* kernel.reload({ plugins: ["broken"] })).toEqual(["acme.mended"])
      expect(host.visible()).toEqual(["mended", "good"])
      expect(yield* kernel.plugins).toMatchObject([{
        id: "acme.mended",
        version: "2.0.0",
        state: "loaded",
        error: null
      }, {
        id: "good"
      }])
    }))

  it.effect("reloads all others although one that had failed before fails again", () =>
    Effect.gen(function*() {
      const host = makeHost()
      const kernel = yield* host.boot({
        broken: { code: undefined, failing: "Unexpected token" },
        good: { code: host.word("one"), next: host.word("two") }
      })
      expect(yield* kernel.reload()).toEqual(["good"])
      expect(host.visible()).toEqual(["two"])
      expect(yield* states(kernel)).toEqual({ broken: "failed", good: "loaded" })
      expect((yield* Effect.flip(kernel.reload({ plugins: ["broken"] }))).message).toContain("Unexpected token")
    }))

  it.effect("names the plugins that there are when asked for one that there is not", () =>
    Effect.gen(function*() {
      const host = makeHost()
      const kernel = yield* host.boot({ a: { code: host.word("one") } })
      const error = yield* Effect.flip(kernel.reload({ plugins: ["b"] }))
      expect(error.message).toBe('There is no plugin "b" in the test host; there are: a.')
    }))

  it.effect("has the context of closed code die in whoever uses it, and in nobody else", () =>
    Effect.gen(function*() {
      const host = makeHost()
      const contexts: Array<Context> = []
      const kernel = yield* host.boot({
        a: { code: (ctx) => Effect.sync(() => void contexts.push(ctx)), next: host.word("two") }
      })
      yield* kernel.reload()
      const [stale] = contexts
      assert(stale !== undefined)
      for (const use of [stale.register("late"), stale.onActivate(Effect.void), stale.own(Effect.void)]) {
        const exit = yield* Effect.exit(use)
        assert(Exit.isFailure(exit))
        expect(Exit.findDefect(exit)).toMatchObject({ success: expect.any(FacetClosed) })
      }
      expect(host.visible()).toEqual(["two"])
    }))

  it.effect("gives up code that does not finish its setup in time", () =>
    Effect.gen(function*() {
      const host = makeHost()
      const kernel = yield* host.boot({ a: { code: host.word("one"), next: () => Effect.never } })
      const reloading = yield* Effect.forkScoped(Effect.flip(kernel.reload()), { startImmediately: true })
      yield* TestClock.adjust("10 seconds")
      const error = yield* Fiber.join(reloading)
      expect(error.message).toContain("did not finish within 10 s; nothing was changed")
      expect(host.visible()).toEqual(["one"])
    }))

  it.effect("goes on when whoever asked for it is interrupted", () =>
    Effect.gen(function*() {
      const host = makeHost()
      const entered = yield* Deferred.make<void>()
      const go = yield* Deferred.make<void>()
      const kernel = yield* host.boot({
        a: {
          code: host.word("one"),
          next: (ctx) =>
            Effect.gen(function*() {
              yield* Deferred.succeed(entered, undefined)
              yield* Deferred.await(go)
              yield* host.word("two")(ctx)
            })
        }
      })
      const reloading = yield* Effect.forkScoped(kernel.reload(), { startImmediately: true })
      yield* Deferred.await(entered)
      yield* Fiber.interrupt(reloading)
      yield* Deferred.succeed(go, undefined)
      yield* kernel.reload({ plugins: [] })
      expect(host.visible()).toEqual(["two"])
    }))

  it.effect("leaves nothing when the host closes in the middle of it", () =>
    Effect.gen(function*() {
      const host = makeHost()
      const scope = yield* Scope.make()
      const entered = yield* Deferred.make<void>()
      const kernel = yield* Scope.provide(
        host.boot({
          a: {
            code: host.word("one"),
            next: (ctx) =>
              Effect.andThen(host.word("two")(ctx), Effect.andThen(Deferred.succeed(entered, undefined), Effect.never))
          }
        }),
        scope
      )
      yield* Effect.forkScoped(Effect.exit(kernel.reload()), { startImmediately: true })
      yield* Deferred.await(entered)
      host.steps.length = 0
      yield* Scope.close(scope, Exit.void)
      expect(host.visible()).toEqual([])
      expect(host.steps.toSorted()).toEqual(["close one", "close two"])
    }))
})
