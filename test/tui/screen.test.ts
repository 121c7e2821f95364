import { Plugin } from "@bezel/core/host"
import { type Block, text } from "@bezel/tui"
import { it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import { describe, expect, vi } from "vitest"
import { testTerminal } from "./memory-terminal.ts"
import { makeStubSession } from "./stub-session.ts"

/** A screen of rows that the test appends to and changes. */
const openBelow = Effect.fnUntraced(function*(above: string) {
  const session = yield* makeStubSession(() => Effect.void)
  const rows: Array<Block> = []
  let redraw = () => {}
  let redrawAll = () => {}
  const screen = yield* testTerminal({
    presentation: session.presentation,
    plugins: Plugin.sources("tui", [Plugin.define({
      id: "test.rows",
      tui: (ctx) =>
        Effect.gen(function*() {
          redraw = ctx.ui.redraw
          redrawAll = ctx.ui.redrawAll
          yield* ctx.screens.register("chat", {
            title: "Rows",
            open: Effect.succeed({ body: () => [...rows], below: () => [text("the end")] })
          })
        })
    })])
  }, above)
  yield* screen.until("the end")
  const append = (count: number) =>
    Effect.gen(function*() {
      for (const to = rows.length + count; rows.length < to;) rows.push(text(`row ${rows.length + 1}.`))
      redraw()
      yield* screen.until(`row ${rows.length}.\nthe end`)
    })
  return { append, redraw: () => redraw(), redrawAll: () => redrawAll(), rows, screen }
})
const open = openBelow("")

const numbers = (shown: string): ReadonlyArray<number> =>
  [...shown.matchAll(/^row (\d+)\.$/gm)].map((match) => Number(match[1]))
const upTo = (count: number): ReadonlyArray<number> => Array.from({ length: count }, (_, index) => index + 1)

describe("the main screen", () => {
  it.live("stands before what the session brings has come, however long that takes", () =>
    Effect.gen(function*() {
      const session = yield* makeStubSession(() => Effect.void)
      const come = yield* Latch.make()
      const screen = yield* testTerminal({
        presentation: {
          ...session.presentation,
          apply: (change) => Effect.andThen(come.await, session.presentation.apply(change))
        },
        plugins: Plugin.sources("tui", [Plugin.define({
          id: "test.rows",
          tui: (ctx) =>
            ctx.screens.register("chat", {
              title: "Rows",
              open: Effect.succeed({ body: () => [text("a title")], below: () => [text("the end")] })
            })
        })])
      })
      yield* screen.until("a title\nthe end")
      expect(yield* screen.text).not.toContain("No plugin provides")
      yield* come.open
    }))

  it.live("leaves every row in the terminal's history once, however many there are, and clears nothing", () =>
    Effect.gen(function*() {
      const { append, screen } = yield* open
      for (let step = 0; step < 40; step++) yield* append(50)
      expect(numbers(yield* screen.text)).toEqual(upTo(2_000))
      expect(screen.terminal.written).not.toContain("\x1b[3J")
    }))

  it.live("writes little for a new row after many", () =>
    Effect.gen(function*() {
      const { append, screen } = yield* open
      for (let step = 0; step < 10; step++) yield* append(200)
      const before = screen.terminal.written.length
      yield* append(1)
      expect(screen.terminal.written.length - before).toBeLessThan(400)
    }))

  it.live("shows the end for another width, leaves the history as it is, and goes on below it", () =>
    Effect.gen(function*() {
      const { append, screen } = yield* open
      for (let step = 0; step < 10; step++) yield* append(100)
      yield* Effect.sleep(400)
      for (const [columns, rows] of [[20, 30], [200, 12], [60, 24]] as const) {
        const before = screen.terminal.written.length
        screen.terminal.resize(columns, rows)
        yield* Effect.promise(() => vi.waitUntil(() => screen.terminal.written.length > before))
      }
      yield* append(40)
      const seen = numbers(yield* screen.text)
      expect([...new Set(seen)]).toEqual(upTo(1_040))
      // What was on the screens of other sizes is there again, and nothing else.
      expect(seen.length).toBeLessThan(1_040 + 3 * 30)
      expect((yield* screen.text).split("\n").slice(-24)).toEqual(
        [...upTo(1_040).slice(-23).map((row) => `row ${row}.`), "the end"]
      )
      expect(screen.terminal.written).not.toContain("\x1b[2J")
      expect(screen.terminal.written).not.toContain("\x1b[3J")
    }))

  it.live("writes nothing of a shell's rows away when its size changes while all of it is on the screen", () =>
    Effect.gen(function*() {
      const { append, screen } = yield* openBelow("$ ls\r\na.txt\r\n$ bezel\r\n")
      yield* append(3)
      for (const [columns, rows] of [[60, 20], [100, 30], [40, 12]] as const) {
        const before = screen.terminal.written.length
        screen.terminal.resize(columns, rows)
        yield* Effect.promise(() => vi.waitUntil(() => screen.terminal.written.length > before))
        expect((yield* screen.text).trimEnd()).toBe("$ ls\na.txt\n$ bezel\nrow 1.\nrow 2.\nrow 3.\nthe end")
      }
    }))

  it.live("leaves what has scrolled away as it was when it changes by itself, and goes on below it", () =>
    Effect.gen(function*() {
      const { append, redraw, rows, screen } = yield* open
      for (let step = 0; step < 10; step++) yield* append(100)
      rows[4] = text("changed")
      redraw()
      yield* append(1)
      rows.splice(7, 1)
      rows.splice(20, 0, text("new"), text("new"), text("new"))
      rows.splice(990, 1, text("near"))
      rows.push(text("row 1002."))
      redraw()
      yield* screen.until("row 1002.\nthe end")
      expect(numbers(yield* screen.text).filter((row) => row !== 989)).toEqual(upTo(1_002).filter((row) => row !== 989))
      rows.push(...Array.from({ length: 500 }, (_, index) => text(`row ${index + 1_003}.`)))
      redraw()
      yield* screen.until("row 1502.\nthe end")
      expect(new Set(numbers(yield* screen.text)).size).toBeGreaterThanOrEqual(1_501)
      expect(screen.terminal.written).not.toContain("\x1b[2J")
      expect(screen.terminal.written).not.toContain("\x1b[3J")
    }))

  it.live("begins another document below the one before, which stays", () =>
    Effect.gen(function*() {
      const { append, redrawAll, rows, screen } = yield* open
      for (let step = 0; step < 3; step++) yield* append(100)
      rows.splice(0, rows.length, text("another"), text("document"))
      redrawAll()
      yield* screen.until("row 299.\nrow 300.\nanother\ndocument\nthe end")
      rows.push(...Array.from({ length: 200 }, (_, index) => text(`more ${index}`)))
      redrawAll()
      yield* screen.until("more 199\nthe end")
      expect(numbers(yield* screen.text)).toEqual(upTo(300))
      expect(screen.terminal.written).not.toContain("\x1b[2J")
      expect(screen.terminal.written).not.toContain("\x1b[3J")
    }))

  it.live("writes the end only of a long document that comes at once, and says so", () =>
    Effect.gen(function*() {
      const { append, redraw, rows, screen } = yield* open
      yield* append(5)
      for (let index = 6; index <= 20_000; index++) rows.push(text(`row ${index}.`))
      redraw()
      yield* screen.until("row 20000.\nthe end")
      const shown = yield* screen.text
      expect(shown).toMatch(/row 5\.\n… \d+ earlier\nrow \d+\./)
      const from = numbers(shown)[5] ?? 0
      expect(numbers(shown)).toEqual([...upTo(5), ...upTo(20_000).slice(from - 1)])
      expect(20_000 - from).toBeGreaterThan(500)
      expect(shown).toContain(`… ${from - 6} earlier`)
      expect(screen.terminal.written.length).toBeLessThan(30_000)
    }))

  it.live("shows again what stood above a panel that filled the screen, once that has closed", () =>
    Effect.gen(function*() {
      const { append, redraw, rows, screen } = yield* open
      yield* append(100)
      rows.push(...Array.from({ length: 22 }, (_, index) => text(`panel ${index}`)))
      redraw()
      yield* screen.until("panel 21\nthe end")
      rows.splice(100)
      redraw()
      yield* screen.until(/row 78\.\nrow 79\.[\s\S]*row 100\.\nthe end$/)
      expect(screen.terminal.written).not.toContain("\x1b[3J")
    }))

  it.live("shows the end of a document that has become much shorter", () =>
    Effect.gen(function*() {
      const { append, redraw, rows, screen } = yield* open
      yield* append(300)
      rows.splice(5)
      rows.push(text("the rest"))
      redraw()
      yield* screen.until("row 4.\nrow 5.\nthe rest\nthe end")
      yield* append(50)
      expect(screen.terminal.written).not.toContain("\x1b[3J")
    }))
})
