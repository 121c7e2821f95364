/**
 * A process that opens a session, as a second Bezel would. Arguments: what to do (`write`, `stream` or `read`), the data
 * directory, the session. Prints one JSON line when it has done it (`{"ready":…}` or `{"error":…}`), then, for `write`, does
 * what each line on stdin says: `commit` stores an entry and prints its sequence; `end` closes properly. `stream` stores
 * entries and a document that agrees with them, printing each sequence, until it is killed.
 */
import { SessionStorage, type Storage } from "@bezel/core/storage"
import * as Effect from "effect/Effect"
import { createInterface } from "node:readline"
import { batch, entry } from "./batches.ts"

const [, , mode = "", directory = "", sessionID = ""] = process.argv

const say = (value: unknown): Effect.Effect<void> =>
  Effect.sync(() => void process.stdout.write(`${JSON.stringify(value)}\n`))

const serve = (storage: Storage) =>
  Effect.gen(function*() {
    const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]()
    yield* say({ ready: yield* storage.sequence })
    for (;;) {
      const line = yield* Effect.promise(() => lines.next())
      if (line.done === true || line.value === "end") return
      const next = yield* storage.nextID
      yield* say({ sequence: yield* storage.commit(batch({ entries: [entry(next)], nextID: next + 1 })) })
    }
  })

const stream = (storage: Storage) =>
  Effect.gen(function*() {
    yield* say({ ready: yield* storage.sequence })
    for (;;) {
      const next = yield* storage.nextID
      const sequence = yield* storage.commit(batch({
        entries: [entry(next, { data: "x".repeat(next * 97 % 5_000) })],
        documents: [{
          document: "d",
          retained: true,
          ...next === 1
            ? { base: { entries: ["e1"] } }
            : { operations: [["splice", ["entries"], next - 1, 0, [`e${next}`]]] }
        }],
        events: [next],
        nextID: next + 1
      }))
      yield* say({ sequence })
      // Lets the line go out before the next commit.
      yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
    }
  })

const read = (files: SessionStorage["Service"]) =>
  Effect.gen(function*() {
    const storage = yield* files.read(sessionID)
    const entries = yield* storage.entries({ conversation: "c1" })
    yield* say({ ready: yield* storage.sequence, entries: entries.map((item) => item.id) })
  })

await Effect.runPromise(
  Effect.scoped(Effect.gen(function*() {
    const files = yield* SessionStorage
    if (mode === "read") return yield* read(files)
    return yield* Effect.flatMap(files.write(sessionID), mode === "stream" ? stream : serve)
  })).pipe(
    Effect.catch((error) => say({ error: { ...error } })),
    Effect.provide(SessionStorage.layer({ directory }))
  )
)
process.exit(0)
