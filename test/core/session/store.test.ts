import { describe, expect } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import * as fs from "node:fs"
import * as path from "node:path"
import { DatabaseSync } from "node:sqlite"
import { batch, entry } from "../storage/batches.ts"
import {
  both,
  damageRecord,
  here,
  inDirectory,
  makeChildren,
  openOnce,
  say,
  storedRecord,
  there,
  titles,
  use
} from "./store-fixture.ts"

describe("a session's record", () => {
  both("is what was asked for, at rest, and found again", (store) =>
    Effect.gen(function*() {
      yield* TestClock.adjust("5 seconds")
      const parent = yield* store.create({ location: here })
      const record = yield* store.create({
        location: here,
        title: "one",
        parentID: parent.id,
        agent: "review",
        model: { provider: "p", model: "m" }
      })
      expect(record).toMatchObject({
        title: "one",
        location: here,
        parentID: parent.id,
        agent: "review",
        model: { provider: "p", model: "m" },
        status: "starting",
        createdAt: 5_000,
        updatedAt: 5_000,
        usage: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
        cost: 0,
        archived: false
      })
      expect(record.id).toMatch(/^ses_[0-9a-z]{24}$/)
      expect(yield* store.get(record.id)).toEqual(record)
    }))

  both("has an id that sorts by time of creation", (store) =>
    Effect.gen(function*() {
      const ids: Array<string> = []
      for (const pause of ["1 millis", "1 millis", "1 hours", "4000 days"] as const) {
        ids.push((yield* store.create({ location: here })).id)
        yield* TestClock.adjust(pause)
      }
      expect(ids).toEqual([...ids].sort())
      expect(new Set(ids).size).toBe(4)
    }))

  both("may be named by whoever creates it, once", (store) =>
    Effect.gen(function*() {
      yield* store.create({ location: here, id: "ses_mine" })
      expect(yield* Effect.flip(store.create({ location: there, id: "ses_mine" }))).toMatchObject({
        _tag: "SessionExists",
        sessionID: "ses_mine"
      })
      expect((yield* store.get("ses_mine")).location).toEqual(here)
    }))

  both("can be renamed, given another agent or model, archived and brought back", (store) =>
    Effect.gen(function*() {
      const { id } = yield* store.create({ location: here, title: "before" })
      yield* TestClock.adjust("1 seconds")
      yield* store.rename(id, "after \u2028 \ud800")
      yield* store.switchAgent(id, "plan")
      yield* store.switchModel(id, { provider: "p", model: "m" })
      yield* store.archive(id)
      expect(yield* store.get(id)).toMatchObject({
        title: "after \u2028 \ud800",
        agent: "plan",
        model: { provider: "p", model: "m" },
        archived: true,
        createdAt: 0,
        updatedAt: 1_000
      })
      yield* store.switchAgent(id, null)
      yield* store.switchModel(id, null)
      expect(yield* store.archive(id, false)).toMatchObject({ agent: null, model: null, archived: false })
    }))

  both("carries what its runtime reports", (store) =>
    Effect.gen(function*() {
      const { id } = yield* store.create({ location: here })
      yield* store.report(id, { status: "active" })
      const usage = { input: 10, output: 20, cacheRead: 3, cacheWrite: 4 }
      yield* store.report(id, { usage, cost: 0.25 })
      expect(yield* store.get(id)).toMatchObject({ status: "active", usage, cost: 0.25 })
    }))

  both(
    "that is not there is an `UnknownSession` that says what to do, to every call",
    (store) =>
      Effect.gen(function*() {
        const calls: ReadonlyArray<Effect.Effect<unknown, unknown>> = [
          store.get("nope"),
          store.rename("nope", "x"),
          store.switchAgent("nope", "x"),
          store.switchModel("nope", null),
          store.archive("nope"),
          store.report("nope", { status: "idle" }),
          store.messages("nope"),
          store.message("nope", "e1"),
          store.context("nope"),
          store.history("nope", 0),
          store.remove("nope"),
          store.create({ location: here, parentID: "nope" })
        ]
        for (const call of calls) {
          expect(yield* Effect.flip(call)).toMatchObject({
            _tag: "UnknownSession",
            sessionID: "nope",
            message: expect.stringContaining("bezel session list")
          })
        }
      })
  )

  inDirectory("is there for the next process, with the version that made it", (at) =>
    Effect.gen(function*() {
      let id = ""
      yield* use(at, (store) =>
        Effect.map(store.create({ location: here, title: "kept" }), (record) => void (id = record.id)))
      yield* use(at, (store) =>
        Effect.gen(function*() {
          expect(yield* store.get(id)).toMatchObject({ title: "kept", version: "1.2.3" })
        }))
      expect(fs.statSync(path.join(at, "catalogue.db")).mode & 0o777).toBe(0o600)
    }))
})

