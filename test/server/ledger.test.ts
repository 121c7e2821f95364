import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { makeLedger, sweep } from "../../packages/server/src/process/ledger.ts"

const temporary = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "bezel-ledger-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
)

describe("the ledger of session hosts", () => {
  it.live("is swept of what a coordinator that is gone has left, whatever else lies there or is taken away meanwhile", () =>
    Effect.gen(function*() {
      const folder = yield* temporary
      const owner = { pid: 2 ** 30, start: "never" }
      writeFileSync(
        join(folder, "left.json"),
        JSON.stringify({ mark: "left", owner, process: null, socket: join(folder, "socket") })
      )
      writeFileSync(join(folder, "damaged.json"), "{")
      mkdirSync(join(folder, "folder.json"))
      symlinkSync(join(folder, "nowhere"), join(folder, "gone.json"))
      makeLedger(folder).open("own", join(folder, "own"))
      expect(yield* sweep(folder)).toBe(1)
      expect(readdirSync(folder).sort()).toEqual(["damaged.json", "folder.json", "gone.json", "own.json"])
    }).pipe(Effect.scoped))

  it.live("leaves nothing of an entry that could not be written", () =>
    Effect.gen(function*() {
      const folder = yield* temporary
      mkdirSync(join(folder, "a.json"))
      expect(() => makeLedger(folder).open("a", "socket")).toThrow()
      expect(readdirSync(folder)).toEqual(["a.json"])
    }).pipe(Effect.scoped))
})
