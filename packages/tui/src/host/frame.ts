/**
 * The frame: what one screenful is made of, from top to bottom.
 *
 *     body        grows, scrolls away into the terminal's own history
 *     above       stays: queue, notices
 *     editor      or, in its place, the open dialog or panel
 *     below       stays: status
 *
 * Whatever a facet's render function does, a frame comes out: one that throws is replaced by a line that names it.
 */
import type { Component } from "@earendil-works/pi-tui"
import { type Block, span, text } from "../block.ts"
import type { ScreenContent } from "../contributions.ts"
import type { Layout } from "../layout.ts"
import { fit } from "../width.ts"
import type { Dialogs } from "./dialogs.ts"
import type { HostEditor } from "./editor.ts"
import type { Panel } from "./panel.ts"

export interface FrameParts {
  readonly layout: () => Layout
  readonly screen: () => { readonly content: ScreenContent; readonly plugin: string } | null
  readonly editor: () => HostEditor | null
  readonly dialogs: Dialogs
  readonly notices: () => ReadonlyArray<Block>
  readonly panel: () => Panel | null
  /** Rows of the terminal. */
  readonly height: () => number
  /** The last frame: what stays on the screen after the host has ended. */
  readonly ending: () => boolean
}

/** What stands for a contribution whose code failed. */
const faultBlock = (plugin: string, what: string, error: unknown): Block =>
  text(
    span(`${plugin}: ${what} failed: ${error instanceof Error ? error.message : String(error)}`, { color: "error" }),
    {
      wrap: "clip"
    }
  )

/** Runs a facet's render function; its failure becomes a block. */
export const guarded = (
  plugin: string,
  what: string,
  render: () => ReadonlyArray<Block>
): ReadonlyArray<Block> => {
  try {
    return render()
  } catch (error) {
    return [faultBlock(plugin, what, error)]
  }
}

export const makeFrame = (parts: FrameParts): Component => ({
  render: (width) => {
    const layout = parts.layout()
    const rows: Array<string> = []
    const add = (made: ReadonlyArray<string>): void => {
      for (const line of made) rows.push(line)
    }
    const blocks = (plugin: string, what: string, render: () => ReadonlyArray<Block>): void => {
      try {
        for (const block of render()) add(layout.rows(block, width))
      } catch (error) {
        add(layout.rows(faultBlock(plugin, what, error), width))
      }
    }
    const screen = parts.screen()
    const content = screen?.content
    if (screen !== null && content !== undefined) blocks(screen.plugin, "the screen", content.body)
    // The empty row is where pi-tui leaves the cursor, and writes a blank.
    if (parts.ending()) return [...rows, ""]
    if (screen !== null && content?.above !== undefined) blocks(screen.plugin, "the screen", content.above)
    blocks("bezel", "a notice", parts.notices)
    if (parts.dialogs.isOpen()) {
      blocks("bezel", "the dialog", parts.dialogs.blocks)
      add(parts.dialogs.rows(width).map((line) => fit(line, width)))
      return rows
    }
    const panel = parts.panel()
    if (panel !== null) {
      add(panel.rows(layout, width, parts.height()))
      return rows
    }
    const editor = parts.editor()
    if (editor !== null) add(editor.render(width))
    if (screen !== null && content?.below !== undefined) blocks(screen.plugin, "the screen", content.below)
    return rows
  },
  invalidate: () => parts.editor()?.invalidate()
})
