import { openJsonl, openJsonlReader, sessionsIn, SessionStorage, type Storage } from "@bezel/core/storage"
import { describe, expect, it, vi } from "@effect/vitest"
import { Effect, type Scope } from "effect"
import { spawn } from "node:child_process"
import * as fs from "node:fs"
import { createInterface } from "node:readline"
import { DatabaseSync } from "node:sqlite"
import { fileURLToPath } from "node:url"
import { batch, entry, task } from "./batches.ts"
import { changeLine, journalIn, overwrite, reading, segmentIn, sessionFolder, writing } from "./damage.ts"

const withFolder = <A, E>(body: (folder: string) => Effect.Effect<A, E>) =>
  Effect.scoped(Effect.flatMap(sessionFolder, body))

const ids = (records: ReadonlyArray<{ readonly id: string }>): ReadonlyArray<string> =>
  records.map((record) => record.id)

const range = (count: number, from = 1): ReadonlyArray<number> =>
  Array.from({ length: count }, (_, index) => from + index)

/** A commit for each ordinal, with one entry in it and one change of a document. */
const fill = (storage: Storage, ordinals: ReadonlyArray<number>) =>
  Effect.forEach(ordinals, (ordinal) =>
    storage.commit(batch({
      entries: [entry(ordinal, { data: `text ${ordinal}` })],
      documents: [
        ordinal === 1
          ? { document: "d", base: { n: 1 }, retained: true }
          : { document: "d", operations: [["set", ["n"], ordinal]], retained: true }
      ],
      nextID: ordinal + 1
    })), { discard: true })

