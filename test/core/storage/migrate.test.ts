import { isJsonObject, type JsonValue } from "@bezel/core/json"
import {
  type Format,
  jsonlFormat,
  openJsonl,
  openJsonlReader,
  openSqlite,
  openSqliteReader,
  SessionStorage,
  sqliteFormat,
  type StoredSort
} from "@bezel/core/storage"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import * as fs from "node:fs"
import { DatabaseSync } from "node:sqlite"
import { batch, entry, input, task } from "./batches.ts"
import { changeLine, databaseIn, journalIn, segmentIn, sessionFolder } from "./damage.ts"
import { writeVersion1 } from "./session-v1.ts"

const withFolder = <A, E>(body: (folder: string) => Effect.Effect<A, E>) =>
  Effect.scoped(Effect.flatMap(sessionFolder, body))

/** The format after today's: entries say in a member of their own how long their data is. */
const value = (sort: StoredSort, stored: JsonValue): JsonValue => {
  if (sort === "entry" && isJsonObject(stored)) {
    if (stored.data === "cannot be taken over") throw new Error("this entry has no length")
    return { ...stored, dataLength: String(stored.data).length }
  }
  if (sort === "base" && isJsonObject(stored)) return { ...stored, version: 2 }
  return stored
}

const schema = "ALTER TABLE entries ADD COLUMN length INTEGER NOT NULL DEFAULT 0"

const now = { sqlite: sqliteFormat.version, jsonl: jsonlFormat.version }

const laterSqlite: Format = {
  ...sqliteFormat,
  version: now.sqlite + 1,
  migrations: [...sqliteFormat.migrations ?? [], { from: now.sqlite, schema, value }]
}

const later = { version: now.jsonl + 1, migrations: [...jsonlFormat.migrations, { from: now.jsonl, value }] }

const filled = [
  batch({
    conversations: [{ id: "c1", parent: null, owner: null, createdAt: 1 }],
    entries: [entry(1, { data: "one" })],
    documents: [{ document: "d", base: { n: 1 }, retained: true }],
    events: ["a"],
    nextID: 2
  }),
  batch({
    entries: [entry(2, { data: "three" })],
    tasks: [task(3)],
    inputs: [input(4, { requestID: "r" })],
    documents: [{ document: "d", operations: [["set", ["n"], 2]], retained: true }],
    nextID: 5
  }),
  batch({ entries: [entry(5, { data: "cannot be taken over" })], nextID: 6 })
]

describe("a session of an older format, in SQLite", () => {
  const prepare = (folder: string) =>
    Effect.scoped(
      Effect.flatMap(openSqlite(databaseIn(folder)), (storage) =>
        Effect.forEach(filled, storage.commit, { discard: true }))
    )

  it.effect("is migrated once, behind a backup, with damaged records set aside and counted", () =>
    withFolder((folder) =>
      Effect.gen(function*() {
        yield* prepare(folder)
        const damaged = new DatabaseSync(databaseIn(folder))
        damaged.exec("UPDATE tasks SET record = substr(record, 1, 20)")
        damaged.close()
        for (const _ of ["migrates", "finds it migrated"]) {
          yield* Effect.scoped(Effect.gen(function*() {
            const storage = yield* openSqlite(databaseIn(folder), { format: laterSqlite })
            expect(yield* storage.entry("e1")).toMatchObject({ data: "one", dataLength: 3 })
            expect((yield* storage.entries({ conversation: "c1" })).map((item) => item.id)).toEqual(["e1", "e2"])
            expect(yield* storage.document("d")).toEqual({ n: 2, version: 2 })
            expect(yield* storage.documentAt("d", 1)).toEqual({ n: 1, version: 2 })
            expect(yield* storage.task("t3")).toBeNull()
            expect((yield* storage.inputByRequest("r"))?.id).toBe("i4")
            expect(yield* storage.history(0, 5)).toHaveLength(1)
            expect(yield* storage.nextID).toBe(6)
          }))
          expect(fs.readdirSync(folder).filter((name) => name.includes(".v"))).toEqual([`session.db.v${now.sqlite}`])
        }
        const database = new DatabaseSync(databaseIn(folder), { readOnly: true })
        expect(database.prepare("SELECT source, why FROM set_aside ORDER BY source").all()).toMatchObject([
          { source: "entries", why: "this entry has no length" },
          { source: "tasks", why: expect.stringMatching(/JSON/) }
        ])
        database.close()
        expect(fs.statSync(`${databaseIn(folder)}.v${now.sqlite}`).mode & 0o777).toBe(0o600)
      })
    ))

  it.effect("names, to the older program, the version that it has now; and its backup still opens there", () =>
    withFolder((folder) =>
      Effect.gen(function*() {
        yield* prepare(folder)
        yield* Effect.scoped(openSqlite(databaseIn(folder), { format: laterSqlite }))
        const error = yield* Effect.flip(Effect.scoped(openSqlite(databaseIn(folder))))
        expect(error.kind).toBe("newer_version")
        expect(error.message).toContain(
          `has format ${now.sqlite + 1}, and this Bezel reads up to ${now.sqlite}; upgrade Bezel`
        )
        yield* Effect.scoped(Effect.gen(function*() {
          const storage = yield* openSqlite(`${databaseIn(folder)}.v${now.sqlite}`)
          expect(yield* storage.entries({ conversation: "c1" })).toHaveLength(3)
        }))
      })
    ))

  it.effect("stays as it was, without a backup, when a step fails", () =>
    withFolder((folder) =>
      Effect.gen(function*() {
        yield* prepare(folder)
        const format = {
          ...laterSqlite,
          migrations: [{ from: now.sqlite, schema: "ALTER TABLE nowhere ADD COLUMN a" }]
        }
        yield* Effect.flip(Effect.scoped(openSqlite(databaseIn(folder), { format })))
        expect(fs.readdirSync(folder)).toEqual(["session.db"])
        yield* Effect.scoped(Effect.gen(function*() {
          const storage = yield* openSqlite(databaseIn(folder))
          expect(yield* storage.entry("e1")).toMatchObject({ data: "one" })
        }))
      })
    ))

  it.effect("is not migrated by a reader, which says what to do, nor when the step is gone", () =>
    withFolder((folder) =>
      Effect.gen(function*() {
        yield* prepare(folder)
        const error = yield* Effect.flip(Effect.scoped(openSqliteReader(databaseIn(folder), { format: laterSqlite })))
        expect(error.kind).toBe("older_version")
        expect(error.message).toContain(
          `has format ${now.sqlite}, and this Bezel reads ${now.sqlite + 1}; go on with the session once`
        )
        const format = { ...laterSqlite, version: now.sqlite + 2 }
        const tooOld = yield* Effect.flip(Effect.scoped(openSqlite(databaseIn(folder), { format })))
        expect(tooOld).toMatchObject({ kind: "older_version" })
        expect(tooOld.message).toContain(
          `format ${now.sqlite}, which this Bezel cannot bring to format ${now.sqlite + 2} any more`
        )
      })
    ))
})

