import { repairSession, SessionStorage } from "@bezel/core/storage"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { checkSessions, repairText } from "../../../packages/cli/src/command/session-repair.ts"
import { batch, entry } from "../../core/storage/batches.ts"

const withData = <A, E>(body: (data: string) => Effect.Effect<A, E>) =>
  Effect.acquireUseRelease(
    Effect.sync(() => fs.mkdtempSync(path.join(os.tmpdir(), "bezel-data-"))),
    body,
    (data) => Effect.sync(() => fs.rmSync(data, { recursive: true, force: true }))
  )

const write = (data: string, id: string, format: "sqlite" | "jsonl") =>
  Effect.scoped(Effect.gen(function*() {
    const storage = yield* Effect.flatMap(SessionStorage, (files) => files.write(id))
    for (const ordinal of [1, 2, 3]) yield* storage.commit(batch({ entries: [entry(ordinal)], nextID: ordinal + 1 }))
  })).pipe(Effect.provide(SessionStorage.layer({ directory: data, format })))

describe("a look at all sessions", () => {
  it.effect("names each damaged one with what is wrong and what to do, and reads the others", () =>
    withData((data) =>
      Effect.gen(function*() {
        expect(yield* checkSessions(data, 10_000)).toEqual({ looked: 0, all: 0, damaged: [] })
        yield* write(data, "ses_1", "jsonl")
        yield* write(data, "ses_2", "sqlite")
        yield* write(data, "ses_3", "sqlite")
        const segment = path.join(data, "sessions/ses_1/journal/000001.jsonl")
        fs.writeFileSync(segment, fs.readFileSync(segment, "utf8").replace('"e2"', '"e9"'))
        fs.writeFileSync(path.join(data, "sessions/ses_3/session.db"), "x".repeat(9_000))
        const check = yield* checkSessions(data, 10_000)
        expect(check).toMatchObject({ looked: 3, all: 3 })
        expect(check.damaged.map((item) => item.message)).toEqual([
          expect.stringMatching(/^session ses_3: .*session\.db.*bezel session remove ses_3$/),
          expect.stringMatching(
            /^session ses_1: .*000001\.jsonl: lines 4–5 are damaged; commit 2 is gone; run: bezel session repair ses_1$/
          )
        ])
        expect(yield* checkSessions(data, -1)).toMatchObject({ looked: 0, all: 3 })
      })
    ))

  it.effect("is followed by a repair that says what it would do, then does it, then finds nothing", () =>
    withData((data) =>
      Effect.gen(function*() {
        yield* write(data, "ses_1", "jsonl")
        const folder = path.join(data, "sessions/ses_1")
        const segment = path.join(folder, "journal/000001.jsonl")
        fs.writeFileSync(segment, fs.readFileSync(segment, "utf8").replace('"e2"', '"e9"'))
        const would = repairText("ses_1", yield* repairSession(folder, { dryRun: true, at: 0 }), true)
        expect(would).toContain("→ keeps 2 entries that are whole, up to commit 3\n→ marks where commit 2 was\n")
        expect(would).toContain("nothing was changed; `bezel session repair ses_1` does it")
        const done = repairText("ses_1", yield* repairSession(folder, { at: 0 }), false)
        expect(done).toContain(`as it was, it is kept in ${folder}/journal.damaged-19700101T000000Z`)
        expect(repairText("ses_1", yield* repairSession(folder, { at: 0 }), false)).toBe(
          "session ses_1 is whole; nothing to repair\n"
        )
        expect((yield* checkSessions(data, 10_000)).damaged).toEqual([])
      })
    ))
})