describe("a session of JSON lines", () => {
  it.effect("can be searched with any tool: a line for each record, in files of its user alone", () =>
    withFolder((folder) =>
      Effect.gen(function*() {
        yield* writing(folder, (storage) => fill(storage, [1, 2]))
        const lines = fs.readFileSync(segmentIn(folder), "utf8").trimEnd().split("\n").map((line) => JSON.parse(line))
        expect(lines[0]).toMatchObject({ bezel: "session", version: 1 })
        expect(lines[1].entry).toMatchObject({ id: "e1", data: "text 1" })
        expect(lines[3]).toMatchObject({ commit: 1, records: 2 })
        expect(lines).toHaveLength(7)
        expect(fs.statSync(journalIn(folder)).mode & 0o777).toBe(0o700)
        for (const name of fs.readdirSync(journalIn(folder))) {
          expect(fs.statSync(`${journalIn(folder)}/${name}`).mode & 0o777, name).toBe(0o600)
        }
      })
    ))

  it.effect("has its unfinished end cut before the next append, and loses nothing appended after", () =>
    withFolder((folder) =>
      Effect.gen(function*() {
        yield* writing(folder, (storage) => fill(storage, [1, 2]))
        const whole = fs.readFileSync(segmentIn(folder), "utf8")
        const ends = [
          '{"entry":{"id":"e99","ord',
          '{"entry":{"id":"e99"}}\n',
          '{"entry":{"id":"e99"}}\n{"commit":3,"rec',
          "\0".repeat(700),
          "\n\n{"
        ]
        for (const [index, end] of ends.entries()) {
          const before = fs.readFileSync(segmentIn(folder), "utf8")
          fs.appendFileSync(segmentIn(folder), end)
          // Readers ignore it, and leave it.
          yield* reading(
            folder,
            (reader) => Effect.map(reader.sequence, (sequence) => expect(sequence).toBe(2 + index))
          )
          expect(fs.readFileSync(segmentIn(folder), "utf8")).toBe(before + end)
          yield* writing(folder, (storage) => fill(storage, [3 + index]))
          expect(fs.readFileSync(segmentIn(folder), "utf8")).toContain(before)
          expect(fs.readFileSync(segmentIn(folder), "utf8")).not.toContain(before + end)
        }
        expect(fs.readFileSync(segmentIn(folder), "utf8").startsWith(whole)).toBe(true)
        yield* writing(folder, (storage) =>
          Effect.gen(function*() {
            expect(ids(yield* storage.entries({ conversation: "c1" }))).toEqual([
              "e1",
              "e2",
              "e3",
              "e4",
              "e5",
              "e6",
              "e7"
            ])
            expect(yield* storage.document("d")).toEqual({ n: 7 })
          }))
      })
    ))

  it.effect("whose last commit was cut off goes on before it, and never gives its ids again", () =>
    withFolder((folder) =>
      Effect.gen(function*() {
        yield* writing(folder, (storage) => fill(storage, [1, 2, 3]))
        fs.truncateSync(segmentIn(folder), fs.statSync(segmentIn(folder)).size - 10)
        yield* writing(folder, (storage) =>
          Effect.gen(function*() {
            expect(yield* storage.sequence).toBe(2)
            expect(yield* storage.nextID).toBe(4)
            yield* storage.commit(batch({ entries: [entry(4)], nextID: 5 }))
          }))
        yield* writing(folder, (storage) =>
          Effect.map(storage.entries({ conversation: "c1" }), (found) =>
            expect(ids(found)).toEqual(["e1", "e2", "e4"])))
      })
    ))

  it.effect("that has the same commit twice has it once", () =>
    withFolder((folder) =>
      Effect.gen(function*() {
        yield* writing(folder, (storage) => fill(storage, [1, 2]))
        const lines = fs.readFileSync(segmentIn(folder), "utf8").split("\n")
        fs.appendFileSync(segmentIn(folder), `${lines.slice(4, 7).join("\n")}\n`)
        fs.rmSync(`${journalIn(folder)}/index.db`)
        yield* writing(folder, (storage) =>
          Effect.gen(function*() {
            expect(ids(yield* storage.entries({ conversation: "c1" }))).toEqual(["e1", "e2"])
            yield* fill(storage, [3])
          }))
        yield* reading(folder, (reader) =>
          Effect.map(reader.entries({ conversation: "c1" }), (found) => expect(ids(found)).toEqual(["e1", "e2", "e3"])))
      })
    ))

  for (
    const [what, change] of [
      ["NULs", (line: string) => "\0".repeat(line.length)],
      ["a line cut in mid-string", (line: string) => line.slice(0, 40)],
      ["one changed letter", (line: string) => line.replace("text", "test")]
    ] as const
  ) {
    it.effect(`with ${what} in the middle is read where it is whole, names file and line, and takes no commit`, () =>
      withFolder((folder) =>
        Effect.gen(function*() {
          yield* writing(folder, (storage) => fill(storage, range(240)))
          // Lines: a header, then three for each commit.
          changeLine(segmentIn(folder), 500, change)
          const place = /000001\.jsonl: (line 500 is|lines \d+–\d+ are) damaged; commit 167 is gone/
          const error = yield* Effect.flip(writing(folder, () => Effect.void))
          expect(error.kind).toBe("corrupt")
          expect(error.message).toMatch(place)
          expect(error.message).toMatch(/bezel session repair/)
          yield* reading(folder, (reader) =>
            Effect.gen(function*() {
              const found = ids(yield* reader.entries({ conversation: "c1" }))
              expect(found).toEqual(range(240).filter((ordinal) => ordinal !== 167).map((ordinal) => `e${ordinal}`))
              expect(yield* reader.entry("e167")).toBeNull()
              expect((yield* reader.damage)[0]).toMatch(place)
              // What the lost commit did to the document is unknown, and what was before is not.
              expect(yield* reader.documentAt("d", 166)).toEqual({ n: 166 })
              expect((yield* Effect.flip(reader.document("d"))).message).toMatch(/may have changed document "d"/)
            }))
          // Also the second time.
          expect((yield* Effect.flip(writing(folder, () => Effect.void))).kind).toBe("corrupt")
        })
      ))
  }

  it.effect("whose last, confirmed commit is damaged is not taken for one with an unfinished end", () =>
    withFolder((folder) =>
      Effect.gen(function*() {
        for (const [line, withIndex] of [[5, true], [5, false], [7, true], [7, false]] as const) {
          fs.rmSync(journalIn(folder), { recursive: true, force: true })
          yield* writing(folder, (storage) => fill(storage, [1, 2]))
          changeLine(segmentIn(folder), line, (text) => text.replace("2", "3"))
          if (!withIndex) fs.rmSync(`${journalIn(folder)}/index.db`)
          const error = yield* Effect.flip(writing(folder, () => Effect.void))
          expect(error.message).toMatch(/000001\.jsonl: lines 5–7 are damaged; commit 2 is gone/)
          expect(fs.readFileSync(segmentIn(folder), "utf8").split("\n")).toHaveLength(8)
        }
      })
    ))

  it.effect("that is damaged while it is open tells so at the read, and takes no commit after", () =>
    withFolder((folder) =>
      writing(folder, (storage) =>
        Effect.gen(function*() {
          yield* fill(storage, [1, 2])
          changeLine(segmentIn(folder), 2, (line) => line.replace("text", "test"))
          const error = yield* Effect.flip(storage.entry("e1"))
          expect(error).toMatchObject({ kind: "corrupt", path: segmentIn(folder) })
          expect(error.message).toMatch(/line 2 is damaged, so entry e1/)
          expect((yield* storage.entry("e2"))?.data).toBe("text 2")
          expect((yield* Effect.flip(fill(storage, [3]))).kind).toBe("corrupt")
        }))
    ))

  it.effect("in several files misses a file, or its first line, and says which", () =>
    withFolder((folder) =>
      Effect.gen(function*() {
        const small = { segmentBytes: 2_000 }
        const open = <A, E>(body: (storage: Storage) => Effect.Effect<A, E>) =>
          Effect.scoped(Effect.flatMap(openJsonl(journalIn(folder), small), body))
        yield* open((storage) => fill(storage, range(100)))
        const files = fs.readdirSync(journalIn(folder)).filter((name) => name.endsWith(".jsonl"))
        expect(files.length).toBeGreaterThan(5)
        changeLine(segmentIn(folder, 3), 1, (line) => line.replace('"segment"', '"sEgment"'))
        expect((yield* Effect.flip(open(() => Effect.void))).message).toMatch(/000003\.jsonl: line 1 is damaged;/)
        yield* reading(folder, (reader) =>
          Effect.map(reader.entries({ conversation: "c1" }), (found) => expect(found).toHaveLength(100)))
        fs.rmSync(segmentIn(folder, 3))
        const error = yield* Effect.flip(open(() =>
          Effect.void
        ))
        expect(error.kind).toBe("corrupt")
        expect(error.message).toMatch(/000004\.jsonl: line 1 is damaged; commits \d+–\d+ are gone/)
      })
    ))

  it.effect("does without its index: an absent, foreign, damaged or older one is made again", () =>
    withFolder((folder) =>
      Effect.gen(function*() {
        const index = `${journalIn(folder)}/index.db`
        let last = 0
        const spoil = [
          () => fs.rmSync(index),
          () => fs.writeFileSync(index, "not a database".repeat(1_000)),
          () => overwrite(index, 4_096, Buffer.alloc(30_000, 7)),
          () => fs.copyFileSync(`${folder}/older.db`, index),
          () => fs.copyFileSync(`${folder}/older.db`, `${index}`)
        ]
        yield* writing(folder, (storage) => fill(storage, [++last]))
        fs.copyFileSync(index, `${folder}/older.db`)
        for (const change of spoil) {
          yield* writing(folder, (storage) => fill(storage, [++last, ++last]))
          change()
          yield* reading(folder, (reader) =>
            Effect.map(reader.entries({ conversation: "c1" }), (found) => expect(found).toHaveLength(last)))
          yield* writing(folder, (storage) =>
            Effect.gen(function*() {
              expect(yield* storage.entries({ conversation: "c1" })).toHaveLength(last)
              expect(yield* storage.document("d")).toEqual({ n: last })
              expect(yield* storage.sequence).toBe(last)
            }))
        }
      })
    ))

  it.effect("is not misled by an index that leads to other bytes: it is made again, and nothing counts as damaged", () =>
    withFolder((folder) =>
      Effect.gen(function*() {
        for (const change of ["offset = offset + 1", "length = -5", "offset = 1e15", "sum = sum + 1"]) {
          fs.rmSync(journalIn(folder), { recursive: true, force: true })
          yield* writing(folder, (storage) => fill(storage, [1, 2, 3]))
          const index = new DatabaseSync(`${journalIn(folder)}/index.db`)
          index.exec(`UPDATE entries SET ${change} WHERE ordinal = 2`)
          index.close()
          yield* reading(folder, (reader) =>
            Effect.gen(function*() {
              expect((yield* reader.entry("e2"))?.data, change).toBe("text 2")
              expect(yield* reader.damage).toEqual([])
            }))
          yield* writing(folder, (storage) =>
            Effect.gen(function*() {
              expect(ids(yield* storage.entries({ conversation: "c1" })), change).toEqual(["e1", "e2", "e3"])
              yield* fill(storage, [4])
              expect((yield* storage.entry("e2"))?.data).toBe("text 2")
            }))
        }
      })
    ))

  it.effect("follows a writer of another opening across files, and sees the whole commits of a killed one", () =>
    withFolder((folder) =>
      Effect.scoped(Effect.gen(function*() {
        const storage = yield* openJsonl(journalIn(folder), { segmentBytes: 5_000 })
        yield* fill(storage, [1])
        const reader = yield* openJsonlReader(journalIn(folder))
        for (const ordinal of range(6_000, 2)) {
          yield* fill(storage, [ordinal])
          if (ordinal % 97 === 0) {
            expect(yield* reader.sequence).toBe(ordinal)
            expect(yield* reader.document("d")).toEqual({ n: ordinal })
          }
        }
        expect(yield* reader.entries({ conversation: "c1" })).toHaveLength(6_001)
        // As a kill leaves it: the index behind, the end half written.
        const copy = `${folder}/copy`
        fs.cpSync(journalIn(folder), copy, { recursive: true })
        const newest = fs.readdirSync(copy).filter((name) => name.endsWith(".jsonl")).sort().at(-1)
        fs.appendFileSync(`${copy}/${newest}`, '{"entry":{"id":"e99')
        const again = yield* openJsonl(copy)
        expect(yield* again.sequence).toBe(6_001)
        expect(yield* again.commit(batch({ entries: [entry(7_000)] }))).toBe(6_002)
      }))
    ))

  it.effect("that is full refuses with `disk_full`, takes back what it half wrote, and takes commits again when there is room", () =>
    withFolder((folder) =>
      Effect.gen(function*() {
        const big = (ordinal: number) =>
          batch({
            entries: [entry(ordinal, { data: "x".repeat(700) })],
            documents: [{ document: "d", base: ordinal, retained: false }]
          })
        yield* Effect.scoped(Effect.gen(function*() {
          const storage = yield* openJsonl(journalIn(folder), { maxBytes: 4_500 })
          for (const ordinal of range(4)) yield* storage.commit(big(ordinal))
          const size = fs.statSync(segmentIn(folder)).size
          const refusals = [yield* Effect.flip(storage.commit(big(5))), yield* Effect.flip(storage.commit(big(6)))]
          expect(refusals).toMatchObject([{ kind: "disk_full" }, { kind: "disk_full", path: segmentIn(folder) }])
          expect(refusals[0]?.message).toMatch(/make room/)
          expect(fs.statSync(segmentIn(folder)).size).toBe(size)
          expect(yield* storage.sequence).toBe(4)
          expect(yield* storage.document("d")).toBe(4)
          expect(yield* storage.commit(batch({ entries: [entry(7)] }))).toBe(5)
        }))
        yield* writing(folder, (storage) =>
          Effect.gen(function*() {
            expect(yield* storage.commit(big(8))).toBe(6)
            expect(ids(yield* storage.entries({ conversation: "c1" }))).toEqual(["e1", "e2", "e3", "e4", "e7", "e8"])
          }))
      })
    ))

  it.effect("says so when its files are taken away while it is open", () =>
    withFolder((folder) =>
      writing(folder, (storage) =>
        Effect.gen(function*() {
          yield* fill(storage, [1])
          fs.rmSync(journalIn(folder), { recursive: true })
          // It looks once in a while only.
          const later = performance.now() + 1_000
          const clock = vi.spyOn(performance, "now").mockReturnValue(later)
          const error = yield* Effect.flip(fill(storage, [2]))
          clock.mockRestore()
          expect(error).toMatchObject({ kind: "not_found", path: segmentIn(folder) })
          expect(error.message).toMatch(/was removed while the session was open/)
        }))
    ))

  it.effect("that is not there is `not_found` to a reader, which creates nothing", () =>
    withFolder((folder) =>
      Effect.gen(function*() {
        expect((yield* Effect.flip(reading(folder, () => Effect.void))).kind).toBe("not_found")
        expect(fs.readdirSync(folder)).toEqual([])
        const error = yield* Effect.flip(Effect.scoped(
          openJsonl(`${folder}/file/journal`).pipe(
            Effect.tap(() => Effect.void),
            (open) => Effect.andThen(Effect.sync(() => fs.writeFileSync(`${folder}/file`, "")), open)
          )
        ))
        expect(error.kind).toBe("not_found")
      })
    ))

  it.effect("fails with a typed error once its scope has ended", () =>
    withFolder((folder) =>
      Effect.gen(function*() {
        const storage = yield* writing(folder, Effect.succeed)
        expect((yield* Effect.flip(storage.commit(batch({})))).kind).toBe("io")
        expect((yield* Effect.flip(storage.entry("e1"))).kind).toBe("io")
      })
    ))

  it.effect("opens in the same time with 100,000 entries as with 100", () =>
    withFolder((folder) =>
      Effect.gen(function*() {
        const sized = (name: string, count: number) =>
          Effect.scoped(Effect.gen(function*() {
            const storage = yield* openJsonl(`${folder}/${name}`)
            for (let first = 1; first <= count; first += 100) {
              yield* storage.commit(
                batch({ entries: range(100, first).map((ordinal) => entry(ordinal, { data: "some text" })) })
              )
            }
          }))
        const open = (name: string) =>
          Effect.scoped(Effect.gen(function*() {
            const start = performance.now()
            const storage = yield* openJsonl(`${folder}/${name}`)
            yield* storage.liveTasks
            yield* storage.liveInputs
            expect(yield* storage.entries({ conversation: "c1", newestFirst: true, limit: 20 })).toHaveLength(20)
            return performance.now() - start
          }))
        const fastest = (name: string) =>
          Effect.map(Effect.all(Array.from({ length: 7 }, () => open(name))), (times) => Math.min(...times))
        yield* sized("short", 100)
        yield* sized("long", 100_000)
        const short = yield* fastest("short")
        const long = yield* fastest("long")
        // Reading the history would take a second.
        expect(long).toBeLessThan(short * 1.5 + 50)
      })
    ))

  it.effect("of a writer that was killed has all that it acknowledged, and is written on", () =>
    withFolder((folder) =>
      Effect.gen(function*() {
        let acknowledged = 0
        for (const lines of [1, 30, 150, 400]) {
          const child = spawn(process.execPath, [
            fileURLToPath(new URL("./jsonl-process.ts", import.meta.url)),
            journalIn(folder)
          ], {
            stdio: ["ignore", "pipe", "inherit"]
          })
          yield* Effect.promise(async () => {
            let count = 0
            for await (const line of createInterface({ input: child.stdout })) {
              acknowledged = Number(line)
              // What is still in the pipe was acknowledged too.
              if (++count === lines) child.kill("SIGKILL")
            }
          })
          yield* writing(folder, (storage) =>
            Effect.gen(function*() {
              const sequence = yield* storage.sequence
              expect(sequence).toBeGreaterThanOrEqual(acknowledged)
              const found = yield* storage.entries({ conversation: "c1" })
              expect(found.map((item) => item.ordinal)).toEqual(range(sequence))
              expect(yield* storage.document("d")).toBe(sequence)
            }))
        }
        expect(acknowledged).toBeGreaterThan(580)
      })
    ))

  it.effect("with 35,000 updates of the work under way opens without reading them", () =>
    withFolder((folder) =>
      Effect.gen(function*() {
        yield* writing(folder, (storage) =>
          Effect.gen(function*() {
            yield* storage.commit(batch({ documents: [{ document: "d", base: { n: 0 }, retained: false }] }))
            for (const n of range(35_000)) {
              yield* storage.commit(batch({
                tasks: [task(1, { status: "running", checkpoint: { n } })],
                documents: [{ document: "d", operations: [["set", ["n"], n]], retained: false }]
              }))
            }
          }))
        const start = performance.now()
        const heap = process.memoryUsage().heapUsed
        yield* writing(folder, (storage) =>
          Effect.gen(function*() {
            expect((yield* storage.liveTasks)[0]?.checkpoint).toEqual({ n: 35_000 })
            expect(yield* storage.document("d")).toEqual({ n: 35_000 })
          }))
        expect(performance.now() - start).toBeLessThan(500)
        expect(process.memoryUsage().heapUsed - heap).toBeLessThan(20_000_000)
        const bytes = fs.readdirSync(journalIn(folder)).filter((name) => name.startsWith("index")).map((name) =>
          fs.statSync(`${journalIn(folder)}/${name}`).size
        )
        expect(bytes.reduce((sum, size) => sum + size, 0)).toBeLessThan(1_000_000)
      })
    ))
})