describe("listing sessions", () => {
  both("shows the newest activity first, whatever the clock says", (store) =>
    Effect.gen(function*() {
      const a = yield* store.create({ location: here, title: "a" })
      const b = yield* store.create({ location: here, title: "b" })
      yield* store.create({ location: here, title: "c" })
      expect(titles(yield* store.list())).toEqual(["c", "b", "a"])
      yield* TestClock.setTime(-600_000)
      yield* store.report(a.id, { status: "active" })
      expect(titles(yield* store.list())).toEqual(["a", "c", "b"])
      // Tidying up is no activity.
      yield* store.rename(b.id, "b2")
      yield* store.archive(b.id)
      expect(titles(yield* store.list())).toEqual(["a", "c", "b2"])
      expect((yield* store.get(a.id)).updatedAt).toBe(0)
    }))

  both("filters by location, parent, text and archived", (store) =>
    Effect.gen(function*() {
      const parent = yield* store.create({ location: here, title: "Grüße 100%_" })
      yield* store.create({ location: here, title: "child", parentID: parent.id })
      yield* store.create({ location: there, title: "elsewhere" })
      yield* store.create({ location: { ...here, workspaceID: "w" }, title: "workspace" })
      yield* store.archive((yield* store.create({ location: here, title: "old" })).id)
      expect(titles(yield* store.list({ location: here }))).toEqual(["old", "child", "Grüße 100%_"])
      expect(titles(yield* store.list({ location: { ...here, workspaceID: "w" } }))).toEqual(["workspace"])
      expect(titles(yield* store.list({ location: here, parentID: null, archived: false }))).toEqual(["Grüße 100%_"])
      expect(titles(yield* store.list({ parentID: parent.id }))).toEqual(["child"])
      expect(titles(yield* store.list({ archived: true }))).toEqual(["old"])
      expect(titles(yield* store.list({ text: "GRÜSSE" }))).toEqual([])
      expect(titles(yield* store.list({ text: "GRÜß" }))).toEqual(["Grüße 100%_"])
      expect(titles(yield* store.list({ text: "0%_" }))).toEqual(["Grüße 100%_"])
      expect(titles(yield* store.list({ text: "%" }))).toEqual(["Grüße 100%_"])
      expect(titles(yield* store.list({ text: "" }))).toHaveLength(5)
    }))

  both("pages by cursor, each session once, though others become active meanwhile", (store) =>
    Effect.gen(function*() {
      const made: Array<string> = []
      for (let index = 0; index < 25; index++) {
        made.push((yield* store.create({ location: here, title: `${index}` })).id)
      }
      const seen: Array<string> = []
      let cursor: string | null = null
      do {
        const page: Effect.Success<ReturnType<typeof store.list>> = yield* store.list({
          limit: 10,
          ...cursor === null ? {} : { cursor }
        })
        seen.push(...titles(page))
        cursor = page.cursor
        yield* store.report(made[24] ?? "", { status: "active" })
      } while (cursor !== null)
      expect(seen).toEqual(Array.from({ length: 25 }, (_, index) => `${24 - index}`))
    }))

  both("refuses a cursor that no page has given", (store) =>
    Effect.gen(function*() {
      for (const cursor of ["", "abc", "-1", "1e9", "99999999999999999999", "1 OR 1"]) {
        expect(yield* Effect.flip(store.list({ cursor }))).toMatchObject({ _tag: "InvalidCursor" })
      }
    }))

  both("bounds what a page may ask for", (store) =>
    Effect.gen(function*() {
      for (let index = 0; index < 3; index++) yield* store.create({ location: here })
      for (const limit of [0, -5, Number.NaN, 1.5]) {
        expect((yield* store.list({ limit })).sessions.length).toBeGreaterThan(0)
      }
      expect((yield* store.list({ limit: 1 })).sessions).toHaveLength(1)
    }))

  inDirectory("reads records only: it opens no session", (at) =>
    use(at, (store, files) =>
      Effect.gen(function*() {
        const { id } = yield* store.create({ location: here, title: "one" })
        yield* Effect.scoped(
          Effect.flatMap(files.write(id), (storage) => storage.commit(batch({ entries: [entry(1)] })))
        )
        fs.writeFileSync(path.join(at, "sessions", id, "session.db"), "damaged")
        expect(titles(yield* store.list())).toEqual(["one"])
        expect(yield* Effect.flip(store.messages(id))).toMatchObject({ _tag: "StorageError", kind: "corrupt" })
      })))
})

