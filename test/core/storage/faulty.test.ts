import { makeMemoryStorage, SessionStorage } from "@bezel/core/storage"
import { batchOf, faultyStorage, wrappedSessionFiles } from "@bezel/core/testing"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { entry } from "./batches.ts"

const one = (ordinal: number) => batchOf({ entries: [entry(ordinal)], nextID: ordinal + 1 })

describe("a storage that fails when told to", () => {
  it.effect("fails one commit without storing it, and goes on", () =>
    Effect.gen(function*() {
      const storage = faultyStorage(makeMemoryStorage(), { commit: 2 })
      expect(yield* storage.commit(one(1))).toBe(1)
      expect(yield* Effect.flip(storage.commit(one(2)))).toMatchObject({ kind: "io" })
      expect(yield* storage.sequence).toBe(1)
      expect(yield* storage.commit(one(3))).toBe(2)
      expect(storage.batches).toHaveLength(3)
    }))

  it.effect("may store the batch and lose only the acknowledgement", () =>
    Effect.gen(function*() {
      const storage = faultyStorage(makeMemoryStorage(), { commit: 1, when: "after" })
      expect(yield* Effect.flip(storage.commit(one(1)))).toMatchObject({ kind: "io" })
      expect(yield* storage.entry("e1")).toMatchObject({ id: "e1" })
    }))

  it.effect("may fail for ever, with the kind that was asked for", () =>
    Effect.gen(function*() {
      const storage = faultyStorage(makeMemoryStorage(), { commit: 1, forever: true, kind: "disk_full" })
      for (let ordinal = 1; ordinal < 4; ordinal++) {
        expect(yield* Effect.flip(storage.commit(one(ordinal)))).toMatchObject({ kind: "disk_full" })
      }
      expect(yield* storage.sequence).toBe(0)
    }))

  it.effect("can stand behind session files", () =>
    Effect.scoped(Effect.gen(function*() {
      const opened: Array<string> = []
      const files = wrappedSessionFiles(yield* SessionStorage, (storage, sessionID) => {
        opened.push(sessionID)
        return faultyStorage(storage, { commit: 1 })
      })
      const storage = yield* files.write("ses_1")
      expect(opened).toEqual(["ses_1"])
      expect(yield* Effect.flip(storage.commit(one(1)))).toMatchObject({ kind: "io" })
      expect(yield* (yield* files.read("ses_1")).sequence).toBe(0)
    })).pipe(Effect.provide(SessionStorage.layerMemory)))
})
