/**
 * Layout: blocks as rows of at most the given width, painted.
 *
 * Plain synchronous code on the path of every frame. Rows of a block are kept with the block (weakly), for one width; a
 * theme has a layout of its own; markdown that grows keeps what is finished by `identity`, so that of a streaming answer only
 * the end is laid out. Whatever a block holds, the rows never exceed the width and hold no other escape sequence than ours.
 */
import {
  getCapabilities,
  getCellDimensions,
  Image,
  Markdown,
  type MarkdownTheme,
  setCapabilityOverrides
} from "@earendil-works/pi-tui"
import type { Block, ImageBlock, MarkdownBlock, RowBlock, SpanStyle, TextBlock } from "./block.ts"
import { makeGrowing, type MarkdownLayout } from "./growing.ts"
import { describeImage, drawableSize } from "./image.ts"
import type { Painter } from "./paint.ts"
import { sanitize } from "./sanitize.ts"
import { clip, columns, fit, wrap } from "./width.ts"

// A hyperlink shows a text of the model's choice and hides where it leads; printing the address hides nothing.
setCapabilityOverrides({ hyperlinks: false })

interface Cached {
  readonly width: number
  readonly rows: ReadonlyArray<string>
}

const markdownTheme = (painter: Painter): MarkdownTheme => {
  const as = (style: SpanStyle) => (painted: string) => painter.style(painted, style)
  return {
    heading: as({ color: "heading", bold: true }),
    link: as({ color: "link", underline: true }),
    linkUrl: as({ color: "muted" }),
    code: as({ color: "code" }),
    codeBlock: as({}),
    codeBlockBorder: as({ color: "muted" }),
    quote: as({ italic: true }),
    quoteBorder: as({ color: "muted" }),
    hr: as({ color: "muted" }),
    listBullet: as({ color: "accent" }),
    bold: as({ bold: true }),
    italic: as({ italic: true }),
    strikethrough: as({ strikethrough: true }),
    underline: as({ underline: true })
  }
}

export interface Layout {
  readonly rows: (block: Block, width: number) => ReadonlyArray<string>
  readonly all: (blocks: ReadonlyArray<Block>, width: number) => ReadonlyArray<string>
}

/** Columns and rows that an image takes at most. */
const maxImageColumns = 60
const maxImageRows = 16

export interface LayoutOptions {
  /** Images are drawn where the terminal can; default: they are described. */
  readonly images?: boolean
}

