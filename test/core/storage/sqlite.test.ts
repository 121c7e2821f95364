import { openSqlite, openSqliteReader, type Storage, StorageError } from "@bezel/core/storage"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { DatabaseSync } from "node:sqlite"
import { batch, entry } from "./batches.ts"
import { storageConformance } from "./conformance.ts"

const temporaryFolder = Effect.acquireRelease(
  Effect.sync(() => fs.mkdtempSync(path.join(os.tmpdir(), "bezel-storage-"))),
  (folder) => Effect.sync(() => fs.rmSync(folder, { recursive: true, force: true }))
)

const file = Effect.map(temporaryFolder, (folder) => path.join(folder, "session.db"))

storageConformance(
  "SQLite storage",
  Effect.map(file, (path) => ({ write: openSqlite(path), read: openSqliteReader(path) }))
)

storageConformance(
  "SQLite storage that survives power loss",
  Effect.map(file, (path) => ({ write: openSqlite(path, { durability: "power" }), read: openSqliteReader(path) })),
  { frames: 1_000 }
)

const withFile = <A, E>(body: (path: string) => Effect.Effect<A, E>) => Effect.scoped(Effect.flatMap(file, body))

const raw = (path: string, sql: string): void => {
  const database = new DatabaseSync(path)
  database.exec(sql)
  database.close()
}

