/**
 * A panel: something to read in the place of the editor, scrolled by the arrow keys when it is taller than the terminal.
 */
import { getKeybindings } from "@earendil-works/pi-tui"
import { type Block, row, rule, span } from "../block.ts"
import type { Layout } from "../layout.ts"

export interface Panel {
  readonly rows: (layout: Layout, width: number, height: number) => ReadonlyArray<string>
  readonly key: (sequence: string) => void
}

/** Rows that the panel needs beside its content: its title and its two lines. */
const frameRows = 3

export const makePanel = (title: string, body: () => ReadonlyArray<Block>, closeKeys: ReadonlyArray<string>): Panel => {
  let from = 0
  let page = 1
  let last = 0
  const closing = span(`${closeKeys[0] ?? "escape"} closes`, { color: "muted" })
  return {
    rows: (layout, width, height) => {
      const content = layout.all(body(), width)
      page = Math.max(1, height - frameRows - 1)
      last = Math.max(0, content.length - page)
      from = Math.min(from, last)
      const shown = content.slice(from, from + page)
      const place = last === 0
        ? [closing]
        : [span(`${from + 1}-${from + shown.length} of ${content.length} ↑↓ · `, { color: "muted" }), closing]
      return [
        ...layout.all([rule({ color: "accent" }), row(span(title, { bold: true }), place)], width),
        ...shown,
        ...layout.all([rule({ color: "accent" })], width)
      ]
    },
    key: (sequence) => {
      const keys = getKeybindings()
      const step = keys.matches(sequence, "tui.select.up")
        ? -1
        : keys.matches(sequence, "tui.select.down")
        ? 1
        : keys.matches(sequence, "tui.select.pageUp")
        ? -page
        : keys.matches(sequence, "tui.select.pageDown")
        ? page
        : 0
      from = Math.max(0, Math.min(from + step, last))
    }
  }
}
