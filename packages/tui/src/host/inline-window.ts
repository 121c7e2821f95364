/**
 * The window of the main screen: the end of the document, as far as it is compared from frame to frame.
 *
 * What stands before it is in the terminal's history or was left out, and is not even laid out. The window begins with a
 * part of the document, which is found again in the next frame; it gets longer as the document grows, and shorter as rows
 * scroll away. Plain synchronous code on the path of every frame.
 */
import type { Block } from "../block.ts"
import type { BlockDocument } from "./document.ts"

/** What one frame shows: a document that grows, and rows below it that stay at the end. */
export interface InlineFrame {
  readonly document: BlockDocument
  readonly bottom: ReadonlyArray<string>
  /** Rows that stand for this many parts which are left out. */
  readonly omitted: (parts: number) => ReadonlyArray<string>
}

export interface Window {
  /** The part of the document that it begins with, and that part as it was. */
  readonly start: number
  readonly first: Block | undefined
  /** Rows before that part which are not of the document. */
  readonly lead: ReadonlyArray<string>
  /** Rows of each part, from the start. */
  readonly counts: ReadonlyArray<number>
  /** All of them, and the bottom. */
  readonly rows: ReadonlyArray<string>
  /** How many of them are not the bottom. */
  readonly body: number
}

export const windowOf = (
  { bottom, document }: InlineFrame,
  start: number,
  lead: ReadonlyArray<string> = []
): Window => {
  const rows = [...lead]
  const counts: Array<number> = []
  for (let part = start; part < document.length; part++) {
    const made = document.rows(part)
    counts.push(made.length)
    for (const row of made) rows.push(row)
  }
  const body = rows.length
  for (const row of bottom) rows.push(row)
  return { start, first: document.block(start), lead, counts, rows, body }
}

/** How far from its place a part is looked for. */
const reach = 64

/** The window again, in the next frame: from the same part, where there is one like it nearby. */
export const windowAgain = (frame: InlineFrame, { first, lead, start }: Window): Window => {
  const { document } = frame
  const within = Math.min(start, Math.max(0, document.length - 1))
  if (first === undefined || document.block(within) === first) return windowOf(frame, within, lead)
  for (let distance = 1; distance <= reach; distance++) {
    for (const place of [within - distance, within + distance]) {
      if (place >= 0 && document.block(place) === first) return windowOf(frame, place, lead)
    }
  }
  return windowOf(frame, within, lead)
}

/** The part from which so many rows are left, or `least` if that is later. */
export const startBefore = (document: BlockDocument, rows: number, least: number): number => {
  let start = document.length
  for (let left = rows; start > least && left > 0; start--) left -= document.rows(start - 1).length
  return start
}

/** A window that has at least so many rows, where the document has them. */
export const withRows = (frame: InlineFrame, window: Window, rows: number): Window => {
  if (window.rows.length >= rows || window.start === 0) return window
  return windowOf(frame, startBefore(frame.document, rows - frame.bottom.length, 0))
}

/** The window without parts that lie wholly before this row; gives how many rows those had. */
export const release = (window: Window, document: BlockDocument, row: number): readonly [Window, number] => {
  let gone = window.lead.length
  let parts = 0
  if (gone > row) return [window, 0]
  for (const count of window.counts) {
    if (gone + count > row || parts + 1 === window.counts.length) break
    gone += count
    parts += 1
  }
  if (gone === 0) return [window, 0]
  const start = window.start + parts
  return [{
    start,
    first: document.block(start),
    lead: [],
    counts: window.counts.slice(parts),
    rows: window.rows.slice(gone),
    body: window.body - gone
  }, gone]
}

/** Where a row of one window is in another that begins with the same part and was laid out for another width. */
export const placeIn = (row: number, from: Window, to: Window): number => {
  if (row >= from.body) return Math.min(to.rows.length, to.body + row - from.body)
  if (row < from.lead.length) return Math.min(row, to.lead.length)
  let before = from.lead.length
  let after = to.lead.length
  for (const [index, count] of from.counts.entries()) {
    const now = to.counts[index] ?? 0
    if (row < before + count) return after + Math.floor((row - before) / count * now)
    before += count
    after += now
  }
  return to.body
}

/** Rows that have to be alike for a place of one window to be found again in the next one. */
const likeRows = 3

/**
 * Where what stood at `top` of one window stands in the next one of the same width: the nearest place that looks the same.
 * Where none does, as far from the end as before at most, so that rows may be shown twice but none is left out.
 */
export const placeAgain = (from: Window, to: Window, top: number): number => {
  const count = Math.min(likeRows, from.body - top)
  if (count <= 0) return Math.min(top, to.body)
  const isLike = (place: number): boolean => {
    if (place < 0 || place + count > to.body) return false
    for (let index = 0; index < count; index++) if (to.rows[place + index] !== from.rows[top + index]) return false
    return true
  }
  const farthest = Math.max(to.body - top, top)
  for (let distance = 0; distance <= farthest; distance++) {
    if (isLike(top + distance)) return top + distance
    if (isLike(top - distance)) return top - distance
  }
  return Math.max(0, Math.min(top, top + to.rows.length - from.rows.length))
}