describe("reading a session", () => {
  both("that nobody has written yet finds it empty", (store) =>
    Effect.gen(function*() {
      const { id } = yield* store.create({ location: here })
      expect(yield* store.messages(id)).toEqual({ messages: [], cursor: null })
      expect(yield* store.context(id)).toEqual([])
      expect(yield* store.history(id, 0)).toEqual([])
      expect(yield* Effect.flip(store.message(id, "e1"))).toMatchObject({
        _tag: "UnknownMessage",
        sessionID: id,
        messageID: "e1"
      })
    }))

  both("goes on beside its writer", (store, files) =>
    Effect.gen(function*() {
      const { id } = yield* store.create({ location: here })
      const storage = yield* files.write(id)
      yield* storage.commit(
        batch({
          entries: [entry(1, { model: say("hello"), data: { x: 1 } })],
          events: [{ type: "entry.added" }],
          at: 9
        })
      )
      const expected = {
        id: "e1",
        conversationID: "c1",
        kind: "user",
        data: { x: 1 },
        model: say("hello"),
        createdAt: 1_000
      }
      expect(yield* store.messages(id)).toEqual({ messages: [expected], cursor: null })
      expect(yield* store.message(id, "e1")).toEqual(expected)
      expect(yield* store.context(id)).toEqual(say("hello"))
      expect(yield* store.history(id, 0)).toEqual([{ sequence: 1, at: 9, events: [{ type: "entry.added" }] }])
    }))

  both("pages messages from the end, each page oldest first", (store, files) =>
    Effect.gen(function*() {
      const { id } = yield* store.create({ location: here })
      yield* Effect.scoped(Effect.flatMap(files.write(id), (storage) =>
        storage.commit(batch({
          entries: Array.from(
            { length: 250 },
            (_, index) => entry(index + 1, { conversation: index === 100 ? "c2" : "c1" })
          )
        }))))
      const last = yield* store.messages(id)
      expect(last.messages.map((message) => message.id)).toEqual(
        Array.from({ length: 100 }, (_, index) => `e${151 + index}`)
      )
      const middle = yield* store.messages(id, { limit: 149, cursor: last.cursor ?? "" })
      expect(middle.messages.map((message) => message.id)).toEqual(
        Array.from({ length: 150 }, (_, index) => `e${1 + index}`).filter((entryID) => entryID !== "e101")
      )
      expect(middle.cursor).toBeNull()
      expect((yield* store.messages(id, { conversationID: "c2" })).messages.map((message) => message.id)).toEqual([
        "e101"
      ])
      expect(yield* Effect.flip(store.messages(id, { cursor: "x" }))).toMatchObject({ _tag: "InvalidCursor" })
    }))

  both("ends a page at about a mebibyte, and always moves on", (store, files) =>
    Effect.gen(function*() {
      const { id } = yield* store.create({ location: here })
      yield* Effect.scoped(Effect.flatMap(files.write(id), (storage) =>
        storage.commit(batch({
          entries: Array.from({ length: 36 }, (_, index) => entry(index + 1, { data: "x".repeat(300_000) }))
        }))))
      const seen: Array<string> = []
      let cursor: string | null = null
      let pages = 0
      do {
        const page: Effect.Success<ReturnType<typeof store.messages>> = yield* store.messages(
          id,
          cursor === null ? {} : { cursor }
        )
        expect(page.messages.length).toBeLessThanOrEqual(4)
        seen.unshift(...page.messages.map((message) => message.id))
        cursor = page.cursor
        pages++
      } while (cursor !== null)
      expect(seen).toEqual(Array.from({ length: 36 }, (_, index) => `e${index + 1}`))
      expect(pages).toBe(9)
    }))

  both("gives the context that the model would see: from the newest head on", (store, files) =>
    Effect.gen(function*() {
      const { id } = yield* store.create({ location: here })
      yield* Effect.scoped(Effect.flatMap(files.write(id), (storage) =>
        storage.commit(batch({
          conversations: [{ id: "c1", parent: null, owner: null, createdAt: 0 }],
          entries: [
            entry(1, { model: say("one") }),
            entry(2, { model: say("two") }),
            entry(3, { model: say("summary"), head: { after: "e1" } }),
            entry(4, { model: null }),
            entry(5, { model: say("five") })
          ]
        }))))
      expect(yield* store.context(id)).toEqual([...say("summary"), ...say("two"), ...say("five")])
    }))

  both("gives a fork what it inherits, up to where it was forked", (store, files) =>
    Effect.gen(function*() {
      const { id } = yield* store.create({ location: here })
      yield* Effect.scoped(Effect.flatMap(files.write(id), (storage) =>
        storage.commit(batch({
          conversations: [
            { id: "c1", parent: null, owner: null, createdAt: 0 },
            { id: "c2", parent: { conversation: "c1", at: "e2" }, owner: null, createdAt: 0 },
            { id: "c3", parent: { conversation: "c2", at: "e1" }, owner: null, createdAt: 0 },
            { id: "c4", parent: { conversation: "c1", at: null }, owner: null, createdAt: 0 }
          ],
          entries: [
            entry(1, { model: say("one") }),
            entry(2, { model: say("two") }),
            entry(3, { model: say("three") }),
            entry(4, { conversation: "c2", model: say("fork") }),
            entry(5, { conversation: "c3", model: say("fork of the fork") }),
            entry(6, { conversation: "c4", model: say("alone") })
          ]
        }))))
      expect(yield* store.context(id, "c2")).toEqual([...say("one"), ...say("two"), ...say("fork")])
      expect(yield* store.context(id, "c3")).toEqual([...say("one"), ...say("fork of the fork")])
      expect(yield* store.context(id, "c4")).toEqual(say("alone"))
    }))
})

