/**
 * The main screen: a document that scrolls away into the terminal's own history, and the rows below it that stay.
 *
 * What has scrolled away belongs to the terminal and is never written again: nothing here clears its history or scrolls it
 * back. A frame is compared with the one before as far as the screen reaches, and rows that differ are written; where
 * something above has changed, the frame goes on from the row that was at the top. When the size of the terminal changes,
 * which breaks rows where it likes, the screen is written for the new width, and rows may be in the history twice, but none
 * is missing there. Another document, such as another session, begins below the one before.
 *
 * Of a long document that comes at once only the end is laid out and written, below a row that says so.
 */
import { CURSOR_MARKER, type Terminal, TuiMainScreen } from "@earendil-works/pi-tui"
import { columns } from "../width.ts"
import {
  type InlineFrame,
  placeAgain,
  placeIn,
  release,
  startBefore,
  type Window,
  windowAgain,
  windowOf,
  withRows
} from "./inline-window.ts"
import { isImage, Pen } from "./pen.ts"

/** Rows that are written of a document that comes at once, at least. */
const openingRows = 600
/** Parts of a document that are laid out without looking how many rows they have. */
const fewParts = 40
/** Rows that have scrolled away and stay in the window; and how many more until it is made shorter. */
const rowsAbove = 100
const releasedAtOnce = 200
/** Milliseconds between two frames that nobody waits for; and how much longer than it took to make one. */
const frameMillis = 33
const restShare = 4
/** Milliseconds after a key in which somebody waits. */
const answerMillis = 100
/** Milliseconds that a frame may be on its way to a terminal whose size changes meanwhile. */
const wayMillis = 300

/** What the last frame has left on the screen. */
interface Shown {
  readonly window: Window
  /** The first row of the window that can still be written. */
  readonly top: number
  /** The row of the window that the cursor is in. */
  readonly cursor: number
}

export class InlineScreen extends TuiMainScreen {
  readonly #frame: (width: number) => InlineFrame
  #shown: Shown | null = null
  #columns = 0
  #height = 0
  #parts = 0
  /** The next frame is of another document. */
  #isOther = false
  /** Another program had the terminal; what was on the screen is above the cursor. */
  #wasLeft = false
  /** What was at the top of the screen lately: frames that were on their way when it changed its size may be lost. */
  #tops: ReadonlyArray<{ readonly until: number; readonly top: number }> = []
  /** What the cursor was told last. */
  #cursorColumn: number | null = null
  #lastKey = Number.NEGATIVE_INFINITY
  /** Nothing has been drawn since the last key. */
  #isAwaited = false
  #lastFrame = Number.NEGATIVE_INFINITY
  #rest = frameMillis
  #waiting: ReturnType<typeof setTimeout> | undefined

  constructor(terminal: Terminal, frame: (width: number) => InlineFrame) {
    super(terminal, true)
    this.#frame = frame
  }

  /** Somebody has pressed a key, and waits for what it does. */
  keyPressed(): void {
    this.#lastKey = performance.now()
    this.#isAwaited = true
  }

  /** Begins another document with the next frame, below what is on the screen. */
  beginAnother(): void {
    this.#isOther = true
    this.requestRender()
  }

