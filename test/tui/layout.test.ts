import { type Block, gap, group, markdown, row, rule, span, text } from "@bezel/tui"
import { renderBlocks } from "@bezel/tui/testing"
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import { makeLayout } from "../../packages/tui/src/layout.ts"
import { makePainter, terminalTheme } from "../../packages/tui/src/paint.ts"
import { columns } from "../../packages/tui/src/width.ts"

const awkward =
  "日本語テキスト 👩‍👩‍👧‍👦🏳️‍🌈👍🏽🇩🇪\té\u0301 שלום עולם नमस्ते ｆｕｌｌ ﾊﾝ\u0300 ำ \x1b[31mx\u202e a_very_long_word_without_any_break_at_all_in_it"

const samples = (words: string): ReadonlyArray<Block> => [
  text(words),
  text([span(words, { color: "error", bold: true }), words], { marker: span("› ", { color: "user" }), indent: 3 }),
  text(words, { wrap: "clip", indent: 2 }),
  markdown(
    `# ${words}\n\n- ${words}\n  1. ${words}\n\n> ${words}\n\n\`\`\`ts\n${words}\n\`\`\`\n\n| a | b |\n|---|---|\n| ${words} | x |\n\n[${words}](http://example.org) **${words}** $x^2$`
  ),
  row([span(words, { dim: true })], [words]),
  rule(),
  gap,
  group([text(words), row(words)])
]

describe("layout", () => {
  it("never throws and never exceeds the width, at widths 1 to 120", () => {
    const layout = makeLayout(makePainter(terminalTheme, true))
    for (let width = 1; width <= 120; width++) {
      for (const block of samples(awkward)) {
        for (const line of layout.rows(block, width)) {
          expect(columns(line), `width ${width}: ${JSON.stringify(line)}`).toBeLessThanOrEqual(width)
        }
      }
    }
  })

  it("holds for whatever text at whatever width", () => {
    expect(() =>
      fc.assert(
        fc.property(fc.string({ unit: "binary", maxLength: 200 }), fc.integer({ min: 1, max: 120 }), (words, width) => {
          const layout = makeLayout(makePainter(terminalTheme, true))
          for (const block of samples(words)) {
            for (const line of layout.rows(block, width)) {
              if (columns(line) > width) {
                throw new Error(`${columns(line)} > ${width}: ${JSON.stringify(line)}`)
              }
              // eslint-disable-next-line no-control-regex
              if (/[\x00-\x1a\x1c-\x1f\x7f-\x9f\u202a-\u202e]/.test(line)) {
                throw new Error(`control character in ${JSON.stringify(line)}`)
              }
              // eslint-disable-next-line no-control-regex
              if (/\x1b(?!\[[0-9;]*m)/.test(line)) throw new Error(`escape sequence in ${JSON.stringify(line)}`)
            }
          }
        }),
        { numRuns: 60 }
      )
    ).not.toThrow()
  })

  it("wraps at words and indents what follows a marker", () => {
    expect(renderBlocks([text("one two three four", { marker: "› " })], 10)).toEqual(["› one two", "  three", "  four"])
  })

  it("marks what is clipped", () => {
    expect(renderBlocks([text("a longer line\nshort", { wrap: "clip" })], 8)).toEqual(["a longe…", "short"])
  })

  it("gives the left end of a row what the right end leaves", () => {
    expect(renderBlocks([row("left", "right")], 12)).toEqual(["left   right"])
    expect(renderBlocks([row("a long left", "right")], 12)).toEqual(["a lon… right"])
    expect(renderBlocks([row("left", "much too long")], 5)).toEqual(["much…"])
  })

  it("prints the address of a link instead of hiding it behind its text", () => {
    const rows = makeLayout(makePainter(terminalTheme, true)).all([markdown("[your bank](http://evil.example)")], 80)
    expect(rows.join("")).toContain("http://evil.example")
    expect(rows.join("")).not.toContain("\x1b]8")
  })

  it("does not decode entities into control characters", () => {
    expect(renderBlocks([markdown("&#27;]0;x&#7; &#x9b;31m")], 80).join("\n")).toContain("&#27;]0;x&#7;")
  })

  it("gives the same rows for the same block and lays a growing text out anew", () => {
    const layout = makeLayout(makePainter(terminalTheme, true))
    const block = text("same")
    expect(layout.rows(block, 20)).toBe(layout.rows(block, 20))
    const identity = {}
    expect(layout.rows(markdown("one", { identity }), 20)).toHaveLength(1)
    expect(layout.rows(markdown("one\n\ntwo", { identity }), 20).map((line) => line.trim())).toEqual(["one", "", "two"])
  })

  it("measures East Asian, emoji and combining text by columns", () => {
    expect(columns("日本")).toBe(4)
    expect(columns("👩‍👩‍👧‍👦")).toBe(2)
    expect(columns("e\u0301")).toBe(1)
    expect(columns("\x1b[31mred\x1b[39m")).toBe(3)
  })
})