describe("a session of version 1, in SQLite", () => {
  it.effect("is migrated with all that is in it, and goes on; one damaged row is set aside", () =>
    withFolder((folder) =>
      Effect.gen(function*() {
        writeVersion1(databaseIn(folder))
        const damaged = new DatabaseSync(databaseIn(folder))
        damaged.exec("UPDATE inputs SET record = substr(record, 1, 20)")
        damaged.close()
        const reader = yield* Effect.flip(Effect.scoped(openSqliteReader(databaseIn(folder))))
        expect(reader.kind).toBe("older_version")
        yield* Effect.scoped(Effect.gen(function*() {
          const storage = yield* openSqlite(databaseIn(folder))
          expect([yield* storage.sequence, yield* storage.nextID]).toEqual([2, 5])
          expect(yield* storage.entry("e1")).toEqual(entry(1, { data: "one" }))
          expect((yield* storage.entry("first"))?.ordinal).toBe(2)
          expect((yield* storage.entries({ conversation: "c1" })).map((item) => item.id)).toEqual(["e1", "first"])
          expect(yield* storage.document("d")).toEqual({ n: 2 })
          expect(yield* storage.liveTasks).toEqual([task(3)])
          expect(yield* storage.liveInputs).toEqual([])
          expect(yield* storage.history(0, 5)).toEqual([{ sequence: 1, at: 11, events: ["a"] }])
          expect((yield* Effect.flip(storage.commit(batch({ entries: [entry(9, { id: "first" })] })))).message).toMatch(
            /first/
          )
          expect(yield* storage.commit(batch({ entries: [entry(5)], events: ["b"], nextID: 6 }))).toBe(3)
        }))
        yield* Effect.scoped(Effect.gen(function*() {
          const storage = yield* openSqlite(databaseIn(folder))
          expect([yield* storage.sequence, yield* storage.nextID]).toEqual([3, 6])
        }))
        expect(fs.readdirSync(folder).filter((name) => name.includes(".v"))).toEqual(["session.db.v1"])
      })
    ))

  it.effect("is brought up to date for whoever only reads it, unless it is open elsewhere", () =>
    withFolder((folder) =>
      Effect.gen(function*() {
        const session = `${folder}/sessions/ses_1`
        fs.mkdirSync(session, { recursive: true })
        writeVersion1(databaseIn(session))
        yield* Effect.scoped(Effect.gen(function*() {
          const files = yield* SessionStorage
          const lease = new DatabaseSync(`${session}/lease.db`)
          lease.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE")
          fs.writeFileSync(
            `${session}/lease.json`,
            JSON.stringify({ pid: process.pid, startedAt: "", command: "bezel" })
          )
          expect((yield* Effect.flip(files.read("ses_1"))).kind).toBe("older_version")
          lease.close()
          expect((yield* (yield* files.read("ses_1")).entry("e1"))?.data).toBe("one")
          expect(fs.existsSync(`${databaseIn(session)}.v1`)).toBe(true)
        })).pipe(Effect.provide(SessionStorage.layer({ directory: folder })))
      })
    ))
})