  override requestRender(force = false): void {
    if (this.#isAwaited) {
      this.#isAwaited = false
      return super.requestRender(true)
    }
    const now = performance.now()
    const wait = this.#lastFrame + this.#rest - now
    if (force || wait <= 0 || now - this.#lastKey < answerMillis) return super.requestRender()
    this.#waiting ??= setTimeout(() => {
      this.#waiting = undefined
      super.requestRender()
    }, wait)
  }

  protected override doRender(): void {
    if (this.stopped) return
    const began = performance.now()
    const columns = Math.max(1, this.terminal.columns)
    const height = Math.max(1, this.terminal.rows)
    const { column, frame, row } = this.#withCursor(this.#frame(columns))
    const resized = this.#shown !== null && (columns !== this.#columns || height !== this.#height)
    const drawn = this.#draw(frame, columns, height, resized)
    const { pen, top, window } = drawn
    const isMoved = row !== null && (window.body + row !== drawn.base + pen.row || column !== this.#cursorColumn)
    if (row !== null && (isMoved || pen.written !== "")) {
      pen.to(Math.max(top, window.body + row) - drawn.base)
      pen.write(`\x1b[${column + 1}G`)
    }
    if ((row === null) !== (this.#cursorColumn === null)) pen.write(row === null ? "\x1b[?25l" : "\x1b[?25h")
    if (pen.written !== "") this.terminal.write(`\x1b[?2026h${pen.written}\x1b[?2026l`)
    this.#cursorColumn = row === null ? null : column
    this.#keep(frame, { window, top, cursor: drawn.base + pen.row })
    this.#columns = columns
    this.#height = height
    this.#lastFrame = performance.now()
    this.#rest = Math.max(frameMillis, (this.#lastFrame - began) * restShare)
  }

  /** Rows of the frame turned into bytes; rows of the pen are counted from row `base` of the new window. */
  #draw(
    frame: InlineFrame,
    width: number,
    height: number,
    resized: boolean
  ): { readonly window: Window; readonly top: number; readonly base: number; readonly pen: Pen } {
    const shown = this.#shown
    if (shown === null) return this.#begin(frame, 0, [], new Pen(0, 0), height)
    const { cursor, window: old } = shown
    if (this.#wasLeft) {
      this.#wasLeft = false
      const window = windowAgain(frame, old)
      const below = width === this.#columns || old.body === 0 ? old.body : placeIn(old.body - 1, old, window) + 1
      return this.#write(window, Math.min(below, window.body), [], new Pen(0, 0), height)
    }
    const jumped = this.#jump(frame)
    if (this.#isOther || jumped) {
      const known = this.#isOther ? 0 : this.#parts
      this.#isOther = false
      const base = Math.max(shown.top, old.body)
      const rest = old.rows.slice(base)
      return this.#begin(frame, known, rest, new Pen(cursor - base, rest.length), height)
    }
    if (resized) return this.#again(frame, shown, width, height)
    const { top } = shown
    const next = windowAgain(frame, old)
    const isShort = top > 0 && frame.bottom.length > 0 && next.rows.length - top < height / 2
    // What has closed, such as a panel, may have been most of the screen: then what stood above it is shown again.
    const window = isShort ? withRows(frame, next, height) : next
    const place = isShort
      ? Math.max(0, window.rows.length - height)
      : differs(old, window, top)
      ? placeAgain(old, window, top)
      : top
    const rest = old.rows.slice(top)
    return this.#write(window, place, rest, new Pen(cursor - top, rest.length), height)
  }

  /** The screen written for another size, from the row that was at its top. */
  #again(frame: InlineFrame, { cursor, top, window: old }: Shown, width: number, height: number) {
    // A terminal that gets lower keeps the row of the cursor, and scrolls what it must for it.
    const kept = top + Math.max(0, cursor - top - (height - 1))
    const now = performance.now()
    const first = this.#tops.reduce((least, { top, until }) => until > now ? Math.min(least, top) : least, kept)
    const next = windowAgain(frame, old)
    const anchor = width === this.#columns ? first : placeIn(first, old, next)
    this.#tops = this.#tops.map(({ top, until }) => ({ until, top: placeIn(top, old, next) }))
    const window = anchor <= next.rows.length - height ? next : withRows(frame, next, height)
    const place = Math.max(0, Math.min(window === next ? anchor : window.rows.length, window.rows.length - height))
    const above = place > 0
      ? height - 1
      : old.rows.slice(0, cursor).reduce((sum, row) => sum + brokenInto(row, width), 0)
    const pen = new Pen(Math.min(height - 1, above), 0)
    pen.forget(old.rows.slice(top))
    pen.clearFrom(0)
    return this.#write(window, place, [], pen, height)
  }

  /** A document from the part after those that are known or, if there are many, its end. */
  #begin(frame: InlineFrame, known: number, before: ReadonlyArray<string>, pen: Pen, height: number) {
    const start = startBefore(frame.document, openingRows, known)
    const window = windowOf(frame, start, start === known ? [] : frame.omitted(start - known))
    this.fullRedrawCount += 1
    if (before.length === 0) pen.write("\x1b[J")
    return this.#write(window, 0, before, pen, height)
  }

  /** Whether so much has come to the document at once that only its end is to be written. */
  #jump({ document }: InlineFrame): boolean {
    if (document.length - this.#parts < fewParts) return false
    return startBefore(document, openingRows, this.#parts) > this.#parts
  }

  #write(window: Window, base: number, before: ReadonlyArray<string>, pen: Pen, height: number) {
    const after = window.rows.slice(base)
    pen.draw(before, after, height)
    return { window, base, pen, top: Math.max(base, window.rows.length - height) }
  }

  #keep(frame: InlineFrame, shown: Shown): void {
    const now = performance.now()
    const before = this.#shown
    this.#tops = this.#tops.filter(({ until }) => until > now)
    if (before !== null && before.top < shown.top) {
      this.#tops = [...this.#tops, { until: now + wayMillis, top: before.top }]
    }
    // The last one is empty.
    this.#parts = frame.document.length - 1
    this.#shown = shown
    if (shown.top < rowsAbove + releasedAtOnce) return
    const [window, gone] = release(shown.window, frame.document, shown.top - rowsAbove)
    this.#shown = { window, top: shown.top - gone, cursor: shown.cursor - gone }
    this.#tops = this.#tops.map(({ top, until }) => ({ until, top: Math.max(0, top - gone) }))
  }

  /** Where the cursor belongs, in the rows of the bottom, and the frame without the mark. */
  #withCursor(frame: InlineFrame) {
    const bottom = this.resolveFakeCursors(frame.bottom)
    const row = bottom.findLastIndex((line) => line.includes(CURSOR_MARKER))
    if (row === -1) return { frame: { ...frame, bottom }, row: null, column: 0 }
    const line = bottom[row] ?? ""
    const column = columns(line.slice(0, line.indexOf(CURSOR_MARKER)))
    return { frame: { ...frame, bottom: bottom.map((other) => other.replaceAll(CURSOR_MARKER, "")) }, row, column }
  }

  protected override beforeTerminalStart(): void {
    this.#cursorColumn = null
  }

  /** Leaves the document on the screen, without the rows below it, and the cursor under it. */
  protected override beforeTerminalStop(): void {
    clearTimeout(this.#waiting)
    this.#waiting = undefined
    const shown = this.#shown
    if (shown === null) return
    const { cursor, top, window } = shown
    const pen = new Pen(cursor, window.rows.length)
    pen.clearFrom(Math.max(top, window.body))
    this.terminal.write(pen.written)
    this.#wasLeft = true
  }
}

const differs = (old: Window, window: Window, top: number): boolean => {
  for (let index = 0; index < top; index++) if (window.rows[index] !== old.rows[index]) return true
  return false
}

/** Rows that a terminal of this width breaks a row into. */
const brokenInto = (row: string, width: number): number =>
  isImage(row) ? 1 : Math.max(1, Math.ceil(columns(row) / width))
