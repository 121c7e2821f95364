/** What every storage backend must do, from outside. Each backend's test runs this text over itself. */
import type { JsonValue, Operation } from "@bezel/core/json"
import type { Storage, StorageError, StorageReader } from "@bezel/core/storage"
import { describe, expect, it } from "@effect/vitest"
import { Effect, type Scope } from "effect"
import * as fc from "fast-check"
import { batch, entry, input, task } from "./batches.ts"

/** One session that can be opened for writing, again and again, and read beside its writer. */
export interface Backend {
  readonly write: Effect.Effect<Storage, StorageError, Scope.Scope>
  readonly read: Effect.Effect<StorageReader, StorageError, Scope.Scope>
}

/** Texts that a careless encoding loses. */
const awkward = 'line\u2028para\u2029nel\u0085 cr\r\nlf\n nul\0 lone \ud800 and \udc00 pair \ud83d\ude00 quote" \\'

const ids = (records: ReadonlyArray<{ readonly id: string }>): ReadonlyArray<string> =>
  records.map((record) => record.id)

/** `frames`: how many commits the long stream has; fewer where each waits for the disk, which others may keep busy. */
export const storageConformance = (
  name: string,
  backend: Effect.Effect<Backend, never, Scope.Scope>,
  { frames = 10_000 }: { readonly frames?: number } = {}
): void => {
  const check = <E>(title: string, body: (backend: Backend) => Effect.Effect<void, E, Scope.Scope>): void => {
    it.effect(title, () => Effect.scoped(Effect.flatMap(backend, body)))
  }

  describe(name, () => {
    check("starts empty", (backend) =>
      Effect.gen(function*() {
        const storage = yield* backend.write
        expect(yield* storage.sequence).toBe(0)
        expect(yield* storage.nextID).toBe(1)
        expect(yield* storage.conversation("c1")).toBeNull()
        expect(yield* storage.conversations).toEqual([])
        expect(yield* storage.entry("e1")).toBeNull()
        expect(yield* storage.entries({ conversation: "c1" })).toEqual([])
        expect(yield* storage.task("t1")).toBeNull()
        expect(yield* storage.liveTasks).toEqual([])
        expect(yield* storage.input("i1")).toBeNull()
        expect(yield* storage.inputByRequest("r")).toBeNull()
        expect(yield* storage.liveInputs).toEqual([])
        expect(yield* storage.document("d")).toBeNull()
        expect(yield* storage.documentAt("d", 5)).toBeNull()
        expect(yield* storage.sequenceOf("e1")).toBeNull()
        expect(yield* storage.history(0, 10)).toEqual([])
      }))

    check(
      "gives each commit the next sequence, and keeps everything for whoever opens it again",
      (backend) =>
        Effect.gen(function*() {
          const conversation = { id: "c1", parent: null, owner: null, createdAt: 5 }
          const one = entry(1, {
            data: { a: [1, null, true] },
            model: [{ role: "user", content: [{ type: "text", text: "hello" }] }]
          })
          yield* Effect.scoped(Effect.gen(function*() {
            const storage = yield* backend.write
            expect(yield* storage.commit(batch({ conversations: [conversation], entries: [one], nextID: 2 }))).toBe(1)
            expect(
              yield* storage.commit(batch({ tasks: [task(2)], inputs: [input(3, { requestID: "r1" })], nextID: 4 }))
            ).toBe(2)
          }))
          const storage = yield* backend.write
          expect(yield* storage.sequence).toBe(2)
          expect(yield* storage.nextID).toBe(4)
          expect(yield* storage.conversations).toEqual([conversation])
          expect(yield* storage.conversation("c1")).toEqual(conversation)
          expect(yield* storage.entry("e1")).toEqual(one)
          expect(yield* storage.sequenceOf("e1")).toBe(1)
          expect(yield* storage.task("t2")).toEqual(task(2))
          expect(yield* storage.inputByRequest("r1")).toEqual(input(3, { requestID: "r1" }))
          expect(yield* storage.commit(batch({ entries: [entry(4)], nextID: 5 }))).toBe(3)
        })
    )

    check("never lowers the next id", (backend) =>
      Effect.gen(function*() {
        const storage = yield* backend.write
        yield* storage.commit(batch({ nextID: 10 }))
        yield* storage.commit(batch({ nextID: 3 }))
        expect(yield* storage.nextID).toBe(10)
      }))

    check("scans entries by conversation, bounds, kind, head, order and limit", (backend) =>
      Effect.gen(function*() {
        const storage = yield* backend.write
        yield* storage.commit(batch({
          entries: [
            entry(1),
            entry(2, { kind: "tool" }),
            entry(3, { conversation: "c2" }),
            entry(5, { head: { after: null } }),
            entry(6, { kind: "tool" }),
            entry(9)
          ]
        }))
        const scan = (parts: object) => Effect.map(storage.entries({ conversation: "c1", ...parts }), ids)
        expect(yield* scan({})).toEqual(["e1", "e2", "e5", "e6", "e9"])
        expect(yield* scan({ newestFirst: true, limit: 2 })).toEqual(["e9", "e6"])
        expect(yield* scan({ limit: 2 })).toEqual(["e1", "e2"])
        expect(yield* scan({ after: 2, before: 9 })).toEqual(["e5", "e6"])
        expect(yield* scan({ after: 4 })).toEqual(["e5", "e6", "e9"])
        expect(yield* scan({ kind: "tool" })).toEqual(["e2", "e6"])
        expect(yield* scan({ heads: true, newestFirst: true, limit: 1 })).toEqual(["e5"])
        expect(yield* scan({ kind: "tool", heads: true })).toEqual([])
        expect(yield* scan({ limit: 0 })).toEqual([])
        expect(ids(yield* storage.entries({ conversation: "c2" }))).toEqual(["e3"])
      }))

    check(
      "replaces tasks and inputs whole, and lists those that are live by ordinal",
      (backend) =>
        Effect.gen(function*() {
          const storage = yield* backend.write
          yield* storage.commit(
            batch({
              tasks: [task(5), task(2, { status: "running" }), task(3)],
              inputs: [input(7), input(4, { requestID: "r" })]
            })
          )
          yield* storage.commit(
            batch({
              tasks: [task(3, { status: "completed", result: 1 })],
              inputs: [input(4, { requestID: "r", status: "done", answer: "e9" })]
            })
          )
          expect(ids(yield* storage.liveTasks)).toEqual(["t2", "t5"])
          expect(ids(yield* storage.liveInputs)).toEqual(["i7"])
          expect(yield* storage.task("t3")).toEqual(task(3, { status: "completed", result: 1 }))
          expect((yield* storage.inputByRequest("r"))?.status).toBe("done")
          yield* storage.commit(batch({ inputs: [input(7, { status: "placed" })] }))
          expect(ids(yield* storage.liveInputs)).toEqual(["i7"])
        })
    )

    check("refuses to change an entry, stores nothing of that batch, and goes on", (backend) =>
      Effect.gen(function*() {
        const storage = yield* backend.write
        yield* storage.commit(batch({ entries: [entry(1)], nextID: 2 }))
        const bad = batch({
          entries: [entry(2), entry(1, { data: "changed" })],
          tasks: [task(3)],
          documents: [{ document: "d", base: 1, retained: false }],
          events: ["x"],
          nextID: 9
        })
        expect((yield* Effect.flip(storage.commit(bad))).message).toMatch(/e1 .*never change/)
        expect((yield* Effect.flip(storage.commit(batch({ entries: [entry(1, { id: "other" })] })))).message).toMatch(
          /ordinal 1/
        )
        expect(yield* storage.sequence).toBe(1)
        expect(yield* storage.nextID).toBe(2)
        expect(ids(yield* storage.entries({ conversation: "c1" }))).toEqual(["e1"])
        expect((yield* storage.entry("e1"))?.data).toBeNull()
        expect(yield* storage.liveTasks).toEqual([])
        expect(yield* storage.document("d")).toBeNull()
        expect(yield* storage.history(0, 10)).toEqual([])
        expect(yield* storage.commit(batch({ entries: [entry(2)] }))).toBe(2)
      }))

    check(
      "finds an entry under an id that does not say where it is, and gives no id twice",
      (backend) =>
        Effect.gen(function*() {
          const storage = yield* backend.write
          yield* storage.commit(
            batch({ entries: [entry(3, { id: "e1", kind: "note" }), entry(4), entry(5, { id: "e02" })], nextID: 6 })
          )
          expect((yield* storage.entry("e1"))?.ordinal).toBe(3)
          expect((yield* storage.entry("e02"))?.ordinal).toBe(5)
          expect(yield* storage.entry("e3")).toBeNull()
          expect(yield* storage.entry("e2")).toBeNull()
          expect(yield* storage.sequenceOf("e1")).toBe(1)
          for (
            const taken of [entry(1), entry(6, { id: "e1" }), entry(7, { id: "e4" }), entry(3), entry(8, { id: "e02" })]
          ) {
            expect((yield* Effect.flip(storage.commit(batch({ entries: [taken] })))).message).toMatch(/never change/)
          }
          yield* storage.commit(batch({ entries: [entry(2), entry(9, { id: "e8" })], nextID: 10 }))
          expect(ids(yield* storage.entries({ conversation: "c1" }))).toEqual(["e2", "e1", "e4", "e02", "e8"])
          expect(ids(yield* storage.entries({ conversation: "c1", newestFirst: true, limit: 4 }))).toEqual([
            "e8",
            "e02",
            "e4",
            "e1"
          ])
        })
    )

    check("refuses a request id that names another input", (backend) =>
      Effect.gen(function*() {
        const storage = yield* backend.write
        yield* storage.commit(batch({ inputs: [input(1, { requestID: "r" })] }))
        yield* Effect.flip(storage.commit(batch({ inputs: [input(2, { requestID: "r" })], events: ["x"] })))
        expect((yield* storage.inputByRequest("r"))?.id).toBe("i1")
        expect(yield* storage.input("i2")).toBeNull()
      }))

    check(
      "keeps every text byte-exact, and tells request ids with lone surrogates apart",
      (backend) =>
        Effect.gen(function*() {
          yield* Effect.scoped(Effect.gen(function*() {
            const storage = yield* backend.write
            yield* storage.commit(batch({
              entries: [
                entry(1, {
                  kind: awkward,
                  data: { [awkward]: awkward },
                  model: [{ role: "user", content: [{ type: "text", text: awkward }] }]
                })
              ],
              inputs: [
                input(2, { requestID: "\ud800" }),
                input(3, { requestID: "\ud801" }),
                input(4, { requestID: awkward })
              ],
              documents: [{ document: awkward, base: awkward, retained: true }],
              events: [awkward]
            }))
          }))
          const storage = yield* backend.write
          const stored = yield* storage.entry("e1")
          expect(stored?.data).toEqual({ [awkward]: awkward })
          expect(stored?.model).toEqual([{ role: "user", content: [{ type: "text", text: awkward }] }])
          expect(ids(yield* storage.entries({ conversation: "c1", kind: awkward }))).toEqual(["e1"])
          expect((yield* storage.inputByRequest("\ud800"))?.id).toBe("i2")
          expect((yield* storage.inputByRequest("\ud801"))?.id).toBe("i3")
          expect((yield* storage.inputByRequest(awkward))?.id).toBe("i4")
          expect(yield* storage.document(awkward)).toBe(awkward)
          expect((yield* storage.history(0, 1))[0]?.events).toEqual([awkward])
        })
    )

    check("keeps an entry of 1.7 MB", (backend) =>
      Effect.gen(function*() {
        const text = `${awkward}0123456789`.repeat(20_000)
        const storage = yield* backend.write
        expect(text.length).toBeGreaterThan(1_200_000)
        yield* storage.commit(batch({ entries: [entry(1, { data: text + "x".repeat(1_700_000) })] }))
        expect((yield* storage.entry("e1"))?.data).toBe(text + "x".repeat(1_700_000))
      }))

    check("detaches what is stored from what was given and from what is read", (backend) =>
      Effect.gen(function*() {
        const storage = yield* backend.write
        const data: { list: Array<JsonValue> } = { list: [1] }
        yield* storage.commit(
          batch({
            entries: [entry(1, { data })],
            documents: [{ document: "d", base: data, retained: false }],
            events: [data]
          })
        )
        data.list.push(2)
        expect((yield* storage.entry("e1"))?.data).toEqual({ list: [1] })
        expect((yield* storage.history(0, 1))[0]?.events).toEqual([{ list: [1] }])
      }))

    check("applies changes of a document in order, several in one batch too", (backend) =>
      Effect.gen(function*() {
        const storage = yield* backend.write
        yield* storage.commit(
          batch({ documents: [{ document: "d", base: { a: 1 }, operations: [["set", ["b"], 2]], retained: false }] })
        )
        expect(yield* storage.document("d")).toEqual({ a: 1, b: 2 })
        yield* storage.commit(batch({
          documents: [
            { document: "d", operations: [["set", ["a"], 5]], retained: false },
            { document: "other", operations: [["replace", [1]]], retained: false },
            { document: "d", operations: [["delete", ["b"]]], retained: false }
          ]
        }))
        expect(yield* storage.document("d")).toEqual({ a: 5 })
        expect(yield* storage.document("other")).toEqual([1])
        yield* storage.commit(
          batch({
            documents: [{ document: "d", operations: [["set", ["a"], 6]], retained: false }, {
              document: "d",
              base: "new",
              retained: false
            }]
          })
        )
        expect(yield* storage.document("d")).toBe("new")
        yield* storage.commit(batch({ documents: [{ document: "d", base: null, retained: false }] }))
        expect(yield* storage.document("d")).toBeNull()
      }))

    check(
      "refuses operations that do not fit their document, and stores nothing of that batch",
      (backend) =>
        Effect.gen(function*() {
          const storage = yield* backend.write
          yield* storage.commit(batch({ documents: [{ document: "d", base: { a: 1 }, retained: false }] }))
          const bad = batch({
            entries: [entry(1)],
            documents: [{ document: "d", operations: [["set", ["a"], 2], ["append", ["a"], "x"]], retained: false }]
          })
          expect((yield* Effect.flip(storage.commit(bad))).message).toMatch(/document "d".*only a string/)
          expect(yield* storage.document("d")).toEqual({ a: 1 })
          expect(yield* storage.entry("e1")).toBeNull()
          yield* storage.commit(
            batch({ documents: [{ document: "d", operations: [["set", ["a"], 3]], retained: false }] })
          )
          expect(yield* storage.document("d")).toEqual({ a: 3 })
        })
    )

    check("reads a retained document as of any commit", (backend) =>
      Effect.gen(function*() {
        const storage = yield* backend.write
        yield* storage.commit(batch({}))
        const text = "x".repeat(3_000)
        yield* storage.commit(batch({ documents: [{ document: "d", base: { n: 2, text: "" }, retained: true }] }))
        for (let sequence = 3; sequence <= 30; sequence++) {
          const operations: ReadonlyArray<Operation> = [["set", ["n"], sequence], ["append", ["text"], text]]
          yield* storage.commit(
            batch({
              documents: [{
                document: "d",
                ...sequence === 20 ? { base: { n: 20, text: "" } } : { operations },
                retained: true
              }]
            })
          )
        }
        expect(yield* storage.documentAt("d", 1)).toBeNull()
        for (let sequence = 2; sequence <= 30; sequence++) {
          const value = yield* storage.documentAt("d", sequence)
          expect(value).toMatchObject({ n: sequence })
        }
        expect(yield* storage.documentAt("d", 99)).toEqual(yield* storage.document("d"))
      }))

    check("says so when a state of a document is not kept any more", (backend) =>
      Effect.gen(function*() {
        const storage = yield* backend.write
        yield* storage.commit(batch({}))
        yield* storage.commit(batch({ documents: [{ document: "d", base: 1, retained: false }] }))
        yield* storage.commit(batch({ documents: [{ document: "d", base: 2, retained: false }] }))
        expect(yield* storage.documentAt("d", 1)).toBeNull()
        expect((yield* Effect.flip(storage.documentAt("d", 2))).kind).toBe("not_found")
        expect(yield* storage.documentAt("d", 3)).toBe(2)
      }))

    check(
      `streams ${frames.toLocaleString("en")} frames into a document, and reads it back from a fresh opening`,
      (backend) =>
        Effect.gen(function*() {
          yield* Effect.scoped(Effect.gen(function*() {
            const storage = yield* backend.write
            yield* storage.commit(
              batch({ documents: [{ document: "d", base: { parts: [{ text: "" }] }, retained: false }] })
            )
            for (let index = 0; index < frames; index++) {
              yield* storage.commit(
                batch({
                  documents: [{
                    document: "d",
                    operations: [["append", ["parts", 0, "text"], `frame${index % 10}`]],
                    retained: false
                  }]
                })
              )
            }
          }))
          const storage = yield* backend.write
          expect(yield* storage.sequence).toBe(frames + 1)
          expect(yield* storage.document("d")).toEqual({
            parts: [{ text: Array.from({ length: frames }, (_, index) => `frame${index % 10}`).join("") }]
          })
        })
    )

    check("shows the history of commits that have events, from a sequence on", (backend) =>
      Effect.gen(function*() {
        const storage = yield* backend.write
        yield* storage.commit(batch({ events: [{ type: "a" }], at: 11 }))
        yield* storage.commit(batch({}))
        yield* storage.commit(batch({ events: [{ type: "b" }, { type: "c" }], at: 5 }))
        yield* storage.commit(batch({ events: [{ type: "d" }], at: 14 }))
        expect(yield* storage.history(0, 10)).toEqual([
          { sequence: 1, at: 11, events: [{ type: "a" }] },
          { sequence: 3, at: 5, events: [{ type: "b" }, { type: "c" }] },
          { sequence: 4, at: 14, events: [{ type: "d" }] }
        ])
        expect((yield* storage.history(1, 1)).map((item) => item.sequence)).toEqual([3])
        expect(yield* storage.history(4, 10)).toEqual([])
      }))

    check(
      "keeps the order of entries that were written in one millisecond, or by a clock that went back",
      (backend) =>
        Effect.gen(function*() {
          const storage = yield* backend.write
          yield* storage.commit(
            batch({ entries: Array.from({ length: 1_000 }, (_, index) => entry(index + 1, { createdAt: 7 })) })
          )
          yield* storage.commit(batch({ entries: [entry(1_001, { createdAt: -600_000 })] }))
          const found = yield* storage.entries({ conversation: "c1" })
          expect(found.map((item) => item.ordinal)).toEqual(Array.from({ length: 1_001 }, (_, index) => index + 1))
        })
    )

    check("lets a reader see whole commits beside the writer, at once", (backend) =>
      Effect.gen(function*() {
        const storage = yield* backend.write
        yield* storage.commit(
          batch({ entries: [entry(1)], documents: [{ document: "d", base: { n: 1 }, retained: false }], nextID: 2 })
        )
        const reader = yield* backend.read
        expect(yield* reader.sequence).toBe(1)
        yield* storage.commit(
          batch({
            entries: [entry(2)],
            documents: [{ document: "d", operations: [["set", ["n"], 2]], retained: false }],
            nextID: 3
          })
        )
        expect(yield* reader.sequence).toBe(2)
        expect(yield* reader.nextID).toBe(3)
        expect(ids(yield* reader.entries({ conversation: "c1" }))).toEqual(["e1", "e2"])
        expect(yield* reader.document("d")).toEqual({ n: 2 })
      }))

    check("agrees with a model of itself after any batches", (backend) =>
      Effect.gen(function*() {
        const change = fc.record({
          document: fc.constantFrom("a", "b"),
          base: fc.option(fc.jsonValue({ maxDepth: 2 }), { nil: undefined }),
          text: fc.string({ maxLength: 40_000 }),
          retained: fc.boolean()
        })
        const batches = fc.sample(fc.array(change, { maxLength: 3 }), { numRuns: 60, seed: 7 })
        const expected = new Map<string, JsonValue>()
        yield* Effect.scoped(Effect.gen(function*() {
          const storage = yield* backend.write
          for (const [index, changes] of batches.entries()) {
            yield* storage.commit(batch({
              entries: [entry(index + 1)],
              documents: changes.map(({ base, document, retained, text }) => {
                const value: JsonValue = base === undefined ? { text } : JSON.parse(JSON.stringify(base))
                expected.set(document, value)
                return base === undefined
                  ? { document, operations: [["replace", value]], retained }
                  : { document, base: value, retained }
              })
            }))
          }
        }))
        const storage = yield* backend.write
        for (const [document, value] of expected) expect(yield* storage.document(document)).toEqual(value)
        expect(yield* storage.sequence).toBe(batches.length)
      }))
  })
}