describe("a data directory", () => {
  const use = <A, E>(
    folder: string,
    format: "sqlite" | "jsonl",
    body: (files: SessionStorage["Service"]) => Effect.Effect<A, E, Scope.Scope>
  ) =>
    Effect.scoped(Effect.flatMap(SessionStorage, body)).pipe(
      Effect.provide(SessionStorage.layer({ directory: folder, format }))
    )

  it.effect("keeps new sessions as it is told, and opens those that are there as they are", () =>
    withFolder((folder) =>
      Effect.gen(function*() {
        yield* use(folder, "jsonl", (files) => Effect.flatMap(files.write("lines"), (storage) => fill(storage, [1])))
        yield* use(folder, "sqlite", (files) => Effect.flatMap(files.write("rows"), (storage) => fill(storage, [1])))
        for (const format of ["sqlite", "jsonl"] as const) {
          yield* use(folder, format, (files) =>
            Effect.gen(function*() {
              for (const id of ["lines", "rows"]) {
                const storage = yield* files.write(id)
                expect((yield* Effect.flip(Effect.scoped(files.write(id))))._tag).toBe("SessionInUse")
                yield* fill(storage, [Number(yield* storage.nextID)])
                const reader = yield* files.read(id)
                expect(yield* reader.sequence).toBe(yield* storage.sequence)
              }
            }))
        }
        expect(sessionsIn(folder)).toEqual(["lines", "rows"])
        expect(fs.readdirSync(`${folder}/sessions/lines`)).toEqual(["journal", "lease.db"])
        expect(fs.readdirSync(`${folder}/sessions/rows`)).toEqual(["lease.db", "session.db"])
        yield* use(folder, "sqlite", (files) =>
          Effect.gen(function*() {
            expect(yield* (yield* files.read("lines")).sequence).toBe(3)
            yield* files.remove("lines")
            expect((yield* Effect.flip(files.read("lines"))).kind).toBe("not_found")
          }))
      })
    ))
})
