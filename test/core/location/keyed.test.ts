import { makeKeyed } from "@bezel/core/location"
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Scope } from "effect"
import { TestClock } from "effect/testing"

const turns = Effect.repeat(Effect.yieldNow, { times: 50 })

describe("makeKeyed", () => {
  it.effect("begins a successor only after its predecessor has closed completely", () =>
    Effect.gen(function*() {
      const log: Array<string> = []
      const closed = yield* Deferred.make<void>()
      let made = 0
      const keyed = yield* makeKeyed({
        make: (key: string) =>
          Effect.gen(function*() {
            const name = `${key}${++made}`
            log.push(`made ${name}`)
            yield* Effect.addFinalizer(() =>
              Effect.andThen(
                made === 1 ? Deferred.await(closed) : Effect.void,
                Effect.sync(() => void log.push(`closed ${name}`))
              )
            )
            return name
          }),
        idleTime: "1 second"
      })
      yield* Effect.scoped(keyed.get("a"))
      yield* TestClock.adjust("1 second")
      const next = yield* Effect.forkChild(keyed.get("a"), { startImmediately: true })
      yield* turns
      expect(log).toEqual(["made a1"])
      yield* Deferred.succeed(closed, undefined)
      expect(yield* Fiber.join(next)).toBe("a2")
      expect(log).toEqual(["made a1", "closed a1", "made a2"])
    }))

  it.effect("closes an instance that nobody holds at once when asked, and leaves alone one that is held or being made", () =>
    Effect.gen(function*() {
      const log: Array<string> = []
      const begun = yield* Deferred.make<void>()
      const keyed = yield* makeKeyed({
        make: (key: string) =>
          Effect.gen(function*() {
            yield* Effect.addFinalizer(() => Effect.sync(() => void log.push(`closed ${key}`)))
            if (key === "slow") yield* Deferred.await(begun)
            return key
          }),
        idleTime: "1 hour"
      })
      const held = yield* Scope.make()
      yield* Scope.provide(keyed.get("a"), held)
      const making = yield* Effect.forkChild(Effect.scoped(keyed.get("slow")), { startImmediately: true })
      yield* keyed.closeIdle("a")
      yield* keyed.closeIdle("slow")
      yield* Deferred.succeed(begun, undefined)
      expect(yield* Fiber.join(making)).toBe("slow")
      expect(log).toEqual([])
      yield* Scope.close(held, Exit.void)
      expect(log).toEqual([])
      yield* keyed.closeIdle("a")
      yield* keyed.closeIdle("none")
      expect(log).toEqual(["closed a"])
    }))

  it.effect("gives back what a failed instance had acquired at once, though its callers stay", () =>
    Effect.gen(function*() {
      const log: Array<string> = []
      let fails = true
      const keyed = yield* makeKeyed({
        make: () =>
          Effect.gen(function*() {
            yield* Effect.addFinalizer(() => Effect.sync(() => void log.push("closed")))
            yield* turns
            if (fails) return yield* Effect.fail("no")
            return "yes"
          }),
        idleTime: "1 hour"
      })
      const scope = yield* Scope.make()
      const results = yield* Effect.all([Effect.exit(keyed.get("a")), Effect.exit(keyed.get("a"))], { concurrency: 2 })
        .pipe(Scope.provide(scope))
      expect(results).toEqual([Exit.fail("no"), Exit.fail("no")])
      expect(log).toEqual(["closed"])
      fails = false
      const [one, two] = yield* Effect.all([keyed.get("a"), keyed.get("a")], { concurrency: 2 }).pipe(
        Scope.provide(scope)
      )
      expect([one, two]).toEqual(["yes", "yes"])
      expect(log).toEqual(["closed"])
      yield* Scope.close(scope, Exit.void)
    }))

  it.effect("drops an instance that all who waited for have given up, and makes a new one", () =>
    Effect.gen(function*() {
      let made = 0
      const go = yield* Deferred.make<void>()
      const keyed = yield* makeKeyed({
        make: () =>
          Effect.gen(function*() {
            const number = ++made
            yield* Deferred.await(go)
            return number
          }),
        idleTime: "1 second"
      })
      const first = yield* Effect.forkChild(Effect.scoped(keyed.get("a")), { startImmediately: true })
      yield* turns
      yield* Fiber.interrupt(first)
      yield* TestClock.adjust("1 second")
      yield* Deferred.succeed(go, undefined)
      expect(yield* keyed.get("a")).toBeGreaterThan(0)
    }))

  it.effect("compares keys by what they hold", () =>
    Effect.gen(function*() {
      let made = 0
      const keyed = yield* makeKeyed({
        make: ({ id }: { readonly id: string }) => Effect.sync(() => `${id}${++made}`),
        idleTime: 0
      })
      const values = [yield* keyed.get({ id: "a" }), yield* keyed.get({ id: "a" }), yield* keyed.get({ id: "b" })]
      expect(values).toEqual(["a1", "a1", "b2"])
    }))
})