describe("removing a session", () => {
  inDirectory(
    "deletes all that is kept of it, and its children with it",
    (at) =>
      use(at, (store, files) =>
        Effect.gen(function*() {
          const parent = yield* store.create({ location: here, title: "parent" })
          const child = yield* store.create({ location: here, title: "child", parentID: parent.id })
          const grandchild = yield* store.create({ location: here, title: "grandchild", parentID: child.id })
          const other = yield* store.create({ location: here, title: "other" })
          for (const { id } of [parent, grandchild, other]) {
            yield* Effect.scoped(Effect.flatMap(files.write(id), (storage) => storage.commit(batch({}))))
          }
          yield* store.remove(parent.id)
          expect(titles(yield* store.list())).toEqual(["other"])
          expect(fs.readdirSync(path.join(at, "sessions"))).toEqual([other.id])
        }))
  )

  both(
    "is refused while it, or a child of it, is in use, and then nothing of the one in use is gone",
    (store, files) =>
      Effect.gen(function*() {
        const parent = yield* store.create({ location: here, title: "parent" })
        const child = yield* store.create({ location: here, title: "child", parentID: parent.id })
        const storage = yield* files.write(child.id)
        yield* storage.commit(batch({ entries: [entry(1)] }))
        expect(yield* Effect.flip(store.remove(parent.id))).toMatchObject({ _tag: "SessionInUse", sessionID: child.id })
        expect(titles(yield* store.list())).toEqual(["child", "parent"])
        expect((yield* store.messages(child.id)).messages).toHaveLength(1)
      })
  )
})

