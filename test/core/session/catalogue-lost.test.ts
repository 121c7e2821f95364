import { describe, expect } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import * as fs from "node:fs"
import * as path from "node:path"
import { DatabaseSync } from "node:sqlite"
import { here, inDirectory, makeChildren, openOnce, there, titles, use, withDatabase } from "./store-fixture.ts"

/** Three sessions that have been opened, one of them renamed and the oldest worked in last. */
const threeSessions = (at: string) =>
  use(at, (store, files) =>
    Effect.gen(function*() {
      const usage = { input: 1, output: 2, cacheRead: 0, cacheWrite: 0 }
      for (const title of ["one", "two", "three"]) {
        yield* TestClock.adjust("1 seconds")
        yield* store.create({ location: here, id: `ses_${title}`, title })
        yield* openOnce(store, files, `ses_${title}`)
      }
      yield* TestClock.adjust("1 seconds")
      yield* store.rename("ses_two", "second")
      yield* TestClock.adjust("1 seconds")
      yield* store.report("ses_one", { status: "idle", usage, cost: 3 })
    }))

const thoseThree = ["one", "second", "three"]

describe("a catalogue that is lost", () => {
  inDirectory("is made anew from the sessions' folders", (at) =>
    Effect.gen(function*() {
      yield* threeSessions(at)
      fs.rmSync(path.join(at, "catalogue.db"))
      yield* use(at, (store) =>
        Effect.gen(function*() {
          expect(titles(yield* store.list())).toEqual(thoseThree)
          expect(yield* store.get("ses_one")).toMatchObject({ title: "one", cost: 3, usage: { output: 2 } })
        }))
      expect(fs.statSync(path.join(at, "sessions/ses_one/record.json")).mode & 0o777).toBe(0o600)
    }))

  inDirectory(
    "costs the sessions that nobody has opened yet, which hold nothing, and none else",
    (at) =>
      Effect.gen(function*() {
        yield* threeSessions(at)
        yield* use(at, (store) => Effect.asVoid(store.create({ location: here, id: "ses_new", title: "new" })))
        expect(fs.existsSync(path.join(at, "sessions/ses_new"))).toBe(false)
        fs.rmSync(path.join(at, "catalogue.db"))
        yield* use(at, (store) =>
          Effect.gen(function*() {
            expect(titles(yield* store.list())).toEqual(thoseThree)
          }))
      })
  )

  inDirectory(
    "while it is in use, with or without the files beside it, is made anew too",
    (at) =>
      Effect.gen(function*() {
        yield* threeSessions(at)
        yield* use(at, (store) =>
          Effect.gen(function*() {
            for (const parts of [["", "-wal", "-shm"], [""]]) {
              yield* store.rename("ses_three", "three")
              for (const part of parts) fs.rmSync(path.join(at, `catalogue.db${part}`))
              yield* use(at, (other) => Effect.asVoid(other.rename("ses_three", "third")))
              expect(titles(yield* store.list())).toEqual(expect.arrayContaining(["one", "second", "third"]))
            }
          }))
      })
  )

  inDirectory("to damage is set aside and made anew", (at) =>
    Effect.gen(function*() {
      const damages: ReadonlyArray<(file: string) => void> = [
        (file) => fs.writeFileSync(file, "not a database at all, but long enough to be looked at".repeat(100)),
        (file) => fs.truncateSync(file, 5_000),
        (file) => fs.truncateSync(file, 0),
        (file) => {
          const bytes = fs.readFileSync(file)
          fs.writeFileSync(file, bytes.fill(0x55, 4_096))
        },
        (file) => {
          fs.rmSync(file)
          new DatabaseSync(file).exec("CREATE TABLE somebody_elses (x)")
        }
      ]
      yield* threeSessions(at)
      for (const damage of damages) {
        damage(path.join(at, "catalogue.db"))
        yield* use(at, (store) =>
          Effect.gen(function*() {
            expect(titles(yield* store.list())).toEqual(thoseThree)
          }))
      }
      expect(fs.readdirSync(at).filter((name) => /^catalogue\.db\.damaged-[^-]*-[^-]*-[^-]*$/.test(name))).toHaveLength(
        4
      )
    }))

  inDirectory("to damage while it is in use is made anew too", (at) =>
    Effect.gen(function*() {
      yield* threeSessions(at)
      yield* use(at, (store) =>
        Effect.gen(function*() {
          const file = fs.openSync(path.join(at, "catalogue.db"), "r+")
          fs.writeSync(file, Buffer.alloc(fs.fstatSync(file).size - 100, 0x55), 0, undefined, 100)
          fs.closeSync(file)
          expect(titles(yield* store.list())).toEqual(thoseThree)
          yield* store.rename("ses_one", "first")
          expect((yield* store.get("ses_one")).title).toBe("first")
        }))
    }))

  inDirectory(
    "of an earlier version has put its records into the sessions' folders before",
    (at) =>
      Effect.gen(function*() {
        yield* threeSessions(at)
        for (const id of ["one", "two", "three"]) fs.rmSync(path.join(at, `sessions/ses_${id}/record.json`))
        withDatabase(at, (database) => database.exec("PRAGMA user_version = 1"))
        yield* use(at, () => Effect.void)
        fs.rmSync(path.join(at, "catalogue.db"))
        yield* use(at, (store) =>
          Effect.gen(function*() {
            expect(titles(yield* store.list())).toEqual(thoseThree)
          }))
      })
  )

  inDirectory("costs no session that is asked for by its id", (at) =>
    Effect.gen(function*() {
      yield* threeSessions(at)
      withDatabase(at, (database) => database.exec("DELETE FROM sessions"))
      yield* use(at, (store) =>
        Effect.gen(function*() {
          expect((yield* store.get("ses_two")).title).toBe("second")
          expect(yield* Effect.flip(store.create({ location: there, id: "ses_one" }))).toMatchObject({
            _tag: "SessionExists"
          })
          yield* store.remove("ses_three")
          expect(yield* Effect.flip(store.get("ses_three"))).toMatchObject({ _tag: "UnknownSession" })
        }))
    }))

  inDirectory("is made anew once by many processes at once", (at) =>
    Effect.gen(function*() {
      yield* threeSessions(at)
      fs.writeFileSync(path.join(at, "catalogue.db"), "x".repeat(10_000))
      yield* Effect.all([1, 2, 3].map(() => makeChildren(at, "ses_one", 10)), { concurrency: "unbounded" })
      yield* use(at, (store) =>
        Effect.gen(function*() {
          expect((yield* store.list({ parentID: "ses_one" })).sessions).toHaveLength(30)
          expect(fs.readdirSync(at).filter((name) => /damaged-.*Z$/.test(name))).toHaveLength(1)
        }))
    }))
})
