import { expireSessions, type SessionStoreShape } from "@bezel/core/session"
import { describe, expect } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { both, here } from "./store-fixture.ts"

const ids = (store: SessionStoreShape) =>
  Effect.map(store.list({ limit: 100 }), ({ sessions }) => sessions.map(({ id }) => id).sort())

describe("sessions that are older than the setting keeps them", () => {
  both("are deleted with their children, and the others stay", (store, files) =>
    Effect.gen(function*() {
      const old = yield* store.create({ location: here })
      yield* store.create({ location: here, parentID: old.id })
      yield* Effect.scoped(files.write(old.id))
      yield* TestClock.adjust("10 days")
      const young = yield* store.create({ location: here })
      expect(yield* expireSessions(store, 7)).toEqual([old.id])
      expect(yield* ids(store)).toEqual([young.id])
      expect(yield* expireSessions(store, 7)).toEqual([])
      expect(yield* Effect.flip(files.read(old.id))).toMatchObject({ kind: "not_found" })
    }))

  both(
    "stay while one of their family is young, is at work, or is open somewhere",
    (store, files) =>
      Effect.gen(function*() {
        const parent = yield* store.create({ location: here })
        const working = yield* store.create({ location: here })
        yield* store.report(working.id, { status: "active" })
        const open = yield* store.create({ location: here })
        yield* TestClock.adjust("10 days")
        const child = yield* store.create({ location: here, parentID: parent.id })
        yield* Effect.scoped(Effect.gen(function*() {
          yield* files.write(open.id)
          expect(yield* expireSessions(store, 7)).toEqual([])
        }))
        expect(yield* ids(store)).toEqual([child.id, open.id, parent.id, working.id].sort())
        expect(yield* expireSessions(store, 7)).toEqual([open.id])
      })
  )

  both("stay until their time has come", (store) =>
    Effect.gen(function*() {
      const one = yield* store.create({ location: here })
      yield* TestClock.adjust("7 days")
      expect(yield* expireSessions(store, 7)).toEqual([])
      yield* TestClock.adjust("1 millis")
      expect(yield* expireSessions(store, 7)).toEqual([one.id])
    }))
})
