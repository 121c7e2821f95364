/**
 * A process that opens a session, as a second Bezel would. Arguments: what to do (`write` or `read`), the data directory, the
 * session. Prints one JSON line when it has done it (`{"ready":…}` or `{"error":…}`), then does what each line on stdin says:
 * `commit` stores an entry and prints its sequence; `end` closes properly.
 */
import { SessionStorage, type Storage } from "@bezel/core/storage"
import * as Effect from "effect/Effect"
import { createInterface } from "node:readline"
import { batch, entry } from "./batches.ts"

const [, , mode = "", directory = "", sessionID = ""] = process.argv

const say = (value: unknown): Effect.Effect<void> => Effect.sync(() => void process.stdout.write(`${JSON.stringify(value)}\n`))

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
    return yield* Effect.flatMap(files.write(sessionID), serve)
  })).pipe(
    Effect.catch((error) => say({ error: { ...error } })),
    Effect.provide(SessionStorage.layer({ directory }))
  )
)
process.exit(0)
