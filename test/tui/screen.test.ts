import { Plugin } from "@bezel/core/host"
import { type Block, text } from "@bezel/tui"
import { it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { describe, expect } from "vitest"
import { testTerminal } from "./memory-terminal.ts"
import { makeStubSession } from "./stub-session.ts"

/** A screen of rows that the test appends to and changes. */
const open = Effect.gen(function*() {
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
  })
  yield* screen.until("the end")
  const append = (count: number) =>
    Effect.gen(function*() {
      for (const to = rows.length + count; rows.length < to;) rows.push(text(`row ${rows.length + 1}.`))
      redraw()
      yield* screen.until(`row ${rows.length}.\nthe end`)
    })
  return { append, redraw: () => redraw(), redrawAll: () => redrawAll(), rows, screen }
})

const numbers = (shown: string): ReadonlyArray<number> =>
  [...shown.matchAll(/^row (\d+)\.$/gm)].map((match) => Number(match[1]))
const upTo = (count: number): ReadonlyArray<number> => Array.from({ length: count }, (_, index) => index + 1)

describe("the bounded screen", () => {
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

  it.live("draws everything anew, once each, when the width changes", () =>
    Effect.gen(function*() {
      const { append, screen } = yield* open
      for (let step = 0; step < 10; step++) yield* append(100)
      screen.terminal.resize(60, 30)
      yield* append(1)
      expect(numbers(yield* screen.text)).toEqual(upTo(1_001))
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

  it.live("shows all of it as it is when that is asked for", () =>
    Effect.gen(function*() {
      const { append, redrawAll, rows, screen } = yield* open
      for (let step = 0; step < 10; step++) yield* append(100)
      rows[4] = text("changed")
      redrawAll()
      yield* screen.until("row 4.\nchanged\nrow 6.")
      expect(numbers(yield* screen.text)).toHaveLength(999)
      yield* append(500)
      expect(numbers(yield* screen.text)).toHaveLength(1_499)
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
