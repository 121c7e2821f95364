/**
 * The viewport of the full-screen mode: which rows of a long document are on the screen.
 *
 * It follows the end of the document until somebody scrolls up, and again once the end is reached. The place is kept as a
 * part of the document and a row in it, so what is read stays where it is while the document grows below. Only parts that
 * are on the screen, or that scrolling goes over, are laid out: a session of ten thousand entries opens and scrolls like a
 * short one. Plain synchronous code on the path of every frame.
 */
import type { ScrollTarget } from "../contributions.ts"
import { pressed } from "./keys.ts"

/** A document as parts that are laid out one by one, on demand. */
export interface DocumentParts {
  readonly length: number
  readonly rows: (part: number) => ReadonlyArray<string>
  /** Something else whenever the document has another end. */
  readonly end: unknown
}

/** Where the screen is, when it is not at the end. */
export interface ScrolledTo {
  /** How much of the document is above, from 0 to 1; parts count alike. */
  readonly share: number
  /** The document has got a new end since. */
  readonly hasNews: boolean
}

export interface Viewport {
  /** The rows to show, at most `height`; moves to what `scroll` has asked for. */
  readonly show: (
    document: DocumentParts,
    height: number
  ) => { readonly rows: ReadonlyArray<string>; readonly scrolled: ScrolledTo | null }
  readonly scroll: (to: ScrollTarget) => void
  /** Keys that scroll also while a dialog has the others; `false`: not one of them. */
  readonly key: (sequence: string) => boolean
  /** What the mouse does: its wheel scrolls, all else is nothing; `false`: not of a mouse. */
  readonly mouse: (sequence: string) => boolean
}

interface Place {
  readonly part: number
  readonly row: number
}

/** Rows that a page has in common with the one before. */
const overlap = 2
/** Rows that one step of the wheel moves by. */
const wheelRows = 3
/** Below this height every row is for the document. */
const smallest = 3

const keys: ReadonlyArray<readonly [string, ScrollTarget]> = [
  ["pageUp", "pageUp"],
  ["pageDown", "pageDown"],
  ["ctrl+home", "top"],
  ["ctrl+end", "end"]
]

/** As terminals report the mouse (SGR, mode 1006): buttons 64 and 65 are the wheel, 4, 8 and 16 are held keys. */
// eslint-disable-next-line no-control-regex
const mouseReport = /^\x1b\[<(\d+);\d+;\d+[Mm]$/

export const makeViewport = (): Viewport => {
  /** The first row on the screen; `null`: the end is on the screen. */
  let top: Place | null = null
  let moves = 0
  let wanted: "top" | "end" | null = null
  let page = 1
  let seen: unknown

  const scroll = (to: ScrollTarget): void => {
    if (to === "top" || to === "end") {
      wanted = to
      moves = 0
      return
    }
    moves += to === "pageUp" ? -page : to === "pageDown" ? page : to.rows
  }

  return {
    scroll,
    key: (sequence) => {
      const found = keys.find(([key]) => pressed(sequence, key))
      if (found !== undefined) scroll(found[1])
      return found !== undefined
    },
    mouse: (sequence) => {
      const report = mouseReport.exec(sequence)
      if (report === null) return false
      const button = Number(report[1]) & ~(4 | 8 | 16)
      if (button === 64 || button === 65) scroll({ rows: button === 64 ? -wheelRows : wheelRows })
      return true
    },
    show: (document, height) => {
      const marked = height > smallest ? height - 1 : height
      page = Math.max(1, marked - overlap)
      if (wanted === "top") top = { part: 0, row: 0 }
      if (wanted === "end") top = null
      if (top !== null && top.part >= document.length) top = null
      if (top !== null) top = within(document, top)
      if (moves < 0) top = above(document, top ?? tail(document, height).top, -moves)
      if (moves > 0 && top !== null) top = below(document, top, moves)
      wanted = null
      moves = 0
      if (top !== null) {
        const { atEnd, rows } = from(document, top, marked)
        if (!atEnd) {
          const share = document.length < 2 ? 0 : top.part / (document.length - 1)
          return { rows, scrolled: { share, hasNews: document.end !== seen } }
        }
        top = null
      }
      seen = document.end
      return { rows: tail(document, height).rows, scrolled: null }
    }
  }
}

/** A place that there is, after the part has got fewer rows. */
const within = (document: DocumentParts, { part, row }: Place): Place => ({
  part,
  row: Math.max(0, Math.min(row, document.rows(part).length - 1))
})

const tail = (document: DocumentParts, height: number): { readonly rows: Array<string>; readonly top: Place } => {
  const parts: Array<ReadonlyArray<string>> = []
  let top: Place = { part: 0, row: 0 }
  let room = height
  for (let part = document.length - 1; part >= 0 && room > 0; part--) {
    const rows = document.rows(part)
    const row = Math.max(0, rows.length - room)
    parts.push(row === 0 ? rows : rows.slice(row))
    room -= rows.length - row
    top = { part, row }
  }
  return { rows: parts.toReversed().flat(), top }
}

const from = (
  document: DocumentParts,
  place: Place,
  height: number
): { readonly rows: Array<string>; readonly atEnd: boolean } => {
  const rows: Array<string> = []
  for (let part = place.part; part < document.length; part++) {
    const all = document.rows(part)
    for (let row = part === place.part ? place.row : 0; row < all.length; row++) {
      if (rows.length === height) return { rows, atEnd: false }
      rows.push(all[row] ?? "")
    }
  }
  return { rows, atEnd: true }
}

const above = (document: DocumentParts, { part, row }: Place, count: number): Place => {
  if (row >= count) return { part, row: row - count }
  let left = count - row
  for (let before = part - 1; before >= 0; before--) {
    const { length } = document.rows(before)
    if (length >= left) return { part: before, row: length - left }
    left -= length
  }
  return { part: 0, row: 0 }
}

const below = (document: DocumentParts, { part, row }: Place, count: number): Place => {
  let left = count + row
  for (let at = part; at < document.length; at++) {
    const { length } = document.rows(at)
    if (left < length) return { part: at, row: left }
    left -= length
  }
  // Past the end: from there nothing is left to show, which is the end.
  return { part: Math.max(0, document.length - 1), row: Number.MAX_SAFE_INTEGER }
}
