import { markdown } from "@bezel/tui"
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import { finishedUpTo } from "../../packages/tui/src/growing.ts"
import { makeLayout } from "../../packages/tui/src/layout.ts"
import { makePainter, terminalTheme } from "../../packages/tui/src/paint.ts"

/** What Markdown is made of: everything that ends or opens something, alone and in the way of each other. */
const pieces = [
  "word",
  "some more words of *it*",
  "**bold** and `code`",
  " ",
  "  ",
  "    ",
  "\n",
  "\n",
  "\n\n",
  "\n\n",
  "\n\n\n",
  "\r\n\r\n",
  "\t",
  "# ",
  "### head\n",
  "\n---\n",
  "\n===\n",
  "- ",
  "- one\n- two\n",
  "* ",
  "1. ",
  "2) ",
  "- [ ] task\n",
  "> ",
  "> quote\n",
  "```\n",
  "```ts\n",
  "\n```\n",
  "~~~\n",
  "const a = 1\n\nconst b = 2\n",
  "| a | b |\n",
  "|---|---|\n",
  "| x | y |\n",
  "<div>\n",
  "<pre>\n",
  "</pre>\n",
  "<!-- ",
  " -->",
  "<a href=x>",
  "</a>",
  "<details>",
  "https://example.org/a",
  "[ref]",
  "[ref]: https://example.org\n",
  "[",
  "]: /x\n",
  "[text](http://x.y)",
  "\n$$\n",
  "$$x = 1$$\n",
  "$$",
  "\n\\[\n",
  "\n\\]\n",
  "$x^2$",
  "\\",
  "*",
  "_",
  "~~",
  "日本語",
  "👩‍👩‍👧‍👦",
  "\x1b[31m",
  "***\n"
]

const texts = fc.array(fc.constantFrom(...pieces), { maxLength: 40, size: "max" }).map((parts) => parts.join(""))

/** Lays a text out as it grows by these steps, over and over, and compares each with the whole text laid out at once. */
const differs = (text: string, steps: ReadonlyArray<number>, width: number): string | null => {
  const layout = makeLayout(makePainter(terminalTheme, true))
  const identity = {}
  let end = 0
  for (let index = 0; end < text.length; index++) {
    end = Math.min(text.length, end + (steps[index % steps.length] ?? 1))
    const source = text.slice(0, end).trim()
    const grown = layout.rows(markdown(source, { identity }), width)
    const whole = makeLayout(makePainter(terminalTheme, true)).rows(markdown(source), width)
    if (JSON.stringify(grown) !== JSON.stringify(whole)) {
      return `${JSON.stringify(source)} at ${width}:\n${JSON.stringify(grown)}\n${JSON.stringify(whole)}`
    }
  }
  return null
}

const answer = Array.from(
  { length: 60 },
  (_, index) =>
    index % 5 === 0
      ? `## Part ${index}`
      : index % 5 === 1
      ? `- one of ${index}\n- two\n\n  more of two`
      : index % 5 === 2
      ? "```ts\nconst a = 1\n\nconst b = 2\n```"
      : index % 5 === 3
      ? "| a | b |\n|---|---|\n| x | y |"
      : `Words of **paragraph** ${index}, and \`code\` in it, and more words so that it is broken.`
).join("\n\n")

describe("markdown that grows", () => {
  it("has the rows of the whole text at every moment, whatever the text and however it comes", () => {
    expect(() =>
      fc.assert(
        fc.property(
          texts,
          fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 5 }),
          fc.integer({ min: 4, max: 100 }),
          (text, steps, width) => {
            const found = differs(text, steps, width)
            if (found !== null) throw new Error(found)
          }
        ),
        { numRuns: Number(process.env["FC_RUNS"] ?? 150) }
      )
    ).not.toThrow()
  })

  it("has them of an answer with headings, lists, code and tables, letter by letter", () => {
    expect(differs(answer.slice(0, 1_500), [1], 40)).toBeNull()
    expect(differs(answer, [7, 23], 72)).toBeNull()
  })

  it("has them when the width changes on the way, and when the text turns out to be another one", () => {
    const layout = makeLayout(makePainter(terminalTheme, true))
    const whole = (source: string, width: number) =>
      makeLayout(makePainter(terminalTheme, true)).rows(markdown(source), width)
    const identity = {}
    for (const [end, width] of [[500, 60], [900, 60], [1_300, 30], [1_400, 90], [400, 90], [800, 20]] as const) {
      const source = answer.slice(0, end)
      expect(layout.rows(markdown(source, { identity }), width)).toEqual(whole(source, width))
    }
    const other = answer.replaceAll("Words", "Terms")
    expect(layout.rows(markdown(other, { identity }), 60)).toEqual(whole(other, 60))
  })

  it("finishes what a blank line ends, and nothing that goes on over one", () => {
    expect(finishedUpTo("one\n\ntwo\n\nthree\n")).toBe(10)
    expect(finishedUpTo("one\n\ntwo")).toBe(0)
    expect(finishedUpTo("one\n\n```\ntwo\n\nthree\n\nfour\n")).toBe(5)
    expect(finishedUpTo("- one\n\n- two\n\n  more\n\nthree\n")).toBe(22)
    expect(finishedUpTo("one\n\n[a]: /b\n\nthree\n")).toBeNull()
    expect(finishedUpTo("[a\n\ntwo\n\nthree\n")).toBe(0)
    expect(finishedUpTo("one\n\n$$\nx\n\ny\n\nz\n")).toBe(5)
    expect(finishedUpTo("see <a href=x>\n\nhttp://y.z\n\nend\n")).toBe(0)
  })

  it("lays finished blocks out once, so that the last words of a long answer cost no more than the first", () => {
    const cost = (text: string): number => {
      const layout = makeLayout(makePainter(terminalTheme, true))
      const identity = {}
      layout.rows(markdown(text, { identity }), 80)
      layout.rows(markdown(`${text}\n\nand`, { identity }), 80)
      const before = process.cpuUsage()
      for (let index = 0; index < 200; index++) {
        layout.rows(markdown(`${text}\n\nand ${"word ".repeat(index)}`, { identity }), 80)
      }
      const { system, user } = process.cpuUsage(before)
      return (system + user) / 1_000
    }
    // The best of some: what else the processor does is not the layout's.
    const best = (text: string): number => Math.min(cost(text), cost(text), cost(text))
    const short = best(answer.slice(0, 2_000))
    const long = best(Array.from({ length: 40 }, () => answer).join("\n\n"))
    expect(long).toBeLessThan(short * 5 + 50)
  })
})
