/** The main screen against a terminal emulator, for whatever happens to the document and to the size of the terminal. */
import { type Block, text } from "@bezel/tui"
import { MemoryTerminal } from "@bezel/tui/testing"
import xterm from "@xterm/headless"
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import { documentOf } from "../../packages/tui/src/host/document.ts"
import { InlineScreen } from "../../packages/tui/src/host/inline-screen.ts"
import { makeLayout } from "../../packages/tui/src/layout.ts"
import { makePainter, terminalTheme } from "../../packages/tui/src/paint.ts"

/** What the editor marks the place of the cursor with. */
const mark = "\x1b_pi:c\x07"

type Step =
  | { readonly type: "append"; readonly count: number }
  | { readonly type: "grow"; readonly words: number }
  | { readonly type: "change"; readonly fromEnd: number }
  | { readonly type: "remove"; readonly count: number }
  | { readonly type: "bottom"; readonly rows: number }
  | { readonly type: "resize"; readonly columns: number; readonly rows: number }
  | { readonly type: "say"; readonly said: string }
  | { readonly type: "other" }

const steps: fc.Arbitrary<ReadonlyArray<Step>> = fc.array(
  fc.oneof(
    {
      arbitrary: fc.record({ type: fc.constant("append" as const), count: fc.integer({ min: 1, max: 60 }) }),
      weight: 3
    },
    { arbitrary: fc.record({ type: fc.constant("grow" as const), words: fc.integer({ min: 1, max: 80 }) }), weight: 3 },
    fc.record({ type: fc.constant("change" as const), fromEnd: fc.integer({ min: 0, max: 80 }) }),
    fc.record({ type: fc.constant("remove" as const), count: fc.integer({ min: 1, max: 40 }) }),
    fc.record({ type: fc.constant("bottom" as const), rows: fc.integer({ min: 1, max: 30 }) }),
    fc.record({
      type: fc.constant("resize" as const),
      columns: fc.integer({ min: 20, max: 200 }),
      rows: fc.integer({ min: 4, max: 50 })
    }),
    fc.record({ type: fc.constant("other" as const) })
  ),
  { maxLength: 25, size: "max" }
)