describe("a session's file", () => {
  it.effect("is its user's alone, with what stands beside it", () =>
    withFile((path) =>
      Effect.scoped(Effect.gen(function*() {
        const storage = yield* openSqlite(path)
        yield* storage.commit(batch({ entries: [entry(1)] }))
        const modes = [path, `${path}-wal`, `${path}-shm`].map((name) => fs.statSync(name).mode & 0o777)
        expect(modes).toEqual([0o600, 0o600, 0o600])
      }))
    ))

  it.effect("of a newer Bezel is refused by name, for writing and for reading", () =>
    withFile((path) =>
      Effect.gen(function*() {
        yield* Effect.scoped(
          Effect.flatMap(openSqlite(path), (storage) => storage.commit(batch({ entries: [entry(1)] })))
        )
        raw(path, "PRAGMA user_version = 7")
        for (const opened of [openSqlite(path), openSqliteReader(path)]) {
          const error = yield* Effect.flip(Effect.scoped(opened))
          expect(error.kind).toBe("newer_version")
          expect(error.message).toMatch(
            /session\.db: this file has format 7, and this Bezel reads up to 2; upgrade Bezel/
          )
        }
      })
    ))

  it.effect("that is no database, or another program's, is `corrupt` and stays as it was", () =>
    withFile((path) =>
      Effect.gen(function*() {
        fs.writeFileSync(path, "not a database".repeat(1_000))
        const error = yield* Effect.flip(Effect.scoped(openSqlite(path)))
        expect(error.kind).toBe("corrupt")
        expect(error.message).toContain(path)
        expect(fs.readFileSync(path, "utf8")).toBe("not a database".repeat(1_000))
        fs.rmSync(path)
        raw(path, "CREATE TABLE theirs (a); PRAGMA user_version = 3")
        expect((yield* Effect.flip(Effect.scoped(openSqlite(path)))).kind).toBe("corrupt")
      })
    ))

  it.effect("that is not there is `not_found` to a reader, which creates nothing", () =>
    withFile((path) =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(Effect.scoped(openSqliteReader(path)))
        expect(error).toMatchObject({ kind: "not_found", path })
        expect(fs.existsSync(path)).toBe(false)
        fs.writeFileSync(path, "")
        expect((yield* Effect.flip(Effect.scoped(openSqliteReader(path)))).kind).toBe("not_found")
      })
    ))

  it.effect("in a folder that is not there is `not_found`", () =>
    withFile((path) =>
      Effect.gen(function*() {
        expect((yield* Effect.flip(Effect.scoped(openSqlite(`${path}/no/session.db`)))).kind).toBe("not_found")
      })
    ))

  it.effect("gives no id twice after it was opened again, where that id does not say its place", () =>
    withFile((path) =>
      Effect.gen(function*() {
        const opened = <A, E>(use: (storage: Storage) => Effect.Effect<A, E>) =>
          Effect.scoped(Effect.flatMap(openSqlite(path), use))
        yield* opened((storage) => storage.commit(batch({ entries: [entry(1), { ...entry(2), id: "e9" }] })))
        yield* opened((storage) => storage.commit(batch({ entries: [entry(3)] })))
        const taken = yield* opened((storage) => Effect.flip(storage.commit(batch({ entries: [entry(9)] }))))
        expect(taken.message).toMatch(/entry e9 .*never change/)
      })
    ))

  it.effect("that is full refuses with `disk_full`, keeps what was acknowledged, and takes commits again when there is room", () =>
    withFile((path) =>
      Effect.gen(function*() {
        const acknowledged: Array<string> = []
        yield* Effect.scoped(Effect.gen(function*() {
          const storage = yield* openSqlite(path, { maxKiB: 240 })
          let failure: StorageError | undefined
          for (let ordinal = 1; ordinal < 200; ordinal++) {
            if (failure !== undefined) break
            const filled = batch({
              entries: [entry(ordinal, { data: "x".repeat(5_000) })],
              documents: [{ document: "d", base: ordinal, retained: false }],
              nextID: ordinal + 1
            })
            yield* storage.commit(filled).pipe(
              Effect.andThen(Effect.sync(() => void acknowledged.push(`e${ordinal}`))),
              Effect.catch((error) => Effect.sync(() => void (failure = error)))
            )
          }
          expect(failure).toMatchObject({ kind: "disk_full" })
          expect(failure?.message).toMatch(/make room/)
          expect(acknowledged.length).toBeGreaterThan(5)
          expect((yield* storage.entries({ conversation: "c1" })).map((item) => item.id)).toEqual(acknowledged)
          expect(yield* storage.document("d")).toBe(acknowledged.length)
        }))
        yield* Effect.scoped(Effect.gen(function*() {
          const storage = yield* openSqlite(path)
          expect(yield* storage.sequence).toBe(acknowledged.length)
          yield* storage.commit(batch({ entries: [entry(1_000, { data: "x".repeat(50_000) })] }))
          expect(yield* storage.sequence).toBe(acknowledged.length + 1)
        }))
      })
    ))

  it.effect("with a damaged record tells which, and reads the others", () =>
    withFile((path) =>
      Effect.gen(function*() {
        yield* Effect.scoped(Effect.flatMap(openSqlite(path), (storage) =>
          storage.commit(batch({ entries: [entry(1), entry(2), entry(3)] }))))
        raw(path, "UPDATE entries SET record = substr(record, 1, 20) WHERE ordinal = 2")
        yield* Effect.scoped(Effect.gen(function*() {
          const reader = yield* openSqliteReader(path)
          expect((yield* reader.entry("e1"))?.id).toBe("e1")
          expect((yield* reader.entry("e3"))?.id).toBe("e3")
          const error = yield* Effect.flip(reader.entry("e2"))
          expect(error.kind).toBe("corrupt")
          expect(error.message).toMatch(/session\.db: entry e2 cannot be read back/)
        }))
      })
    ))

  it.effect("keeps a document's operations within a small factor of the document", () =>
    withFile((path) =>
      Effect.gen(function*() {
        yield* Effect.scoped(Effect.gen(function*() {
          const storage = yield* openSqlite(path)
          yield* storage.commit(batch({ documents: [{ document: "d", base: { n: 0 }, retained: false }] }))
          for (let index = 1; index <= 20_000; index++) {
            yield* storage.commit(
              batch({ documents: [{ document: "d", operations: [["set", ["n"], index]], retained: false }] })
            )
          }
        }))
        const database = new DatabaseSync(path, { readOnly: true })
        const row = database.prepare("SELECT count(*) AS rows FROM document_states").get()
        database.close()
        expect(Number(row?.rows)).toBeLessThan(2_000)
        expect(fs.statSync(path).size).toBeLessThan(500_000)
      })
    ))

  it.effect("opens in the same time with 100,000 entries as with 100", () =>
    withFile((path) =>
      Effect.gen(function*() {
        const open = Effect.scoped(Effect.gen(function*() {
          const start = performance.now()
          const storage = yield* openSqlite(path)
          yield* storage.sequence
          yield* storage.liveTasks
          yield* storage.liveInputs
          yield* storage.entries({ conversation: "c1", newestFirst: true, limit: 20 })
          return performance.now() - start
        }))
        const fastest = Effect.map(Effect.all(Array.from({ length: 5 }, () => open)), (times) => Math.min(...times))
        const fill = (from: number, to: number) =>
          Effect.scoped(Effect.gen(function*() {
            const storage = yield* openSqlite(path)
            for (let ordinal = from; ordinal < to; ordinal += 1_000) {
              yield* storage.commit(batch({
                entries: Array.from(
                  { length: Math.min(1_000, to - ordinal) },
                  (_, index) => entry(ordinal + index, { data: "some text" })
                )
              }))
            }
          }))
        yield* fill(1, 101)
        const short = yield* fastest
        yield* fill(101, 100_001)
        const long = yield* fastest
        // Reading the history would take hundreds of milliseconds.
        expect(long).toBeLessThan(short * 3 + 10)
      })
    ))

  it.effect("fails with a typed error once its scope has ended", () =>
    withFile((path) =>
      Effect.gen(function*() {
        const storage = yield* Effect.scoped(openSqlite(path))
        const error = yield* Effect.flip(storage.commit(batch({})))
        expect(error).toBeInstanceOf(StorageError)
        expect(error.kind).toBe("io")
        expect((yield* Effect.flip(storage.sequence)).kind).toBe("io")
      })
    ))
})
