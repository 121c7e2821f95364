import { describe, expect, it } from "vitest"
import { withImages } from "../../packages/tui/src/host/images.ts"

const drawn = (id: number, rows = 3): string => `\x1b_Ga=T,f=100,q=2,C=1,c=9,r=${rows},i=${id};AAAA\x1b\\`
const block = (
  id: number,
  rows = 3
): ReadonlyArray<string> => [drawn(id, rows), ...Array.from({ length: rows - 1 }, () => "")]
const text = (count: number): ReadonlyArray<string> => Array.from({ length: count }, (_, index) => `row ${index}`)

describe("an image in a frame", () => {
  it("is drawn where it has room on the screen, and left alone where it is already", () => {
    const rows = [...text(2), ...block(1), "end"]
    expect(withImages(rows, { rows: text(2), top: 0 }, 10)).toEqual({ rows, isPart: false })
    expect(withImages(rows, { rows, top: 5 }, 10)).toEqual({ rows, isPart: false })
  })

  it("comes in two steps where it has none, with nothing below it before it is there", () => {
    const rows = [...text(8), ...block(1), "end"]
    const first = withImages(rows, { rows: text(8), top: 0 }, 10)
    expect(first).toEqual({ rows: [...text(8), "", "", ""], isPart: true })
    expect(withImages(rows, { rows: first.rows, top: 1 }, 10)).toEqual({ rows, isPart: false })
  })

  it("is left out for good once it has scrolled away without being drawn, or is taller than the screen", () => {
    const rows = [...block(1), ...text(20)]
    const without = ["", "", "", ...text(20)]
    expect(withImages(rows, { rows: ["", ...text(2)], top: 2 }, 10)).toEqual({ rows: without, isPart: false })
    expect(withImages(rows, { rows: without, top: 13 }, 10)).toEqual({ rows: without, isPart: false })
    expect(withImages([...text(2), ...block(1, 12)], { rows: text(2), top: 0 }, 10).isPart).toBe(false)
  })

  it("is one of the last six, of however many that come at once, and all of them come to an end", () => {
    const rows = Array.from({ length: 50 }, (_, index) => [...text(4), ...block(index)]).flat()
    const count = (shown: ReadonlyArray<string>) => shown.filter((row) => row.includes("a=T")).length
    expect(count(withImages(rows, null, 10).rows)).toBe(6)
    let written = { rows: text(1), top: 0 }
    for (let frame = 0; frame < 7; frame++) {
      const shown = withImages(rows, written, 10)
      written = { rows: [...shown.rows], top: Math.max(0, shown.rows.length - 10) }
      expect(shown.isPart).toBe(frame < 6)
    }
    expect(count(written.rows)).toBe(6)
    expect(withImages(rows, written, 10)).toEqual({ rows: written.rows, isPart: false })
  })
})
