import { inspectSession, type Storage } from "@bezel/core/storage"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import * as fc from "fast-check"
import * as fs from "node:fs"
import { DatabaseSync } from "node:sqlite"
import { batch, entry, input, task } from "./batches.ts"
import {
  changeLine,
  databaseIn,
  journalIn,
  reading,
  readingSqlite,
  repair,
  segmentIn,
  sessionFolder,
  writing,
  writingSqlite
} from "./damage.ts"

const withFolder = <A, E>(body: (folder: string) => Effect.Effect<A, E>) =>
  Effect.scoped(Effect.flatMap(sessionFolder, body))

const ids = (records: ReadonlyArray<{ readonly id: string }>): ReadonlyArray<string> =>
  records.map((record) => record.id)

const range = (count: number, from = 1): ReadonlyArray<number> =>
  Array.from({ length: count }, (_, index) => from + index)

const sticky = (n: number) => ({
  turn: { inputs: ["i11"] },
  inbox: [{ id: "i12" }],
  compaction: null,
  usage: { input: n },
  writes: [],
  slots: { t13: { memos: {}, data: {} } },
  plugins: { notes: { n } }
})

/** Ten commits of an entry and a change of each document, then work under way. */
const fill = (storage: Storage) =>
  Effect.gen(function*() {
    yield* storage.commit(batch({ conversations: [{ id: "c1", parent: null, owner: null, createdAt: 1 }] }))
    for (const ordinal of range(10)) {
      const operations = [["set", ["n"], ordinal]] as const
      yield* storage.commit(batch({
        entries: [entry(ordinal, { data: `text ${ordinal}` })],
        documents: [
          { document: "rewindable:c1", ...(ordinal === 1 ? { base: { n: 1 } } : { operations }), retained: true },
          ordinal === 1
            ? { document: "sticky:c1", base: sticky(1), retained: false }
            : { document: "sticky:c1", operations: [["set", ["usage", "input"], ordinal]], retained: false }
        ],
        nextID: ordinal + 1
      }))
    }
    yield* storage.commit(batch({
      tasks: [task(13, { status: "running", kind: "bezel.tool" })],
      inputs: [input(11, { status: "placed" }), input(12, { requestID: "r" })],
      nextID: 14
    }))
  })

