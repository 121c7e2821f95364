import {
  durableLog,
  isStateCell,
  MutableDurableEvents,
  MutableRemoteEvents,
  MutableRemoteState
} from "@bezel/core/service"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Schema, Stream } from "effect"

const Doc = Schema.Struct({ n: Schema.Int, list: Schema.Array(Schema.Struct({ id: Schema.String })), any: Schema.Json })

const doc = MutableRemoteState.make(Doc, { n: 0, list: [{ id: "a" }, { id: "b" }], any: null })

describe("MutableRemoteState", () => {
  it.effect("gives local readers the current value first, then every later one", () =>
    Effect.gen(function*() {
      const state = yield* doc
      const seen = yield* Effect.forkChild(
        Stream.runCollect(Stream.take(Stream.map(state.changes, (value) => value.n), 3))
      )
      yield* Effect.yieldNow
      for (const n of [1, 2]) {
        yield* state.update((draft) => {
          draft.n = n
        })
      }
      expect(yield* Fiber.join(seen)).toEqual([0, 1, 2])
      expect(yield* state.get).toBe(state.value)
    }))

  it.effect("keeps the identity of what an update did not touch", () =>
    Effect.gen(function*() {
      const state = yield* doc
      const before = state.value
      yield* state.update((draft) => {
        const second = draft.list[1]
        if (second !== undefined) second.id = "c"
      })
      expect(state.value.list[0]).toBe(before.list[0])
      expect(before.list[1]).toEqual({ id: "b" })
    }))

  it.effect("changes nothing when the callback of an update throws, and the draft is dead after it", () =>
    Effect.gen(function*() {
      const state = yield* doc
      const before = state.value
      let leaked: { n: number } | undefined
      const exit = yield* Effect.exit(state.update((draft) => {
        draft.n = 9
        leaked = draft
        throw new Error("second thoughts")
      }))
      expect(Exit.hasDies(exit)).toBe(true)
      expect(state.value).toBe(before)
      expect(state.sequence).toBe(0)
      expect(() => {
        if (leaked !== undefined) leaked.n = 10
      }).toThrow(/has ended/)
    }))

  it.effect("is detached from what it was given, however the schema treats it", () =>
    Effect.gen(function*() {
      const state = yield* doc
      const part = { deep: ["a"] }
      yield* state.set({ n: 1, list: [], any: part })
      part.deep.push("smuggled")
      expect(state.value.any).toEqual({ deep: ["a"] })
    }))

  it.effect("refuses a value that its schema refuses, in words that hold no value", () =>
    Effect.gen(function*() {
      const state = yield* doc
      for (const wrong of [{ n: 1.5, list: [], any: null }, { n: 1, list: [], any: Number.NaN }]) {
        const exit = yield* Effect.exit(state.set(wrong))
        expect(Exit.hasDies(exit)).toBe(true)
        expect(String(Exit.isFailure(exit) ? exit.cause : "")).not.toMatch(/1\.5|NaN/)
      }
      expect(state.sequence).toBe(0)
    }))

  it.effect("says that a state without containers has no draft", () =>
    Effect.gen(function*() {
      const state = yield* MutableRemoteState.make(Schema.Int, 1)
      const exit = yield* Effect.exit(state.update(() => {}))
      expect(String(Exit.isFailure(exit) ? exit.cause : "")).toContain("use `set`")
      yield* state.set(2)
      expect(state.value).toBe(2)
    }))

  it.effect("updates values that are not JSON through a copy", () =>
    Effect.gen(function*() {
      const state = yield* MutableRemoteState.make(
        Schema.Struct({ at: Schema.DateFromString, tags: Schema.Array(Schema.String) }),
        {
          at: new Date(0),
          tags: []
        }
      )
      const before = state.value
      yield* state.update((draft) => {
        draft.tags.push("new")
      })
      expect(state.value).toEqual({ at: new Date(0), tags: ["new"] })
      expect(before.tags).toEqual([])
      expect(state.sequence).toBe(1)
      const exit = yield* Effect.exit(state.publish([["set", ["tags"], []]]))
      expect(Exit.hasDies(exit)).toBe(true)
    }))

  it.effect("does not count a write that changes nothing", () =>
    Effect.gen(function*() {
      const state = yield* doc
      yield* state.set({ any: null, list: [{ id: "a" }, { id: "b" }], n: 0 })
      yield* state.update((draft) => {
        draft.n = 0
      })
      expect(state.sequence).toBe(0)
      expect(isStateCell(state)).toBe(true)
    }))

  it.effect("is followed by nobody once its readers are gone", () =>
    Effect.gen(function*() {
      const state = yield* MutableRemoteState.make(Schema.Int, 0)
      const kept = yield* MutableDurableEvents.make(Schema.String)
      const listeners = () => [isStateCell(state) ? state.feed.size : -1, durableLog(kept)?.feed.size]
      const readers = yield* Effect.forEach(
        [state.changes, kept.after(null)],
        (stream) => Effect.forkChild(Stream.runDrain<unknown, never, never>(stream), { startImmediately: true })
      )
      yield* Effect.yieldNow
      expect(listeners()).toEqual([1, 1])
      yield* Effect.forEach(readers, Fiber.interrupt)
      expect(listeners()).toEqual([0, 0])
    }))

  it.effect("a reader that never reads costs a bounded queue, and still ends at the newest value", () =>
    Effect.gen(function*() {
      const state = yield* MutableRemoteState.make(Schema.Int, 0)
      const seen: Array<number> = []
      const reader = yield* Effect.forkChild(
        state.forEach((value) =>
          Effect.andThen(Effect.sync(() => seen.push(value)), value === 0 ? Effect.yieldNow : Effect.void)
        )
      )
      yield* Effect.yieldNow
      for (let n = 1; n <= 5_000; n++) Effect.runSync(state.set(n))
      for (let turn = 0; turn < 5_000 && seen.at(-1) !== 5_000; turn++) yield* Effect.yieldNow
      expect(seen.at(-1)).toBe(5_000)
      expect(seen.length).toBeLessThan(2_000)
      yield* Fiber.interrupt(reader)
    }))
})

describe("MutableRemoteEvents", () => {
  it.effect("gives an event to whoever listens at that moment, and to nobody later", () =>
    Effect.gen(function*() {
      const events = yield* MutableRemoteEvents.make(Schema.Struct({ type: Schema.String }))
      yield* events.emit({ type: "before" })
      const seen = yield* Effect.forkChild(Stream.runCollect(Stream.take(events, 2)))
      yield* Effect.yieldNow
      yield* events.emit({ type: "one" })
      yield* events.emit({ type: "two" })
      expect(yield* Fiber.join(seen)).toEqual([{ type: "one" }, { type: "two" }])
    }))

  it.effect("refuses an event that its schema refuses", () =>
    Effect.gen(function*() {
      const events = yield* MutableRemoteEvents.make(Schema.Struct({ type: Schema.Literal("known") }))
      // @ts-expect-error: what a caller without types can do.
      expect(Exit.hasDies(yield* Effect.exit(events.emit({ type: "unknown" })))).toBe(true)
    }))
})
