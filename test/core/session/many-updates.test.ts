/** A session whose work has told of its progress tens of thousands of times is as quick to list and open as any other. */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { spawnSync } from "node:child_process"
import { fileURLToPath } from "node:url"
import { directory } from "./store-fixture.ts"

const script = fileURLToPath(new URL("many-updates-process.ts", import.meta.url))

const run = (mode: string, at: string, count: number) => {
  const ran = spawnSync(
    process.execPath,
    ["--max-old-space-size=512", "--no-warnings", script, mode, at, String(count)],
    { encoding: "utf8" }
  )
  expect([ran.status, ran.stderr]).toEqual([0, ""])
  return JSON.parse(ran.stdout)
}

describe("a session with 35,000 updates of work under way", () => {
  it.effect(
    "is listed and opened at once, in a process with a heap of 512 MB",
    () =>
      Effect.gen(function*() {
        const [large, small] = [yield* directory, yield* directory]
        const { id } = run("make", large, 35_000)
        run("make", small, 10)
        const [found, usual] = [run("look", large, 35_000), run("look", small, 10)]
        expect([found.ids, Object.values(found.tasks)]).toEqual([
          [id],
          [{ kind: "test.worker", background: true, status: { step: 35_000 } }]
        ])
        expect(found.listed).toBeLessThan(100 + 3 * usual.listed)
        expect(found.opened).toBeLessThan(300 + 3 * usual.opened)
      }).pipe(Effect.scoped),
    120_000
  )
})