describe("repairing a session of JSON lines", () => {
  /** Commit 6 has entry 5, in line 18 (a header, two lines, then four for each commit). */
  const damage = (folder: string): void => changeLine(segmentIn(folder), 20, () => "\0".repeat(90))

  it.effect("keeps all that is whole, marks what is gone, and ends what was under way", () =>
    withFolder((folder) =>
      Effect.gen(function*() {
        yield* writing(folder, fill)
        damage(folder)
        const before = fs.readFileSync(segmentIn(folder))
        const report = yield* repair(folder)
        expect(report.findings.faults).toEqual([
          expect.stringMatching(/000001\.jsonl: lines 20–23 are damaged; commit 6 is gone/)
        ])
        expect(report.steps).toEqual([
          "keeps 9 entries that are whole, up to commit 12",
          "marks where commit 6 was",
          'puts document "rewindable:c1" back to what it was at commit 5',
          'puts document "sticky:c1" back to what it was at commit 5',
          "ends task t13 (bezel.tool) as orphaned",
          "ends input i11 (placed) as unanswered",
          "ends input i12 (queued) as unanswered"
        ])
        expect(report.kept).toBe(`${journalIn(folder)}.damaged-20260102T030405Z`)
        expect(fs.readFileSync(`${report.kept}/000001.jsonl`)).toEqual(before)
        yield* writing(folder, (storage) =>
          Effect.gen(function*() {
            const found = yield* storage.entries({ conversation: "c1" })
            expect(ids(found)).toEqual(["e1", "e2", "e3", "e4", "e6", "e7", "e8", "e9", "e10", "e14"])
            expect(found.at(-1)).toMatchObject({
              kind: "bezel.repair",
              model: null,
              data: { faults: report.findings.faults }
            })
            expect(yield* storage.sequenceOf("e10")).toBe(11)
            expect(yield* storage.document("rewindable:c1")).toEqual({ n: 4 })
            expect(yield* storage.document("sticky:c1")).toEqual({
              ...sticky(1),
              turn: null,
              inbox: [],
              slots: {},
              usage: { input: 4 }
            })
            expect((yield* Effect.flip(storage.documentAt("rewindable:c1", 9))).message).toMatch(
              /lines 20–23, now gone/
            )
            expect(yield* storage.documentAt("rewindable:c1", 4)).toEqual({ n: 3 })
            expect([yield* storage.liveTasks, yield* storage.liveInputs]).toEqual([[], []])
            expect(yield* storage.task("t13")).toMatchObject({ status: "orphaned" })
            expect(yield* storage.inputByRequest("r")).toMatchObject({ status: "unanswered", reason: "failed" })
            expect(yield* storage.commit(batch({ entries: [entry(15)], nextID: 16 }))).toBe(14)
          }))
        expect((yield* inspectSession(folder)).faults).toEqual([])
        const mark = fs.readFileSync(segmentIn(folder), "utf8").split("\n")[19] ?? ""
        expect(JSON.parse(mark)).toMatchObject({ gap: { first: 6, last: 6, line: 20, lastLine: 23 } })
      })
    ))

  it.effect("does nothing when it is only asked what it would do, or when nothing is damaged", () =>
    withFolder((folder) =>
      Effect.gen(function*() {
        yield* writing(folder, fill)
        const whole = yield* repair(folder)
        expect(whole).toMatchObject({ kept: null, steps: [], findings: { faults: [] } })
        damage(folder)
        const before = fs.readFileSync(segmentIn(folder))
        const would = yield* repair(folder, true)
        expect(would.kept).toBeNull()
        expect(would.steps).toHaveLength(7)
        expect(fs.readFileSync(segmentIn(folder))).toEqual(before)
        expect(fs.readdirSync(folder)).toEqual(["journal", "lease.db"])
        expect((yield* repair(folder)).steps).toEqual(would.steps)
      })
    ))

  it.effect("leaves work under way alone where no commit is gone", () =>
    withFolder((folder) =>
      Effect.gen(function*() {
        yield* writing(folder, fill)
        changeLine(segmentIn(folder), 1, (line) => line.replace("session", "seSsion"))
        expect((yield* Effect.flip(writing(folder, () => Effect.void))).kind).toBe("corrupt")
        expect((yield* repair(folder)).steps).toEqual(["keeps 10 entries that are whole, up to commit 12"])
        yield* writing(folder, (storage) =>
          Effect.gen(function*() {
            expect(ids(yield* storage.liveTasks)).toEqual(["t13"])
            expect(yield* storage.document("rewindable:c1")).toEqual({ n: 10 })
            expect(yield* storage.sequence).toBe(12)
          }))
      })
    ))

  it.effect("never gives an id again that was in what is gone, also at the end", () =>
    withFolder((folder) =>
      Effect.gen(function*() {
        yield* writing(folder, fill)
        const lines = fs.readFileSync(segmentIn(folder), "utf8").split("\n").length
        changeLine(segmentIn(folder), lines - 1, (line) => line.replace("commit", "cOmmit"))
        const error = yield* Effect.flip(writing(folder, () => Effect.void))
        expect(error.message).toMatch(/commit 12 is gone/)
        yield* repair(folder)
        yield* writing(folder, (storage) =>
          Effect.gen(function*() {
            expect([yield* storage.sequence, yield* storage.nextID]).toEqual([13, 15])
            expect(yield* storage.task("t13")).toBeNull()
          }))
      })
    ))

  /** What was acknowledged, commit by commit, with where its bytes are. */
  const history = range(12)

  it.effect("of bytes cut, zeroed or flipped anywhere crashes nowhere, loses no whole commit, and invents nothing", () =>
    withFolder((folder) =>
      Effect.gen(function*() {
        const pristine = `${folder}/pristine`
        yield* writing(pristine, fill)
        const original = fs.readFileSync(segmentIn(pristine))
        const expected = yield* writing(pristine, (storage) => storage.entries({ conversation: "c1" }))
        const texts = new Map(expected.map((item) => [item.id, JSON.stringify(item)]))
        const ends = history.map((sequence) => {
          const line = original.indexOf(`{"commit":${sequence},`)
          return original.indexOf("\n", line) + 1
        })
        const spoil = fc.oneof(
          fc.record({ how: fc.constant("cut" as const), at: fc.nat(original.length - 1), length: fc.constant(0) }),
          fc.record({
            how: fc.constant("zero" as const),
            at: fc.nat(original.length - 1),
            length: fc.integer({ min: 1, max: 600 })
          }),
          fc.record({ how: fc.constant("flip" as const), at: fc.nat(original.length - 1), length: fc.nat(7) }),
          fc.record({
            how: fc.constant("remove" as const),
            at: fc.nat(original.length - 1),
            length: fc.integer({ min: 1, max: 600 })
          }),
          fc.record({
            how: fc.constant("double" as const),
            at: fc.nat(original.length - 1),
            length: fc.integer({ min: 1, max: 600 })
          })
        )
        const cases = fc.sample(fc.tuple(spoil, fc.boolean()), { numRuns: 60, seed: 11 })
        for (const [{ at, how, length }, withIndex] of cases) {
          const session = `${folder}/s`
          fs.rmSync(session, { recursive: true, force: true })
          fs.cpSync(pristine, session, { recursive: true })
          let bytes = Buffer.from(original)
          if (how === "cut") bytes = bytes.subarray(0, at)
          if (how === "zero") bytes.fill(0, at, Math.min(bytes.length, at + length))
          if (how === "flip") bytes[at] = (bytes[at] ?? 0) ^ (1 << length)
          if (how === "remove") bytes = Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + length)])
          if (how === "double") bytes = Buffer.concat([bytes.subarray(0, at + length), bytes.subarray(at)])
          fs.writeFileSync(segmentIn(session), bytes)
          if (!withIndex) fs.rmSync(`${journalIn(session)}/index.db`)
          const what = `${how} at ${at}, ${length}, ${withIndex ? "with" : "without"} index`
          // Whole: what lies before the damage. (An index may be the only one to know of a commit behind it.)
          const wholeBefore = ends.filter((end) => end <= at).length
          const read = yield* reading(session, (reader) => reader.entries({ conversation: "c1" }))
          for (const item of read) expect(JSON.stringify(item), what).toBe(texts.get(item.id))
          const wholeIDs = ids(expected).slice(0, Math.max(0, wholeBefore - 1))
          expect(ids(read), what).toEqual(expect.arrayContaining([...wholeIDs]))
          const opened = yield* Effect.result(writing(session, (storage) =>
            Effect.gen(function*() {
              for (const item of yield* storage.entries({ conversation: "c1" })) {
                expect(JSON.stringify(item), what).toBe(texts.get(item.id))
              }
              yield* storage.commit(batch({ entries: [entry(100)] }))
            })))
          if (opened._tag === "Failure") expect(opened.failure.kind, what).toBe("corrupt")
          const report = yield* repair(session)
          expect(report.findings.faults.length > 0, what).toBe(opened._tag === "Failure")
          yield* writing(session, (storage) =>
            Effect.gen(function*() {
              const found = yield* storage.entries({ conversation: "c1" })
              expect(ids(found), what).toEqual(expect.arrayContaining([...ids(read)]))
              for (const item of found) {
                if (item.kind !== "bezel.repair" && item.id !== "e100") {
                  expect(JSON.stringify(item), what).toBe(texts.get(item.id))
                }
              }
              yield* storage.commit(batch({ entries: [entry(200)] }))
            }))
          expect((yield* inspectSession(session)).faults, what).toEqual([])
        }
      })
    ))
})

