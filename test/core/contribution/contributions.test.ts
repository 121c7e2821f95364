import { Contribution } from "@bezel/core/contribution"
import type { ContributionFault, Contributor } from "@bezel/core/contribution"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Scope, Stream } from "effect"

interface Draft {
  readonly set: (name: string, value: string) => void
  readonly wrap: (name: string, wrap: (inner: string) => string) => void
  readonly remove: (name: string) => void
}

const plugin = (name: string, order: number): Contributor => ({ plugin: name, version: "1.0.0", order })

/** A fold of named texts; what is named `invalid` does not finish. */
const makeFold = Effect.gen(function*() {
  const told: Array<ContributionFault> = []
  let rebuilds = 0
  const fold = yield* Contribution.make<Map<string, string>, Draft, Readonly<Record<string, string>>>({
    name: "texts",
    empty: () => {
      rebuilds++
      return new Map()
    },
    draft: (state) => ({
      set: (name, value) => state.set(name, value),
      wrap: (name, wrap) => {
        const inner = state.get(name)
        if (inner === undefined) throw new Error(`there is no text "${name}"`)
        state.set(name, wrap(inner))
      },
      remove: (name) => state.delete(name)
    }),
    finish: (state) => {
      if (state.has("invalid")) throw new Error("a text may not be called invalid")
      return Object.fromEntries(state)
    },
    onFault: (fault) => told.push(fault)
  })
  return { ...fold, told, rebuilds: () => rebuilds }
})

describe("Contributions", () => {
  it.effect("replays in manifest order, then in order of registration, whatever comes first in time", () =>
    Effect.gen(function*() {
      const fold = yield* makeFold
      yield* fold.transform(plugin("telemetry", 3), (draft) => draft.wrap("bash", (inner) => `telemetry(${inner})`))
      yield* fold.transform(plugin("sandbox", 1), (draft) => draft.wrap("bash", (inner) => `sandbox(${inner})`))
      const permission = yield* fold.transform(
        plugin("permission", 2),
        (draft) => draft.wrap("bash", (inner) => `permission(${inner})`)
      )
      yield* fold.transform(plugin("tools", 0), (draft) => draft.set("bash", "bash"))
      yield* fold.transform(plugin("tools", 0), (draft) => draft.wrap("bash", (inner) => `logged(${inner})`))
      expect(yield* fold.current).toEqual({ bash: "telemetry(permission(sandbox(logged(bash))))" })
      yield* permission.unregister
      yield* permission.unregister
      expect(yield* fold.current).toEqual({ bash: "telemetry(sandbox(logged(bash)))" })
      yield* fold.reload
      expect(yield* fold.current).toEqual({ bash: "telemetry(sandbox(logged(bash)))" })
    }))

  it.effect("takes only the transform out that throws, with what it had half done, and tries it again", () =>
    Effect.gen(function*() {
      const fold = yield* makeFold
      yield* fold.transform(plugin("bad", 0), (draft) => {
        draft.set("half", "done")
        draft.wrap("later", (inner) => `<${inner}>`)
      })
      yield* fold.transform(plugin("good", 1), (draft) => draft.set("good", "1"))
      expect(yield* fold.current).toEqual({ good: "1" })
      const message = 'A transform of texts by plugin bad failed and is left out: there is no text "later"'
      expect((yield* fold.faults).map((fault) => fault.message)).toEqual([message])
      yield* fold.reload
      yield* fold.current
      expect(fold.told.map((fault) => fault.message)).toEqual([message])
      yield* fold.transform(plugin("earlier", -1), (draft) => draft.set("later", "x"))
      expect(yield* fold.current).toEqual({ later: "<x>", half: "done", good: "1" })
      expect(yield* fold.faults).toEqual([])
    }))

  it.effect("keeps the last good result while a rebuild does not finish", () =>
    Effect.gen(function*() {
      const fold = yield* makeFold
      yield* fold.transform(plugin("a", 0), (draft) => draft.set("a", "1"))
      const before = yield* fold.current
      const broken = yield* fold.transform(plugin("b", 1), (draft) => draft.set("invalid", "2"))
      expect(yield* fold.current).toBe(before)
      expect(fold.told.map(({ message, plugin }) => [plugin, message])).toEqual([
        [null, "The texts could not be rebuilt, so the last good ones stay: a text may not be called invalid"]
      ])
      yield* broken.unregister
      expect(yield* fold.current).toEqual({ a: "1" })
    }))

  it.effect("makes one rebuild of a hundred registrations", () =>
    Effect.gen(function*() {
      const fold = yield* makeFold
      for (let index = 0; index < 100; index++) {
        yield* fold.transform(plugin("a", 0), (draft) => draft.set(`t${index}`, ""))
      }
      yield* fold.current
      yield* fold.current
      expect([fold.rebuilds(), yield* fold.revision]).toEqual([1, 1])
    }))

  it.effect("refuses a draft that is used after its transform has returned", () =>
    Effect.gen(function*() {
      const fold = yield* makeFold
      const kept: Array<Draft> = []
      yield* fold.transform(plugin("a", 0), (draft) => void kept.push(draft))
      yield* fold.current
      expect(() => kept[0]?.set("late", "x")).toThrow(
        "A draft of texts was used after its transform had returned. Call reload instead."
      )
      expect(yield* fold.current).toEqual({})
    }))

  it.effect("refuses a transform that is asynchronous", () =>
    Effect.gen(function*() {
      const fold = yield* makeFold
      yield* fold.transform(plugin("a", 0), async (draft) => draft.set("a", "1"))
      expect(yield* fold.current).toEqual({})
      expect(fold.told[0]?.message).toContain("it is asynchronous")
    }))

  it.effect("takes a transform out when its scope closes", () =>
    Effect.gen(function*() {
      const fold = yield* makeFold
      const scope = yield* Scope.make()
      yield* fold.transform(plugin("a", 0), (draft) => draft.set("a", "1")).pipe(Scope.provide(scope))
      expect(yield* fold.current).toEqual({ a: "1" })
      yield* Scope.close(scope, Exit.void)
      expect(yield* fold.current).toEqual({})
    }))

  it.effect("gives the current result first, and one that many changed in one step as one", () =>
    Effect.gen(function*() {
      const fold = yield* makeFold
      yield* fold.transform(plugin("a", 0), (draft) => draft.set("a", "1"))
      const reading = yield* Effect.forkChild(Stream.runCollect(Stream.take(fold.changes, 2)), {
        startImmediately: true
      })
      yield* Effect.yieldNow
      yield* fold.replace({
        remove: [],
        add: [
          { contributor: plugin("b", 1), change: (draft) => draft.set("b", "2") },
          { contributor: plugin("c", 2), change: (draft) => draft.set("c", "3") }
        ]
      })
      expect(Array.from(yield* Fiber.join(reading))).toEqual([{ a: "1" }, { a: "1", b: "2", c: "3" }])
    }))
})
