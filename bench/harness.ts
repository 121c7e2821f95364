/**
 * What a turn costs by itself: no provider, no process, no terminal. Prints one line per scene; `bench/run.ts` has the whole
 * command beside its peers.
 */
import { openSqlite, type Storage } from "@bezel/core/storage"
import { makeToolRegistry, tool } from "@bezel/core/tool"
import { openHarness } from "@bezel/core/turn"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { call, say, scriptedModel, type ScriptedTurn } from "../packages/core/src/testing/model.ts"

const scene = (name: string, script: ReadonlyArray<ScriptedTurn>) =>
  Effect.scoped(Effect.gen(function*() {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), "bezel-bench-"))
    yield* Effect.addFinalizer(() => Effect.sync(() => fs.rmSync(folder, { recursive: true })))
    const storage: Storage = yield* openSqlite(path.join(folder, "session.db"), { durability: "process" })
    let commits = 0
    const counted: Storage = { ...storage, commit: (batch) => Effect.suspend(() => (commits++, storage.commit(batch))) }
    const registry = yield* makeToolRegistry()
    yield* registry.transform({ plugin: "bench", version: "1", order: 0 }, (draft) =>
      draft.set("echo", tool({ description: "Echoes.", input: Schema.Struct({ text: Schema.String }), execute: ({ text }) => Effect.succeed(text) })))
    const harness = yield* openHarness(counted, {
      sessionID: "ses_bench",
      models: scriptedModel(script).source,
      tools: registry,
      artifact: () => Effect.die(new Error("none"))
    })
    yield* harness.resume
    const cpu = process.cpuUsage()
    const started = performance.now()
    const outcome = yield* Effect.flatMap(harness.main.send({ content: [{ type: "text", text: "go" }] }), (input) => input.wait)
    const wall = performance.now() - started
    const used = process.cpuUsage(cpu)
    console.log(`${name}: ${outcome.status} ${wall.toFixed(0)} ms wall, ${((used.user + used.system) / 1000).toFixed(0)} ms CPU, ${commits} commits, ${(wall / commits * 1000).toFixed(0)} µs each`)
  }))

const toolTurns = (count: number): ReadonlyArray<ScriptedTurn> => [
  ...Array.from({ length: count }, (_, n): ScriptedTurn => [call("echo", { text: `${n}` })]),
  "done"
]

await Effect.runPromise(Effect.gen(function*() {
  yield* scene("warm-up", toolTurns(20))
  yield* scene("20 tool turns", toolTurns(20))
  yield* scene("200 tool turns", toolTurns(200))
  yield* scene("1,000 tool turns", toolTurns(1_000))
  yield* scene("20,000 deltas", [[say(...Array.from({ length: 20_000 }, (_, n) => `word${n % 10} `))]])
}))
