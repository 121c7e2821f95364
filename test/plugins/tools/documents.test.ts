import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { deflateSync } from "node:zlib"
import { notebookText } from "../../../packages/plugins/src/tools/notebook.ts"
import { pdfText } from "../../../packages/plugins/src/tools/pdf.ts"
import { textOf, workspace } from "./workspace.ts"

/** A PDF document with one line of text on each page, as small as they come. */
const pdf = (...pages: ReadonlyArray<string>): Buffer =>
  document(pages.map((text) => text === "" ? "" : `BT /F 12 Tf 10 50 Td (${text}) Tj ET`))

/** A small document whose page is 100 MB of text. */
const bomb = (): Buffer => {
  const page = deflateSync(Buffer.alloc(100_000_000, "BT /F 1 Tf (word) Tj ET\n"), { level: 9 })
  return document([page.toString("latin1")], "/Filter/FlateDecode")
}

const document = (pages: ReadonlyArray<string>, filter = ""): Buffer => {
  const objects = [
    "<</Type/Catalog/Pages 2 0 R>>",
    `<</Type/Pages/Count ${pages.length}/Kids[${pages.map((_, index) => `${4 + 2 * index} 0 R`).join(" ")}]>>`,
    "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"
  ]
  for (const [index, stream] of pages.entries()) {
    objects.push(
      `<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 100]/Resources<</Font<</F 3 0 R>>>>/Contents ${5 + 2 * index} 0 R>>`,
      `<</Length ${stream.length}${filter}>>stream\n${stream}\nendstream`
    )
  }
  let body = "%PDF-1.4\n"
  const offsets = objects.map((object, index) => {
    const at = body.length
    body += `${index + 1} 0 obj${object}endobj\n`
    return at
  })
  const table = offsets.map((at) => `${String(at).padStart(10, "0")} 00000 n \n`).join("")
  return Buffer.from(
    `${body}xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${table}trailer<</Size ${
      objects.length + 1
    }/Root 1 0 R>>\nstartxref\n${body.length}\n%%EOF`,
    "latin1"
  )
}

const notebook = (...cells: ReadonlyArray<object>) => JSON.stringify({ cells, nbformat: 4, metadata: {} })

describe("a PDF document", () => {
  it.live("is read as the text of its pages, by lines", () =>
    Effect.gen(function*() {
      const { call, write } = yield* workspace()
      yield* write("a.pdf", pdf("Hello PDF", "", "Third page"))
      const whole = yield* call("read", { path: "a.pdf" })
      expect(textOf(whole)).toBe(
        "[The text of the PDF document a.pdf, 3 pages]\n[Page 1]\nHello PDF\n\n[Page 2]\n(no text on this page)\n\n[Page 3]\nThird page"
      )
      expect(whole.details).toMatchObject({ kind: "pdf", firstLine: 1, lines: 8, more: false })
      expect(textOf(yield* call("read", { path: "a.pdf", offset: 2, limit: 1 }))).toBe(
        "[The text of the PDF document a.pdf, 3 pages; the text of the first 1 is here]\nHello PDF"
      )
    }))

  it.live("that is small and becomes too large to be read is given up, in time and in memory", () =>
    Effect.gen(function*() {
      const bytes = bomb()
      expect(bytes.length).toBeLessThan(1_000_000)
      const told = (time: number, memory: number) =>
        Effect.map(Effect.flip(pdfText(bytes, "a.pdf", 100, { time, memory })), ({ message }) => message)
      expect(yield* told(1_000, 1024 ** 4)).toBe("The text of a.pdf cannot be read: it takes too long.")
      expect(yield* told(60_000, 100_000_000)).toBe("The text of a.pdf cannot be read: it takes too much memory.")
    }))

  it.live("that is broken, or past whose end is read, says so", () =>
    Effect.gen(function*() {
      const { bad, write } = yield* workspace()
      yield* write("b.pdf", "%PDF-1.4\nnothing more")
      yield* write("a.pdf", pdf("x"))
      expect(yield* bad("read", { path: "b.pdf" })).toMatch(
        /^The text of b\.pdf cannot be read: it is no valid PDF document\.$/
      )
      expect(yield* bad("read", { path: "a.pdf", offset: 90 })).toMatch(
        /a\.pdf has only 2 lines; offset 90 is past its end/
      )
    }))
})

describe("a notebook", () => {
  const cells: ReadonlyArray<readonly [what: string, cell: object, text: string]> = [
    ["markdown", { cell_type: "markdown", source: ["# Title\n", "text"] }, "[Cell 1, markdown]\n# Title\ntext"],
    ["code without output", { cell_type: "code", source: "x = 1", outputs: [] }, "[Cell 1, code]\nx = 1"],
    [
      "printed text, its colours left out",
      {
        cell_type: "code",
        source: "p",
        outputs: [{ output_type: "stream", text: ["\u001b[31mred\u001b[0m\n", "two"] }]
      },
      "[Cell 1, code]\np\n[Output of cell 1]\nred\ntwo"
    ],
    [
      "a picture, by its kind and size",
      {
        cell_type: "code",
        source: "plot()",
        outputs: [{ output_type: "display_data", data: { "image/png": "A".repeat(400), "text/plain": ["<Figure>"] } }]
      },
      "[Cell 1, code]\nplot()\n[Output of cell 1]\n<Figure>\n[image/png, 300 bytes]"
    ],
    [
      "an error with its trace",
      {
        cell_type: "code",
        source: "f()",
        outputs: [{ output_type: "error", ename: "E", evalue: "bad", traceback: ["line 1", "E: bad"] }]
      },
      "[Cell 1, code]\nf()\n[Output of cell 1]\nline 1\nE: bad"
    ],
    ["a cell of a kind that is not known", { cell_type: "raw", source: "" }, "[Cell 1, raw]"]
  ]
  it.each(cells)("shows %s", (_, cell, text) => {
    expect(notebookText(notebook(cell))).toBe(text)
  })

  it("has outputs that are bounded", () => {
    const text = notebookText(
      notebook({ cell_type: "code", source: "", outputs: [{ output_type: "stream", text: "é".repeat(100_000) }] })
    )
    expect(text?.length).toBeLessThan(9_000)
    expect(text).toContain("[… 92000 more characters]")
  })

  it.live("is read by its cells; a file of that name that is none is read as text", () =>
    Effect.gen(function*() {
      const { call, good, write } = yield* workspace()
      yield* write(
        "a.ipynb",
        notebook({ cell_type: "code", source: "1 + 1" }, { cell_type: "markdown", source: "end" })
      )
      yield* write("b.ipynb", '{ "cells": 3 }')
      const result = yield* call("read", { path: "a.ipynb" })
      expect(textOf(result)).toBe(
        "[The cells of the notebook a.ipynb]\n[Cell 1, code]\n1 + 1\n\n[Cell 2, markdown]\nend"
      )
      expect(result.details).toMatchObject({ kind: "notebook", lines: 5 })
      expect(yield* good("read", { path: "b.ipynb" })).toBe('1\t{ "cells": 3 }')
    }))
})