describe("repairing a session in SQLite", () => {
  const change = (folder: string, sql: string): void => {
    const database = new DatabaseSync(databaseIn(folder))
    database.exec(sql)
    database.exec("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()
  }

  it.effect("sets damaged records aside, keeps all others, and ends what was under way", () =>
    withFolder((folder) =>
      Effect.gen(function*() {
        yield* writingSqlite(folder, fill)
        change(
          folder,
          `UPDATE entries SET record = substr(record, 1, 20) WHERE ordinal = 5;
          UPDATE document_states SET value = substr(value, 1, 4) WHERE sequence = 6 AND document LIKE '"rewind%'`
        )
        const before = fs.readFileSync(databaseIn(folder))
        const would = yield* repair(folder, true)
        expect(would.findings.faults).toEqual([
          expect.stringMatching(/session\.db: entry e5 cannot be read back/),
          expect.stringMatching(/a change of document "rewindable:c1" cannot be read back/)
        ])
        const report = yield* repair(folder)
        expect(report.steps).toEqual(would.steps)
        expect(report.steps).toEqual([
          "keeps 9 entries that are whole, up to commit 12",
          "sets 7 damaged records aside",
          'puts document "rewindable:c1" back to what it was at commit 5',
          "ends task t13 (bezel.tool) as orphaned",
          "ends input i11 (placed) as unanswered",
          "ends input i12 (queued) as unanswered"
        ])
        expect(report.kept).toBe(`${databaseIn(folder)}.damaged-20260102T030405Z`)
        expect(fs.readFileSync(report.kept ?? "")).toEqual(before)
        yield* writingSqlite(folder, (storage) =>
          Effect.gen(function*() {
            const found = yield* storage.entries({ conversation: "c1" })
            expect(ids(found)).toEqual(["e1", "e2", "e3", "e4", "e6", "e7", "e8", "e9", "e10", "e14"])
            expect(yield* storage.document("rewindable:c1")).toEqual({ n: 4 })
            expect(yield* storage.document("sticky:c1")).toMatchObject({ turn: null, usage: { input: 10 } })
            expect([yield* storage.liveTasks, yield* storage.liveInputs]).toEqual([[], []])
            expect([yield* storage.sequence, yield* storage.nextID]).toEqual([13, 15])
            yield* storage.commit(batch({ entries: [entry(15)] }))
          }))
        expect((yield* inspectSession(folder)).faults).toEqual([])
        expect(fs.statSync(databaseIn(folder)).mode & 0o777).toBe(0o600)
      })
    ))

  it.effect("says so when nothing can be read, and leaves the file as it is", () =>
    withFolder((folder) =>
      Effect.gen(function*() {
        fs.writeFileSync(databaseIn(folder), "not a database".repeat(1_000))
        const report = yield* repair(folder)
        expect(report).toMatchObject({
          kept: null,
          steps: [expect.stringMatching(/nothing/)],
          findings: { unreadable: true }
        })
        expect(fs.readFileSync(databaseIn(folder), "utf8")).toBe("not a database".repeat(1_000))
      })
    ))

  it.effect("of bytes zeroed or flipped anywhere crashes nowhere and invents nothing", () =>
    withFolder((folder) =>
      Effect.gen(function*() {
        const pristine = `${folder}/pristine`
        fs.mkdirSync(pristine)
        yield* writingSqlite(pristine, (storage) =>
          Effect.gen(function*() {
            yield* fill(storage)
            for (const ordinal of range(60, 20)) {
              yield* storage.commit(batch({ entries: [entry(ordinal, { data: "x".repeat(900) })] }))
            }
          }))
        change(pristine, "")
        const original = fs.readFileSync(databaseIn(pristine))
        const spoil = fc.record({
          at: fc.nat(original.length - 1),
          length: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 9_000 })),
          bit: fc.nat(7)
        })
        let repaired = 0
        for (const { at, bit, length } of fc.sample(spoil, { numRuns: 60, seed: 5 })) {
          const session = `${folder}/s`
          fs.rmSync(session, { recursive: true, force: true })
          fs.mkdirSync(session)
          const bytes = Buffer.from(original)
          if (length === 0) bytes[at] = (bytes[at] ?? 0) ^ (1 << bit)
          else bytes.fill(0, at, Math.min(bytes.length, at + length))
          fs.writeFileSync(databaseIn(session), bytes)
          const what = `${length === 0 ? `bit ${bit}` : `${length} bytes`} at ${at}`
          const report = yield* Effect.result(repair(session))
          if (report._tag === "Failure") {
            expect(report.failure, what).toMatchObject({
              kind: expect.stringMatching(/corrupt|newer_version|older_version/)
            })
            continue
          }
          if (report.success.findings.unreadable) continue
          repaired++
          const again = yield* inspectSession(session)
          expect(again.faults, what).toEqual([])
          yield* writingSqlite(session, (storage) =>
            Effect.gen(function*() {
              expect((yield* storage.entries({ conversation: "c1" })).length, what).toBeLessThanOrEqual(71)
              yield* storage.commit(batch({ entries: [entry(500)] }))
            }))
        }
        expect(repaired).toBeGreaterThan(35)
      })
    ))

  it.effect("is refused while somebody has the session open", () =>
    withFolder((folder) =>
      Effect.gen(function*() {
        yield* writing(folder, fill)
        const lease = new DatabaseSync(`${folder}/lease.db`)
        lease.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE")
        fs.writeFileSync(`${folder}/lease.json`, JSON.stringify({ pid: process.pid, startedAt: "", command: "bezel" }))
        expect(yield* Effect.flip(repair(folder))).toMatchObject({ _tag: "SessionInUse", holder: { pid: process.pid } })
        lease.close()
        expect((yield* readingSqlite(folder, () => Effect.void).pipe(Effect.flip)).kind).toBe("not_found")
      })
    ))
})
