/** A wall clock that jumps while a session changes files: whose a change is, is told by times, and those may lie. */
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import { vi } from "vitest"
import { Journal, type Line } from "../../../packages/plugins/src/history/journal.ts"
import { bash, edit, world } from "./fixture.ts"

const hour = 3_600_000
const year = 8_760 * hour

/** The wall clock, and that of the file system as the journal reads it, off by so much until told otherwise. */
const skewed = (millis: number) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const clock: { offset: number; onAppend: (lines: ReadonlyArray<Line>) => void } = {
        offset: millis,
        onAppend: () => {}
      }
      const now = Date.now.bind(Date)
      vi.spyOn(Date, "now").mockImplementation(() => now() + clock.offset)
      const append = Journal.prototype.append
      vi.spyOn(Journal.prototype, "append").mockImplementation(function(this: Journal, ...lines) {
        const at = append.apply(this, lines) + clock.offset
        clock.onAppend(lines)
        return at
      })
      return clock
    }),
    () => Effect.sync(() => vi.restoreAllMocks())
  )

const begins = (lines: ReadonlyArray<Line>) => lines.some((line) => line.type === "began" && line.path === undefined)

describe("a clock that jumps", () => {
  for (const isRepository of [true, false]) {
    it.live(`back while a command runs: what it changed is in doubt, and nothing is lost, ${isRepository ? "in" : "outside of"} a repository`, () =>
      Effect.gen(function*() {
        const clock = yield* skewed(hour)
        const { ask, file, read, stage } = yield* world(
          [bash("echo session > a.txt; rm gone.txt"), edit("b.txt", "b", "edited"), "done"],
          { files: { "a.txt": "a\n", "b.txt": "b\n", "gone.txt": "g\n" }, isRepository }
        )
        clock.onAppend = (lines) => {
          if (begins(lines)) clock.offset = 0
        }
        yield* ask("go")
        const refused = yield* stage()
        expect(refused.status).toBe("conflict")
        expect(refused.conflicts.map(({ path }) => path)).toEqual([file("a.txt"), file("gone.txt")])
        expect(refused.conflicts[0]?.reason).toContain("the clock was set back")
        expect(read("a.txt")).toBe("session\n")
        expect(yield* stage("last", { conflicts: "keep" })).toMatchObject({ status: "staged" })
        expect([read("a.txt"), read("b.txt"), read("gone.txt")]).toEqual(["session\n", "b\n", null])
      }).pipe(Effect.scoped))
  }

  for (
    const [name, millis] of [["an hour back", -hour], ["ten years back", -10 * year], [
      "ten years ahead",
      10 * year
    ]] as const
  ) {
    it.live(`${name} between two turns: each is taken back, and what was edited by hand in between is not`, () =>
      Effect.gen(function*() {
        const clock = yield* skewed(0)
        const { ask, file, read, stage } = yield* world(
          [bash("echo 1 > a.txt"), "done", edit("b.txt", "b", "2"), bash("echo 3 >> b.txt; echo 3 > c.txt"), "done"],
          { files: { "a.txt": "a\n", "b.txt": "b\n", "c.txt": "c\n", "mine.txt": "m\n" }, isRepository: true }
        )
        yield* ask("first")
        clock.offset = millis
        fs.writeFileSync(file("mine.txt"), "by hand\n")
        fs.writeFileSync(file("c.txt"), "by hand\n")
        yield* ask("second")
        yield* stage("last", { conflicts: "keep" })
        expect(read("mine.txt")).toBe("by hand\n")
        expect(["by hand\n", "3\n"]).toContain(read("c.txt"))
        yield* stage("last", { conflicts: "keep" })
        expect([read("a.txt"), read("mine.txt")]).toEqual(["a\n", "by hand\n"])
      }).pipe(Effect.scoped))
  }
})
