/** Opens the session in a file, until it could be shown and worked on, and prints how long that took and what it holds. */
import { openSqlite } from "@bezel/core/storage"
import { makeToolRegistry } from "@bezel/core/tool"
import { openHarness } from "@bezel/core/turn"
import * as Effect from "effect/Effect"
import { makeMemoryStorage } from "../packages/core/src/storage/index.ts"
import { scriptedModel } from "../packages/core/src/testing/model.ts"

const [file = ""] = process.argv.slice(2)

const opened = (storage: Parameters<typeof openHarness>[0]) =>
  Effect.gen(function*() {
    const harness = yield* openHarness(storage, {
      sessionID: "ses_bench",
      models: scriptedModel([]).source,
      tools: yield* makeToolRegistry(),
      artifact: () => Effect.die(new Error("none"))
    })
    yield* harness.resume
    return { harness, shown: yield* harness.main.snapshot }
  })

await Effect.runPromise(Effect.scoped(Effect.gen(function*() {
  // Code is loaded and run once, so that the session alone is measured.
  yield* Effect.scoped(opened(makeMemoryStorage()))
  yield* Effect.scoped(Effect.flatMap(openSqlite(":memory:"), opened))
  const started = performance.now()
  const session = yield* Effect.flatMap(openSqlite(file, { durability: "process" }), opened)
  const milliseconds = performance.now() - started
  globalThis.gc?.()
  const heap = process.memoryUsage().heapUsed / 1_048_576
  console.log(JSON.stringify({ milliseconds, heap, entries: session.shown.view.entries.length }))
})))
