/**
 * The screen: pi-tui's main-screen renderer with a bounded working set, which never takes the terminal's history back.
 *
 * That renderer compares every row of the document at each frame, and where one changed that has scrolled away it clears
 * the terminal's history and writes everything again. Here what has scrolled away stays as it was: rows far above the
 * viewport are taken out of the comparison, so that a frame of a session of ten thousand entries costs what a frame of a
 * short one does, and where one of them changes the frame goes on from the row that was at the top of the viewport. All is
 * drawn anew only where a person had a hand in it: when the terminal's size changes, and at `drawAnew`.
 */
import { TuiMainScreen } from "@earendil-works/pi-tui"
import { withImages } from "./images.ts"

/** Rows that stay in the working set at least, and screenfuls. */
const minimumRows = 200
const screenfuls = 3
/** Rows that have to be alike for a place of one frame to be found again in the next one. */
const likeRows = 3

export class BoundedScreen extends TuiMainScreen {
  /** Number of rows of the document, from its top, that only the terminal has. */
  #gone = 0
  #shown: ReadonlyArray<string> = []
  #rows: ReadonlyArray<string> = []
  #columns = 0
  #height = 0

  override render(): readonly string[] {
    return this.#shown
  }

  protected override doRender(): void {
    if (this.stopped) return
    const width = this.terminal.columns
    const height = this.terminal.rows
    // A container copies the rows of its children; the frame is the only one.
    const [only] = this.children
    const rows = this.children.length === 1 && only !== undefined ? only.render(width) : super.render(width)
    if (width !== this.#columns || height !== this.#height) this.#gone = 0
    else this.#keepHistory(rows, height)
    this.#rows = rows
    this.#columns = width
    this.#height = height
    while (this.#drawPart(width, height)) {
      // The next one goes on below what that has drawn.
    }
    this.#release()
  }

  /** Draws what can be drawn at once; `true` where there is more. */
  #drawPart(width: number, height: number): boolean {
    const { previousHeight, previousLines, previousViewportTop, previousWidth } = this.captureRenderState()
    const isNew = previousLines.length === 0 || width !== previousWidth || height !== previousHeight
    const { isPart, rows } = withImages(
      this.#gone === 0 ? this.#rows : this.#rows.slice(this.#gone),
      isNew ? null : { rows: previousLines, top: previousViewportTop },
      height
    )
    this.#shown = rows
    super.doRender()
    return isPart
  }

  protected override resetRenderState(): void {
    super.resetRenderState()
    this.#gone = 0
  }

  /** Writes everything again with the next frame, also what has scrolled away. */
  drawAnew(): void {
    this.requestRender(true)
  }

  /** Makes the next frame one that can be drawn without touching what has scrolled away. */
  #keepHistory(rows: ReadonlyArray<string>, height: number): void {
    const state = this.captureRenderState()
    if (state.previousLines.length === 0) return
    const top = this.#gone + state.previousViewportTop
    const old = this.#rows
    // What has closed, such as a panel, may have been most of the screen: then what stood above it is shown again.
    const isShort = old.length - rows.length > height || (top > 0 && rows.length - top < height / 2)
    if (!isShort && !differsAbove(old, rows, top)) return
    this.#drop(state.previousViewportTop)
    this.#gone = isShort ? Math.max(0, rows.length - height) : placeAgain(old, rows, top)
  }

  /** Takes rows above the viewport out of the working set once there are many. */
  #release(): void {
    const keep = Math.max(minimumRows, screenfuls * this.#height)
    if (this.#rows.length - this.#gone <= 2 * keep || this.stopped) return
    const { previousViewportTop } = this.captureRenderState()
    const released = Math.min(this.#rows.length - this.#gone - keep, previousViewportTop)
    if (released <= 0) return
    this.#gone += released
    this.#drop(released)
  }

  /** Makes the renderer forget its first rows, which are above the viewport. */
  #drop(count: number): void {
    const state = this.captureRenderState()
    this.restoreRenderState({
      ...state,
      previousLines: state.previousLines.slice(count),
      cursorRow: state.cursorRow - count,
      hardwareCursorRow: state.hardwareCursorRow - count,
      maxLinesRendered: Math.max(0, state.maxLinesRendered - count),
      previousViewportTop: state.previousViewportTop - count
    })
    // Putting its state back makes the renderer forget which rows are images; it would draw those again.
    Reflect.set(this, "previousLines", state.previousLines.slice(count))
  }
}

const differsAbove = (old: ReadonlyArray<string>, rows: ReadonlyArray<string>, top: number): boolean => {
  if (rows === old) return false
  for (let index = 0; index < top; index++) if (rows[index] !== old[index]) return true
  return false
}

/**
 * Where what stood at `top` of the old rows stands in the new ones: the nearest place that looks the same. Where none does,
 * as far from the end as before at most, so that rows may be shown twice but none is left out.
 */
const placeAgain = (old: ReadonlyArray<string>, rows: ReadonlyArray<string>, top: number): number => {
  const isLike = (place: number): boolean => {
    if (place < 0 || place >= rows.length) return false
    for (let index = 0; index < likeRows; index++) if (rows[place + index] !== old[top + index]) return false
    return true
  }
  const reach = Math.max(rows.length - top, top)
  for (let distance = 0; distance <= reach; distance++) {
    if (isLike(top + distance)) return top + distance
    if (isLike(top - distance)) return top - distance
  }
  return Math.max(0, Math.min(top, top + rows.length - old.length))
}
