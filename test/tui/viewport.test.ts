import { describe, expect, it } from "vitest"
import { group, text } from "../../packages/tui/src/block.ts"
import { documentOf } from "../../packages/tui/src/host/document.ts"
import { makeViewport } from "../../packages/tui/src/host/viewport.ts"

/** A document of so many parts of three rows each that says which parts were laid out. */
const counted = (parts: number) => {
  const asked = new Set<number>()
  const document = {
    length: parts,
    end: parts,
    rows: (part: number) => {
      asked.add(part)
      return [0, 1, 2].map((row) => `${part}.${row}`)
    }
  }
  return { asked, document }
}

describe("the viewport", () => {
  it("lays out what is on the screen and what scrolling goes over, of ten thousand parts", () => {
    const { asked, document } = counted(10_000)
    const viewport = makeViewport()
    expect(viewport.show(document, 10)).toEqual({
      rows: ["9996.2", ...[9997, 9998, 9999].flatMap((part) => [0, 1, 2].map((row) => `${part}.${row}`))],
      scrolled: null
    })
    expect(asked.size).toBe(4)
    viewport.scroll("pageUp")
    expect(viewport.show(document, 10).rows[0]).toBe("9994.1")
    expect(asked.size).toBe(6)
    viewport.scroll("top")
    expect(viewport.show(document, 10)).toMatchObject({ rows: { 0: "0.0", 8: "2.2" }, scrolled: { share: 0 } })
    viewport.scroll("end")
    expect(viewport.show(document, 10).scrolled).toBeNull()
    expect(asked.size).toBeLessThan(12)
  })

  it("keeps its place while parts come behind it, and follows again from the end on", () => {
    const viewport = makeViewport()
    viewport.show(counted(20).document, 10)
    viewport.scroll({ rows: -5 })
    const before = viewport.show(counted(20).document, 10)
    expect(before.scrolled?.hasNews).toBe(false)
    const after = viewport.show(counted(30).document, 10)
    expect(after.rows).toEqual(before.rows)
    expect(after.scrolled?.hasNews).toBe(true)
    viewport.scroll({ rows: 1_000 })
    expect(viewport.show(counted(30).document, 10)).toMatchObject({ rows: { 9: "29.2" }, scrolled: null })
    expect(viewport.show(counted(31).document, 10).rows.at(-1)).toBe("30.2")
  })

  it("shows the end of a document that has become shorter than where it was", () => {
    const viewport = makeViewport()
    viewport.show(counted(100).document, 10)
    viewport.scroll({ rows: -30 })
    viewport.show(counted(100).document, 10)
    expect(viewport.show(counted(5).document, 10)).toMatchObject({ rows: { 9: "4.2" }, scrolled: null })
    expect(viewport.show(counted(0).document, 10)).toEqual({ rows: [], scrolled: null })
  })

  it("stays at a part that has got fewer rows, such as output that is shown short again", () => {
    const sized = (rows: number) => ({
      length: 20,
      end: 0,
      rows: (part: number) => Array.from({ length: part === 10 ? rows : 3 }, (_, row) => `${part}.${row}`)
    })
    const viewport = makeViewport()
    viewport.show(sized(40), 10)
    viewport.scroll({ rows: -30 })
    expect(viewport.show(sized(40), 10).rows[0]).toMatch(/^10\.2\d$/)
    expect(viewport.show(sized(4), 10).rows.slice(0, 2)).toEqual(["10.3", "11.0"])
  })

  it("scrolls nothing of a document that fits", () => {
    const viewport = makeViewport()
    for (const to of ["pageUp", "top", "pageDown", { rows: -1 }] as const) {
      viewport.scroll(to)
      expect(viewport.show(counted(3).document, 10)).toMatchObject({ rows: { length: 9 }, scrolled: null })
    }
  })

  it("goes on from the same part in a terminal of one row, and of many", () => {
    const viewport = makeViewport()
    viewport.show(counted(50).document, 10)
    viewport.scroll({ rows: -50 })
    const { rows } = viewport.show(counted(50).document, 10)
    expect(viewport.show(counted(50).document, 1).rows).toEqual(rows.slice(0, 1))
    expect(viewport.show(counted(50).document, 30).rows.slice(0, 9)).toEqual(rows)
  })
})

describe("a document of blocks", () => {
  it("takes groups of groups apart, and leaves those with rows of their own whole", () => {
    const entries = Array.from({ length: 4 }, (_, index) => group([text(`${index}`), text("more")]))
    const blocks = [text("head"), group([group(entries.slice(0, 2)), group(entries.slice(2))]), group([]), text("end")]
    const document = documentOf(blocks, (block) => [block.kind], ["last"])
    expect(Array.from({ length: document.length }, (_, part) => document.rows(part)[0])).toEqual([
      "text",
      ...entries.map(() => "group"),
      "group",
      "text",
      "last"
    ])
  })
})