export const makeLayout = (painter: Painter, options: LayoutOptions = {}): Layout => {
  const cache = new WeakMap<Block, Cached>()
  const documents = new WeakMap<object, MarkdownLayout>()
  const theme = markdownTheme(painter)

  const indented = (rows: ReadonlyArray<string>, indent: number): ReadonlyArray<string> =>
    indent === 0 ? rows : rows.map((row) => " ".repeat(indent) + row)

  /** An indent that leaves at least one column for content. */
  const room = (indent: number, width: number): number => Math.max(0, Math.min(indent, width - 1))

  const textRows = (block: TextBlock, width: number): ReadonlyArray<string> => {
    const indent = room(block.indent, width)
    const marker = block.marker === null ? "" : painter.line([block.marker])
    const hang = room(columns(marker), width - indent)
    const inner = Math.max(1, width - indent - hang)
    const painted = block.spans.map(painter.span).join("")
    const rows = block.wrap === "word"
      ? wrap(painted, inner)
      : painted.split("\n").map((line) => clip(line, inner))
    const first = " ".repeat(indent) + clip(marker, hang, "")
    const later = " ".repeat(indent + hang)
    return rows.map((row, index) => (index === 0 ? first : later) + row)
  }

  const markdownOf = (style: SpanStyle): MarkdownLayout => (source, width) => {
    // A component that is given another text takes rows of blocks that read alike for those of others that are not.
    const document = new Markdown(source, 0, 0, theme, {
      ...(style.color === undefined && style.dim !== true
        ? {}
        : {
          color: (painted: string) => painter.style(painted, { color: style.color ?? "text", dim: style.dim === true })
        }),
      bold: style.bold === true,
      italic: style.italic === true
    }, { renderLatex: false, preserveOrderedListMarkers: true })
    // It pads rows to the full width; trailing blanks would be copied with the text.
    return document.render(width).map((row) => fit(row.replace(/ +$/, ""), width))
  }

  const markdownRows = (block: MarkdownBlock, width: number): ReadonlyArray<string> => {
    const indent = room(block.indent, width)
    const lay = markdownOf(block.style)
    if (block.identity === null) return indented(lay(sanitize(block.source), width - indent), indent)
    const growing = documents.get(block.identity) ?? makeGrowing(lay)
    documents.set(block.identity, growing)
    return indented(growing(block.source, width - indent), indent)
  }

  const rowRows = (block: RowBlock, width: number): ReadonlyArray<string> => {
    const right = clip(painter.line(block.right), width)
    const rightWidth = columns(right)
    const space = width - rightWidth - (rightWidth > 0 ? 1 : 0)
    const left = clip(painter.line(block.left), Math.max(0, space))
    return [rightWidth === 0 ? left : left + " ".repeat(Math.max(0, width - rightWidth - columns(left))) + right]
  }

  /** Kept with the block, since a terminal knows an image by a number. */
  const drawn = new WeakMap<ImageBlock, Image>()

  const imageRows = (block: ImageBlock, width: number): ReadonlyArray<string> => {
    const indent = room(block.indent, width)
    const inner = width - indent
    const { images: protocol } = getCapabilities()
    const size = options.images !== true || protocol === null || inner < 8 ? null : drawableSize(block, protocol)
    const words = `[${block.mediaType.startsWith("image/") ? "image " : ""}${describeImage(block)}]`
    const name = block.name === null ? [] : [` ${block.name}`]
    const described = clip(painter.line([{ text: words, color: "muted" }, ...name]), inner)
    if (size === null) return indented([described], indent)
    const known = drawn.get(block) ??
      new Image(block.data, block.mediaType, { fallbackColor: (words) => words }, {
        // Larger than it is shows no more of it.
        maxWidthCells: Math.min(maxImageColumns, Math.ceil(size.widthPx / getCellDimensions().widthPx)),
        maxHeightCells: maxImageRows
      }, size)
    drawn.set(block, known)
    return indented([described, ...known.render(inner)], indent)
  }

  // eslint-disable-next-line no-control-regex
  const faintRow = (row: string): string => painter.style(row.replace(/\x1b\[[0-9;:]*m/g, ""), { dim: true })

  const lay = (block: Block, width: number): ReadonlyArray<string> => {
    switch (block.kind) {
      case "text":
        return textRows(block, width)
      case "markdown":
        return markdownRows(block, width)
      case "row":
        return rowRows(block, width)
      case "gap":
        return [""]
      case "rule":
        return [painter.style("─".repeat(width), block.style)]
      case "group":
        return block.faint === true ? all(block.children, width).map(faintRow) : all(block.children, width)
      case "image":
        return imageRows(block, width)
    }
  }

  const rows = (block: Block, width: number): ReadonlyArray<string> => {
    const limit = Math.max(1, width)
    const known = cache.get(block)
    if (known !== undefined && known.width === limit) return known.rows
    const made = lay(block, limit)
    // Rows of Markdown and of groups have been measured, and there may be thousands that are not new.
    const isMeasured = block.kind === "markdown" || block.kind === "group" || block.kind === "image"
    const safe = !isMeasured && made.some((row) => columns(row) > limit) ? made.map((row) => fit(row, limit)) : made
    cache.set(block, { width: limit, rows: safe })
    return safe
  }

  const all = (blocks: ReadonlyArray<Block>, width: number): ReadonlyArray<string> => {
    const result: Array<string> = []
    for (const block of blocks) for (const row of rows(block, width)) result.push(row)
    return result
  }

  return { rows, all }
}