describe("one catalogue", () => {
  inDirectory(
    "may be used by many processes at once, and loses nothing",
    (at) =>
      use(at, (store) =>
        Effect.gen(function*() {
          const shared = yield* store.create({ location: here, title: "0" })
          const run = makeChildren(at, shared.id, 100)
          expect(yield* Effect.all([run, run, run], { concurrency: "unbounded" })).toEqual([0, 0, 0])
          expect((yield* store.list({ parentID: shared.id, limit: 1_000 })).sessions).toHaveLength(300)
        }))
  )

  inDirectory("of a newer Bezel is refused by name", (at) =>
    Effect.gen(function*() {
      yield* use(at, (store) => Effect.asVoid(store.create({ location: here })))
      const database = new DatabaseSync(path.join(at, "catalogue.db"))
      database.exec("PRAGMA user_version = 9")
      database.close()
      const error = yield* Effect.flip(use(at, () => Effect.void))
      expect(error).toMatchObject({
        kind: "newer_version",
        message: expect.stringMatching(/catalogue\.db: this file has format 9.*upgrade/)
      })
    }))

  inDirectory("with a damaged record takes it from the session's folder", (at) =>
    Effect.gen(function*() {
      yield* use(at, (store, files) =>
        Effect.gen(function*() {
          yield* store.create({ location: here, id: "ses_bad", title: "kept" })
          yield* openOnce(store, files, "ses_bad")
        }))
      damageRecord(at)
      yield* use(at, (store) =>
        Effect.gen(function*() {
          expect((yield* store.get("ses_bad")).title).toBe("kept")
          expect(titles(yield* store.list())).toEqual(["kept"])
          yield* store.rename("ses_bad", "whole")
          expect(storedRecord(at)).toContain("whole")
        }))
    }))

  inDirectory(
    "with a record that is damaged everywhere names it, and the others are still found by id",
    (at) =>
      Effect.gen(function*() {
        yield* use(at, (store, files) =>
          Effect.gen(function*() {
            yield* store.create({ location: here, id: "ses_good" })
            yield* store.create({ location: here, id: "ses_bad" })
            yield* openOnce(store, files, "ses_bad")
          }))
        damageRecord(at)
        fs.writeFileSync(path.join(at, "sessions/ses_bad/record.json"), "{")
        yield* use(at, (store) =>
          Effect.gen(function*() {
            expect(yield* Effect.flip(store.get("ses_bad"))).toMatchObject({
              kind: "corrupt",
              message: expect.stringContaining("ses_bad")
            })
            expect((yield* store.get("ses_good")).id).toBe("ses_good")
            expect((yield* store.list()).sessions.map((session) => session.id)).toEqual(["ses_good"])
            yield* store.remove("ses_bad")
            expect(yield* Effect.flip(store.get("ses_bad"))).toMatchObject({ _tag: "UnknownSession" })
          }))
      })
  )
})
