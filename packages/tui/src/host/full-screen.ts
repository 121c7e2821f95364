/**
 * The full screen: pi-tui's renderer of the terminal's second screen, for a frame that fills it.
 *
 * The frame has a row for each row of the terminal and scrolls by itself (`viewport.ts`); the renderer compares it with
 * the one before, writes rows that differ and places the cursor. What else it could do is left out: its own scrolling, its
 * search, and the mouse for selecting, which writes to the clipboard unasked. Leaving shows the main screen as it was.
 *
 * The mouse is reported only where that is asked for, since a terminal that reports it no longer selects text by it. Without,
 * the wheel does nothing: most terminals would send it as arrow keys, which are for the editor.
 */
import { type Terminal, TuiAltScreen, type TuiInputListener } from "@earendil-works/pi-tui"

/** Buttons and wheel, not movements (mode 1000), as decimal numbers (1006). */
const mouseOn = "\x1b[?1000h\x1b[?1006h"
const mouseOff = "\x1b[?1006l\x1b[?1000l"
/** Wheel as arrow keys (1007): what it was is kept and brought back; where a terminal cannot, it is on as nearly everywhere. */
const arrowsOff = "\x1b[?1007s\x1b[?1007l"
const arrowsBack = "\x1b[?1007h\x1b[?1007r"
/** tmux makes the screen as large as the main one was before it leaves it, and keeps rows that stand above the cursor then. */
const home = "\x1b[H"

export interface FullScreenOptions {
  /** The wheel scrolls; text is then selected with shift held, in most terminals. */
  readonly mouse: boolean
}

export class FullScreen extends TuiAltScreen {
  readonly #on: string
  readonly #off: string
  /** False while the base class constructs itself. */
  readonly isMade: boolean = true

  constructor(terminal: Terminal, { mouse }: FullScreenOptions) {
    super(terminal, true, undefined, { mouse: false })
    this.#on = mouse ? mouseOn : arrowsOff
    this.#off = (mouse ? mouseOff : arrowsBack) + home
  }

  /** The one listener of the base class takes keys and mouse for what is left out here. */
  override addInputListener(listener: TuiInputListener): () => void {
    return this.isMade ? super.addInputListener(listener) : () => {}
  }

  protected override beforeTerminalStart(): void {
    super.beforeTerminalStart()
    this.terminal.write(this.#on)
  }

  /** Without writing the document into the main screen. */
  override stop(): void {
    this.terminal.write(this.#off)
    super.stop({ preserveScreen: true })
  }

  protected override getExitRestorePrefix(): string {
    return this.#off + super.getExitRestorePrefix()
  }

  /** Another document is shown from the next frame on. */
  beginAnother(): void {
    this.requestRender(true)
  }
}