/** A document that the steps change, on a screen of its own. */
const open = () => {
  const emulator = new xterm.Terminal({ cols: 80, rows: 24, scrollback: 100_000, allowProposedApi: true })
  const terminal = new MemoryTerminal(emulator)
  const layout = makeLayout(makePainter(terminalTheme, true))
  let blocks: Array<Block> = [text("begin")]
  let bottom = 2
  let made = 0
  const words = (count: number): string =>
    Array.from({ length: count }, () => `w${made++}${made % 7 === 0 ? " 日本" : made % 11 === 0 ? " é" : ""}`).join(" ")
  const bottomRows = (): ReadonlyArray<string> => [
    ...Array.from({ length: bottom - 1 }, (_, index) => `below ${index}`),
    `> ${mark}`
  ]
  const rowsOf = (width: number) => (block: Block) => layout.rows(block, width)
  const screen = new InlineScreen(terminal, (width) => ({
    document: documentOf(blocks, rowsOf(width), []),
    bottom: bottomRows(),
    omitted: (parts) => [`… ${parts}`]
  }))
  screen.start()
  const step = (one: Step): void => {
    switch (one.type) {
      case "append":
        blocks = [...blocks, ...Array.from({ length: one.count }, () => text(words(1 + made % 30)))]
        break
      case "grow":
        blocks = [...blocks.slice(0, -1), text(words(one.words))]
        break
      case "change": {
        const at = blocks.length - 1 - one.fromEnd
        if (at >= 0) blocks = blocks.with(at, text(words(5)))
        break
      }
      case "remove":
        blocks = blocks.slice(0, Math.max(1, blocks.length - one.count))
        break
      case "bottom":
        bottom = one.rows
        break
      case "resize":
        terminal.resize(one.columns, one.rows)
        break
      case "say":
        blocks = [...blocks.slice(0, -1), text(one.said)]
        break
      case "other":
        blocks = [text("another"), text(words(20))]
        screen.beginAnother()
    }
  }
  /** What is wrong on the screen, if anything is. */
  const wrong = async (): Promise<string | null> => {
    screen.renderNow()
    await terminal.drawn
    const { cols, rows } = emulator
    const buffer = emulator.buffer.active
    const shown = Array.from(
      { length: rows },
      (_, row) => buffer.getLine(buffer.baseY + row)?.translateToString(true).trimEnd() ?? ""
    )
    while (shown.length > 0 && shown.at(-1) === "") shown.pop()
    const all = [...blocks.flatMap((block) => rowsOf(cols)(block)), ...bottomRows()].map((row) =>
      row.replaceAll(mark, "").trimEnd()
    )
    const count = Math.min(shown.length, all.length)
    const expected = all.slice(all.length - count)
    if (JSON.stringify(shown.slice(-count)) !== JSON.stringify(expected)) {
      return `${cols}×${rows}:\n${shown.join("\n")}\n--- instead of\n${expected.join("\n")}`
    }
    // Of what fills the screen, most is to be seen.
    if (all.length >= rows && count < Math.floor(rows / 2)) return `only ${count} rows of ${all.length} on ${rows}`
    if (buffer.cursorX !== 2 || buffer.cursorY !== shown.length - 1) {
      return `the cursor is at ${buffer.cursorX}, ${buffer.cursorY}, not under ${shown.length} rows`
    }
    // eslint-disable-next-line no-control-regex
    if (/\x1b\[[23]J|\x1b\[\d*[ST]|\x1b\[\d*;?\d*H|\x1bM/.test(terminal.written)) return "cleared or scrolled back"
    return null
  }
  /** The words in the terminal, from the top of its history; what it has broken itself is put together. */
  const wordsSeen = (): ReadonlyArray<number> => {
    const buffer = emulator.buffer.active
    let all = ""
    for (let row = 0; row < buffer.length; row++) {
      const line = buffer.getLine(row)
      all += `${line?.isWrapped === true ? "" : "\n"}${line?.translateToString(true) ?? ""}`
    }
    return [...all.matchAll(/\bw(\d+)\b/g)].map((match) => Number(match[1]))
  }
  return { step, terminal, wrong, wordsSeen, made: () => made, close: () => screen.stop() }
}

describe("the main screen in a terminal", () => {
  it("shows the end of the document, cell by cell, after whatever happened, and clears nothing", async () => {
    await expect(fc.assert(
      fc.asyncProperty(steps, async (taken) => {
        const opened = open()
        try {
          for (const one of taken) {
            opened.step(one)
            const found = await opened.wrong()
            if (found !== null) throw new Error(`after ${JSON.stringify(one)} at ${found}`)
          }
        } finally {
          opened.close()
        }
      }),
      { numRuns: Number(process.env["FC_RUNS"] ?? 40) }
    )).resolves.toBeUndefined()
  }, 60_000)

  it("leaves all that only grows in the history once, in order, also when the terminal gets higher and lower", async () => {
    const opened = open()
    for (let round = 0; round < 30; round++) {
      opened.step({ type: "append", count: 15 })
      expect(await opened.wrong()).toBeNull()
      if (round % 5 !== 4) continue
      // Frames that were on their way are another matter.
      await new Promise((resolve) => setTimeout(resolve, 320))
      opened.step({ type: "resize", columns: 80, rows: 10 + round })
      expect(await opened.wrong()).toBeNull()
    }
    expect(opened.wordsSeen()).toEqual(Array.from({ length: opened.made() }, (_, index) => index))
    opened.close()
  })

  it("leaves none of it out at whatever widths, and writes again no more than a screen for each", async () => {
    const opened = open()
    for (const columns of [20, 200, 60, 35, 120, 80]) {
      opened.step({ type: "append", count: 40 })
      expect(await opened.wrong()).toBeNull()
      await new Promise((resolve) => setTimeout(resolve, 320))
      opened.step({ type: "resize", columns, rows: 24 })
      expect(await opened.wrong()).toBeNull()
    }
    const seen = opened.wordsSeen()
    const wanted = Array.from({ length: opened.made() }, (_, index) => index)
    expect([...new Set(seen)].sort((a, b) => a - b)).toEqual(wanted)
    const last = wanted.map((word) => seen.lastIndexOf(word))
    expect(last).toEqual(last.toSorted((a, b) => a - b))
    // A screen of 200 columns holds as many letters as ten of 20.
    expect(seen.length - wanted.length).toBeLessThan(6 * 24 * 200 / 5)
    opened.close()
  })

  it("writes the end of a row alone where only that has changed, and all of a letter that a mark joins", async () => {
    const opened = open()
    const before = opened.terminal.written.length
    for (
      const [said, most] of [["a longer row of words", 200], ["a longer row of words, and e", 60], [
        "a longer row of words, and e\u0301",
        60
      ], ["a longer row of wor", 60]] as const
    ) {
      const from = opened.terminal.written.length
      opened.step({ type: "say", said })
      expect(await opened.wrong()).toBeNull()
      expect(opened.terminal.written.length - from).toBeLessThan(most)
    }
    expect(opened.terminal.written.length).toBeGreaterThan(before)
    opened.close()
  })
})
