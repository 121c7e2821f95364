/** Writes a session of JSON lines until it is killed: `jsonl-process.ts FOLDER`. Prints each commit that was acknowledged. */
import { openJsonl } from "@bezel/core/storage"
import { Effect } from "effect"
import * as fs from "node:fs"
import { batch, entry } from "./batches.ts"

const [folder = ""] = process.argv.slice(2)

await Effect.runPromise(Effect.scoped(Effect.gen(function*() {
  const storage = yield* openJsonl(folder, { segmentBytes: 20_000 })
  for (let ordinal = yield* storage.nextID;; ordinal++) {
    const sequence = yield* storage.commit(batch({
      entries: [entry(ordinal, { data: "x".repeat(ordinal % 400) })],
      documents: [{ document: "d", base: ordinal, retained: false }],
      nextID: ordinal + 1
    }))
    fs.writeSync(1, `${sequence}\n`)
  }
})))
