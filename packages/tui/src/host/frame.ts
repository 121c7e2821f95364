/**
 * The frame: what one screenful is made of, from top to bottom.
 *
 *     body        grows, scrolls away into the terminal's own history
 *     above       stays: queue, notices
 *     editor      or, in its place, the open dialog or panel
 *     below       stays: status
 *
 * On the full screen the body is a viewport, and the rest is at the bottom; of what is taller than the terminal, such as a
 * question with a long text, the upper part scrolls with the body.
 *
 * Whatever a facet's render function does, a frame comes out: one that throws is replaced by a line that names it.
 */
import type { Component } from "@earendil-works/pi-tui"
import { type Block, row, span, text } from "../block.ts"
import type { ScreenContent } from "../contributions.ts"
import type { Layout } from "../layout.ts"
import { fit } from "../width.ts"
import type { Dialogs } from "./dialogs.ts"
import { documentOf } from "./document.ts"
import type { HostEditor } from "./editor.ts"
import type { InlineFrame } from "./inline-window.ts"
import type { Panel } from "./panel.ts"
import type { ScrolledTo, Viewport } from "./viewport.ts"

export interface FrameParts {
  readonly layout: () => Layout
  readonly screen: () => { readonly content: ScreenContent; readonly plugin: string } | null
  readonly editor: () => HostEditor | null
  readonly dialogs: Dialogs
  readonly notices: () => ReadonlyArray<Block>
  readonly panel: () => Panel | null
  /** Rows of the terminal. */
  readonly height: () => number
  /** On the full screen; `null`: the body scrolls away into the terminal's history. */
  readonly viewport: Viewport | null
  /** The last frame: what stays on the main screen after the host has ended. */
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

/** Rows that the body keeps on a full screen, whatever stands below it. */
const leastBody = 2
/** Columns below which a row says only what it must. */
const narrow = 40

/** Where the screen is when it is not at the end. It stands on the last row of the body. */
const scrolledBlock = ({ hasNews, share }: ScrolledTo, width: number): Block =>
  row(
    span(hasNews ? "↓ new" : "↓ more", { color: "accent" }),
    span(width < narrow ? "ctrl+end" : `${Math.round(share * 100)} % · ctrl+end`, { color: "muted" })
  )

const omittedBlock = (count: number): Block => text(span(`… ${count} earlier`, { color: "muted" }))

/** Rows of what a facet has made; a block that cannot be laid out becomes one that names the facet. */
const rowsOf =
  (layout: Layout, width: number, plugin: string, what: string) => (block: Block): ReadonlyArray<string> => {
    try {
      return layout.rows(block, width)
    } catch (error) {
      return layout.rows(faultBlock(plugin, what, error), width)
    }
  }

/** A component of the full screen, and what there is for the main screen. */
export interface Frame extends Component {
  readonly inline: (width: number) => InlineFrame
}

export const makeFrame = (parts: FrameParts): Frame => {
  /** The part that grows: blocks, and what lays one out. */
  const bodyOf = (layout: Layout, width: number) => {
    const screen = parts.screen()
    const plugin = screen?.plugin ?? "bezel"
    return {
      blocks: screen === null ? [] : guarded(plugin, "the screen", screen.content.body),
      rows: rowsOf(layout, width, plugin, "the screen")
    }
  }

  /** What stays, below the body. */
  const bottomOf = (layout: Layout, width: number): ReadonlyArray<string> => {
    const rows: Array<string> = []
    const add = (made: ReadonlyArray<string>): void => {
      for (const line of made) rows.push(line)
    }
    const blocks = (plugin: string, what: string, render: () => ReadonlyArray<Block>): void => {
      for (const block of guarded(plugin, what, render)) add(rowsOf(layout, width, plugin, what)(block))
    }
    const screen = parts.screen()
    const content = screen?.content
    if (screen !== null && content?.above !== undefined) blocks(screen.plugin, "the screen", content.above)
    blocks("bezel", "a notice", parts.notices)
    if (parts.dialogs.isOpen()) {
      blocks("bezel", "the dialog", parts.dialogs.blocks)
      add(parts.dialogs.rows(width).map((line) => fit(line, width)))
      return rows
    }
    const panel = parts.panel()
    if (panel !== null) {
      const height = parts.height()
      add(panel.rows(layout, width, parts.viewport === null ? height : Math.max(1, height - rows.length)))
      return rows
    }
    const editor = parts.editor()
    if (editor !== null) add(editor.render(width))
    if (screen !== null && content?.below !== undefined) blocks(screen.plugin, "the screen", content.below)
    return rows
  }

  const onFullScreen = (viewport: Viewport, layout: Layout, width: number): ReadonlyArray<string> => {
    const height = parts.height()
    const bottom = bottomOf(layout, width)
    const split = Math.max(0, bottom.length - Math.max(1, height - leastBody))
    const room = height - (bottom.length - split)
    const body = bodyOf(layout, width)
    const { rows, scrolled } = viewport.show(documentOf(body.blocks, body.rows, bottom.slice(0, split)), room)
    const shown = [...rows]
    while (shown.length < room) shown.push("")
    if (scrolled !== null && rows.length < room) {
      shown[room - 1] = layout.rows(scrolledBlock(scrolled, width), width)[0] ?? ""
    }
    return [...shown, ...bottom.slice(split)]
  }

  return {
    render: (width) => parts.viewport === null ? [] : onFullScreen(parts.viewport, parts.layout(), width),
    inline: (width) => {
      const layout = parts.layout()
      const body = bodyOf(layout, width)
      const screen = parts.screen()
      return {
        document: documentOf(body.blocks, body.rows, []),
        bottom: parts.ending() ? [] : bottomOf(layout, width),
        omitted: (count) => {
          const say = screen?.content.omitted
          const blocks = say === undefined
            ? [omittedBlock(count)]
            : guarded(screen?.plugin ?? "", "the screen", () => say(count))
          return layout.all(blocks, width)
        }
      }
    },
    invalidate: () => parts.editor()?.invalidate()
  }
}