describe("a session of an older format, in JSON lines", () => {
  const prepare = (folder: string) =>
    Effect.scoped(
      Effect.flatMap(openJsonl(journalIn(folder), { segmentBytes: 500 }), (storage) =>
        Effect.forEach(filled, storage.commit, { discard: true }))
    )

  it.effect("is migrated once, behind a backup, with what cannot be taken over set aside and counted", () =>
    withFolder((folder) =>
      Effect.gen(function*() {
        yield* prepare(folder)
        const before = fs.readFileSync(segmentIn(folder), "utf8")
        for (const _ of ["migrates", "finds it migrated"]) {
          yield* Effect.scoped(Effect.gen(function*() {
            const storage = yield* openJsonl(journalIn(folder), { format: later })
            expect(yield* storage.entry("e1")).toMatchObject({ data: "one", dataLength: 3 })
            expect((yield* storage.entries({ conversation: "c1" })).map((item) => item.id)).toEqual(["e1", "e2"])
            expect(yield* storage.document("d")).toEqual({ n: 2, version: 2 })
            expect((yield* storage.liveTasks).map((item) => item.id)).toEqual(["t3"])
            expect(yield* storage.history(0, 5)).toHaveLength(1)
            expect([yield* storage.sequence, yield* storage.nextID]).toEqual([3, 6])
          }))
          expect(fs.readdirSync(folder)).toEqual(["journal", `journal.v${now.jsonl}`])
        }
        const aside = fs.readFileSync(`${journalIn(folder)}/set-aside.jsonl`, "utf8").trimEnd().split("\n")
        expect(aside.map((line) => JSON.parse(line))).toMatchObject([
          { commit: 3, why: "this entry has no length", record: { entry: { id: "e5" } } }
        ])
        expect(fs.readFileSync(`${folder}/journal.v${now.jsonl}/000001.jsonl`, "utf8")).toBe(before)
      })
    ))

  it.effect("names, to the older program, the version that it has now, and stays as it is there", () =>
    withFolder((folder) =>
      Effect.gen(function*() {
        yield* prepare(folder)
        yield* Effect.scoped(openJsonl(journalIn(folder), { format: later }))
        const files = fs.readdirSync(journalIn(folder))
        for (
          const opened of [
            Effect.asVoid(openJsonl(journalIn(folder))),
            Effect.asVoid(openJsonlReader(journalIn(folder)))
          ]
        ) {
          const error = yield* Effect.flip(Effect.scoped(opened))
          expect(error.kind).toBe("newer_version")
          expect(error.message).toContain(
            `has format ${now.jsonl + 1}, and this Bezel reads up to ${now.jsonl}; upgrade Bezel`
          )
        }
        expect(fs.readdirSync(journalIn(folder))).toEqual(files)
        const error = yield* Effect.flip(
          Effect.scoped(openJsonlReader(`${folder}/journal.v${now.jsonl}`, { format: later }))
        )
        expect(error.kind).toBe("older_version")
      })
    ))

  it.effect("is not migrated while it is damaged", () =>
    withFolder((folder) =>
      Effect.gen(function*() {
        yield* prepare(folder)
        changeLine(segmentIn(folder), 3, (line) => line.replace("one", "two"))
        const error = yield* Effect.flip(Effect.scoped(openJsonl(journalIn(folder), { format: later })))
        expect(error.kind).toBe("corrupt")
        expect(fs.readdirSync(folder).filter((name) => name.includes(".v"))).toEqual([])
      })
    ))

  it.effect("is whole wherever the process died while the new one took its place", () =>
    withFolder((folder) =>
      Effect.gen(function*() {
        yield* prepare(folder)
        const journal = journalIn(folder)
        const expectWhole = Effect.scoped(Effect.gen(function*() {
          const storage = yield* openJsonl(journal)
          expect(yield* storage.sequence).toBe(3)
          expect(fs.existsSync(`${journal}.new`)).toBe(false)
          expect(fs.existsSync(`${journal}.old`)).toBe(false)
        }))
        // Written in part; written, and the old one away; the new one there, and the old one not yet named.
        fs.mkdirSync(`${journal}.new`)
        fs.writeFileSync(`${journal}.new/000001.jsonl`, "half")
        yield* expectWhole
        fs.cpSync(journal, `${journal}.new`, { recursive: true })
        fs.renameSync(journal, `${journal}.old`)
        yield* expectWhole
        fs.cpSync(journal, `${journal}.old`, { recursive: true })
        yield* expectWhole
        expect(fs.readdirSync(folder)).toEqual(["journal", "journal.replaced", "journal.replaced-2"])
      })
    ))
})
