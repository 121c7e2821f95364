import {
  LocalService,
  MutableRemoteState,
  observeInstances,
  RegistrationError,
  RemoteService,
  ServiceDirectory
} from "@bezel/core/service"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Exit, Logger, Schema, Scope } from "effect"
import { eventually } from "../../eventually.ts"

class Greeter extends RemoteService.make("test.greeter")({ methods: { greet: { success: Schema.String } } }) {}
class Counter extends RemoteService.make("test.counter")({ state: { count: Schema.Int } }) {}
const Vault = LocalService.make<{ readonly open: () => string }>("test.vault")

const greeter = (name: string) => ({ greet: () => Effect.succeed(name) })

describe("ServiceDirectory", () => {
  it.effect("refuses a second provider of an id, by both names", () =>
    Effect.gen(function*() {
      const directory = yield* ServiceDirectory.make
      yield* directory.provide(Greeter, greeter("a"), { owner: "acme.one" })
      const error = yield* Effect.flip(Effect.scoped(directory.provide(Greeter, greeter("b"), { owner: "acme.two" })))
      expect(error).toBeInstanceOf(RegistrationError)
      expect(error).toMatchObject({ reason: "duplicate", service: "test.greeter" })
      expect(error.message).toBe(
        `Service "test.greeter" is provided twice: by plugin "acme.one" and by plugin "acme.two". Remove one of them from the manifest.`
      )
      expect(yield* (yield* directory.use(Greeter)).greet()).toBe("a")
    }))

  it.effect("refuses an id that is local to one and remote to another", () =>
    Effect.gen(function*() {
      const directory = yield* ServiceDirectory.make
      class Thief extends RemoteService.make("test.vault")({ methods: {} }) {}
      yield* directory.provideLocal(Vault, { open: () => "gold" }, { owner: "acme.bank" })
      const error = yield* Effect.flip(Effect.scoped(directory.provide(Thief, {}, { owner: "acme.thief" })))
      expect(error.message).toContain(`by plugin "acme.bank" and by plugin "acme.thief"`)
      const other = yield* Effect.flip(Effect.scoped(directory.provideLocal(Vault, { open: () => "" })))
      expect(other.message).toContain('by plugin "acme.bank" and by the host')
    }))

  it.effect("gives the implementation itself, for as long as its scope is open", () =>
    Effect.gen(function*() {
      const directory = yield* ServiceDirectory.make
      const scope = yield* Scope.make()
      const implementation = greeter("a")
      yield* Scope.provide(directory.provide(Greeter, implementation), scope)
      expect(yield* directory.use(Greeter)).toBe(implementation)
      yield* Scope.close(scope, Exit.void)
      expect(yield* Effect.flip(directory.use(Greeter))).toMatchObject({
        code: "unavailable",
        message: `Nobody provides service "test.greeter" at the moment.`
      })
      expect(yield* Effect.flip(directory.useLocal(Vault))).toMatchObject({ code: "unavailable" })
    }))

  it.effect("tells instances of sessions and keys apart", () =>
    Effect.gen(function*() {
      const directory = yield* ServiceDirectory.make
      yield* directory.provide(Greeter, greeter("one"), { session: "one" })
      yield* directory.provide(Greeter, greeter("two"), { session: "two" })
      yield* directory.provide(Greeter, greeter("key"), { key: "key" })
      const name = (placement: { readonly session?: string; readonly key?: string }) =>
        Effect.flatMap(directory.use(Greeter, placement), (found) => found.greet())
      expect(yield* name({ session: "one" })).toBe("one")
      expect(yield* name({ session: "two" })).toBe("two")
      expect(yield* name({ key: "key" })).toBe("key")
      expect(yield* Effect.flip(name({}))).toMatchObject({ code: "unavailable" })
      expect(yield* Effect.flip(name({ session: "one", key: "other" }))).toMatchObject({ code: "unavailable" })
    }))

  it.effect("says which member an implementation lacks", () =>
    Effect.gen(function*() {
      const directory = yield* ServiceDirectory.make
      // @ts-expect-error: what a plugin without types can give.
      const noMethod = yield* Effect.flip(Effect.scoped(directory.provide(Greeter, {}, { owner: "acme" })))
      expect(noMethod).toMatchObject({
        reason: "incomplete",
        message: `The implementation of service "test.greeter" by plugin "acme" needs a method named "greet".`
      })
      // @ts-expect-error: a value where a state belongs.
      const noState = yield* Effect.flip(Effect.scoped(directory.provide(Counter, { count: 1 }, { owner: "acme" })))
      expect(noState.message).toContain(`needs a state (from ctx.state) named "count"`)
      yield* directory.provide(Counter, { count: yield* MutableRemoteState.make(Schema.Int, 0) })
    }))

  it.effect("hands an instance over in one step, and what nobody takes over is gone in the end", () =>
    Effect.gen(function*() {
      const directory = yield* ServiceDirectory.make
      const old = yield* Scope.make()
      const instance = yield* Scope.provide(directory.provide(Greeter, greeter("old")), old)
      const lost = yield* Scope.provide(directory.provide(Greeter, greeter("lost"), { key: "lost" }), old)
      const seen: Array<ReadonlyArray<boolean>> = []
      const isThere = (key: string | null) =>
        directory.lookup({ service: Greeter.id, key, session: null }) !== undefined
      directory.watch(() => {
        seen.push([isThere(null), isThere("lost")])
      })
      const next = yield* directory.handOver(
        () => true,
        Effect.andThen(Scope.close(old, Exit.void), directory.provide(Greeter, greeter("new")))
      )
      expect(yield* (yield* directory.use(Greeter)).greet()).toBe("new")
      expect(next.generation).toBeGreaterThan(instance.generation)
      expect([instance, lost].map(({ closed }) => closed.isOpen())).toEqual([true, true])
      expect(seen).toEqual([[true, true], [true, false]])
    }))

  it.effect("leaves calls under way alone where what stands behind an instance outlives it", () =>
    Effect.gen(function*() {
      const directory = yield* ServiceDirectory.make
      const old = yield* Scope.make()
      const placement = { session: "s", isEnduring: true }
      const before = yield* Scope.provide(directory.provide(Greeter, greeter("old"), placement), old)
      const after = yield* Scope.make()
      yield* directory.handOver(
        () => true,
        Effect.andThen(
          Scope.close(old, Exit.void),
          Scope.provide(directory.provide(Greeter, greeter("new"), placement), after)
        )
      )
      expect(before.closed.isOpen()).toBe(false)
      yield* Scope.close(after, Exit.void)
      expect(before.closed.isOpen()).toBe(true)
    }))

  it.effect("says of a service that was declared for sessions that it is one, whoever provides it", () =>
    Effect.gen(function*() {
      const directory = yield* ServiceDirectory.make
      yield* directory.declare(Greeter, { perSession: true })
      yield* directory.provide(Greeter, greeter("of all"))
      expect(directory.declared(Greeter.id)?.perSession).toBe(true)
    }))

  it.effect("tells an instance of the host from one of a session by its number where both have one key", () =>
    Effect.gen(function*() {
      const directory = yield* ServiceDirectory.make
      const all = yield* directory.provide(Greeter, greeter("all"), { key: "a" })
      const one = yield* directory.provide(Greeter, greeter("one"), { key: "a", session: "s" })
      const at = { service: Greeter.id, key: "a", session: "s" }
      expect(directory.lookup(at)).toBe(all)
      expect([all, one].map(({ generation }) => directory.lookup({ ...at, generation }))).toEqual([all, one])
      expect(directory.lookup({ ...at, session: null, generation: one.generation })).toBeUndefined()
      expect(directory.lookup({ ...at, generation: 99 })).toBeUndefined()
    }))

  it.effect("is watched by nobody once its observers are gone, and one that fails is told in the log", () => {
    const logged: Array<string> = []
    const logger = Logger.make((entry) => {
      logged.push(Logger.formatJson.log(entry))
    })
    return Effect.gen(function*() {
      const directory = yield* ServiceDirectory.make
      let watchers = 0
      const counting = {
        ...directory,
        watch: (listener: () => void) => {
          const unwatch = directory.watch(listener)
          watchers++
          return () => {
            watchers--
            unwatch()
          }
        }
      }
      const scope = yield* Scope.make()
      const seen: Array<string> = []
      yield* Scope.provide(
        observeInstances(counting, Greeter, (_, key) => {
          seen.push(key)
          return Effect.die(new Error("no place for it"))
        }),
        scope
      )
      yield* directory.provide(Greeter, greeter("a"), { key: "a" })
      yield* eventually(() => seen.length === 1)
      yield* directory.provide(Greeter, greeter("b"), { key: "b" })
      yield* eventually(() => seen.length === 2)
      expect(watchers).toBe(1)
      yield* Scope.close(scope, Exit.void)
      expect(watchers).toBe(0)
      expect(logged.join("\n")).toMatch(/An observer of service \\?"test.greeter\\?" failed for \\?"a\\?".*no place/s)
    }).pipe(Effect.provide(Logger.layer([logger])))
  })
})
