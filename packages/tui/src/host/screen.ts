/**
 * The screen: pi-tui's main-screen renderer with a bounded working set.
 *
 * That renderer compares every row of the document at each frame, also those that scrolled into the terminal's history long
 * ago and cannot be changed there. Here the rows far above the viewport are taken out of the comparison, so that a frame of
 * a session of ten thousand entries costs what a frame of a short one does. They come back when they have to be drawn anew:
 * when the terminal's size changes, or when one of them did (a theme, an expanded tool).
 */
import { TuiMainScreen } from "@earendil-works/pi-tui"

/** Rows that stay in the working set at least, and screenfuls. */
const minimumRows = 200
const screenfuls = 3

export class BoundedScreen extends TuiMainScreen {
  /** Number of rows at the top that only the terminal has. */
  #gone = 0
  #rows: ReadonlyArray<string> = []
  #columns = 0
  #height = 0

  override render(width: number): readonly string[] {
    // A container copies the rows of its children; the frame is the only one.
    const [only] = this.children
    const rows = this.children.length === 1 && only !== undefined ? only.render(width) : super.render(width)
    if (
      this.#gone > 0 && (width !== this.#columns || this.terminal.rows !== this.#height || this.#changedAbove(rows))
    ) this.#gone = 0
    this.#rows = rows
    this.#columns = width
    this.#height = this.terminal.rows
    return this.#gone === 0 ? rows : rows.slice(this.#gone)
  }

  protected override doRender(): void {
    super.doRender()
    this.#release()
  }

  protected override resetRenderState(): void {
    super.resetRenderState()
    this.#gone = 0
  }

  #changedAbove(rows: ReadonlyArray<string>): boolean {
    if (rows === this.#rows) return false
    for (let index = 0; index < this.#gone; index++) if (rows[index] !== this.#rows[index]) return true
    return false
  }

  /** Takes rows above the viewport out of the working set once there are many. */
  #release(): void {
    const keep = Math.max(minimumRows, screenfuls * this.#height)
    if (this.#rows.length - this.#gone <= 2 * keep || this.stopped) return
    const state = this.captureRenderState()
    const released = Math.min(this.#rows.length - this.#gone - keep, state.previousViewportTop)
    if (released <= 0) return
    this.#gone += released
    this.restoreRenderState({
      ...state,
      previousLines: state.previousLines.slice(released),
      cursorRow: state.cursorRow - released,
      hardwareCursorRow: state.hardwareCursorRow - released,
      maxLinesRendered: Math.max(0, state.maxLinesRendered - released),
      previousViewportTop: state.previousViewportTop - released
    })
  }
}
