/**
 * What a facet shows: blocks of styled text, as plain immutable values.
 *
 * A facet never writes to the terminal and never writes an escape sequence. It hands out blocks; the host lays them out,
 * paints them with the current theme and passes every text in them through the one sanitizer (`sanitize.ts`). So a text
 * from a model, a tool, a file name or a title can be put into a span as it is.
 *
 * Blocks are compared by identity: a facet that gives the same block again costs nothing, so keep blocks that did not
 * change and make new ones for what did.
 */

/** Roles that a theme paints. `text` is the terminal's own foreground. */
export type ThemeColor =
  | "text"
  | "muted"
  | "accent"
  | "user"
  | "success"
  | "warning"
  | "error"
  | "added"
  | "removed"
  | "code"
  | "heading"
  | "link"
  | "border"

export interface SpanStyle {
  readonly color?: ThemeColor
  readonly bold?: boolean
  readonly dim?: boolean
  readonly italic?: boolean
  readonly underline?: boolean
  readonly strikethrough?: boolean
  readonly inverse?: boolean
}

export interface StyledSpan extends SpanStyle {
  readonly text: string
}

/** A run of text; a bare string is unstyled. */
export type Span = string | StyledSpan

export interface TextBlock {
  readonly kind: "text"
  readonly spans: ReadonlyArray<Span>
  /** `word` breaks at words, `clip` keeps each line on one row and marks what was cut with `…`. */
  readonly wrap: "word" | "clip"
  /** Columns before each row. */
  readonly indent: number
  /** Stands before the first row, inside the indent; later rows are indented by its width. */
  readonly marker: Span | null
}

export interface MarkdownBlock {
  readonly kind: "markdown"
  readonly source: string
  readonly indent: number
  readonly style: SpanStyle
  /** Give the same object for the same growing text, so that only its new end is laid out again. */
  readonly identity: object | null
}

/** One row with a left and a right end; the left gives way when both do not fit. */
export interface RowBlock {
  readonly kind: "row"
  readonly left: ReadonlyArray<Span>
  readonly right: ReadonlyArray<Span>
}

/** An empty row. */
export interface GapBlock {
  readonly kind: "gap"
}

/** A horizontal line over the whole width. */
export interface RuleBlock {
  readonly kind: "rule"
  readonly style: SpanStyle
}

export interface GroupBlock {
  readonly kind: "group"
  readonly children: ReadonlyArray<Block>
  /** Its rows have no colours and are pale. */
  readonly faint?: boolean
}

/**
 * An image: a row that describes it, and below it the image where the terminal can draw it. Most cannot; nothing is drawn
 * inside tmux and on the full screen. Files of other kinds are described.
 */
export interface ImageBlock {
  readonly kind: "image"
  readonly mediaType: string
  /** Base64 text. */
  readonly data: string
  readonly name: string | null
  readonly indent: number
}

export type Block = TextBlock | MarkdownBlock | RowBlock | GapBlock | RuleBlock | GroupBlock | ImageBlock

const spansOf = (content: Span | ReadonlyArray<Span>): ReadonlyArray<Span> =>
  typeof content === "string" || !Array.isArray(content) ? [content as Span] : content

/** A span with a style. */
export const span = (text: string, style: SpanStyle = {}): StyledSpan => ({ ...style, text })

/** Text of one or more lines. */
export const text = (
  content: Span | ReadonlyArray<Span>,
  options: { readonly wrap?: "word" | "clip"; readonly indent?: number; readonly marker?: Span } = {}
): TextBlock => ({
  kind: "text",
  spans: spansOf(content),
  wrap: options.wrap ?? "word",
  indent: options.indent ?? 0,
  marker: options.marker ?? null
})

/** Markdown, laid out for the width at hand. Incomplete markdown of an answer that still streams is fine. */
export const markdown = (
  source: string,
  options: { readonly indent?: number; readonly style?: SpanStyle; readonly identity?: object } = {}
): MarkdownBlock => ({
  kind: "markdown",
  source,
  indent: options.indent ?? 0,
  style: options.style ?? {},
  identity: options.identity ?? null
})

export const row = (left: Span | ReadonlyArray<Span>, right: Span | ReadonlyArray<Span> = []): RowBlock => ({
  kind: "row",
  left: spansOf(left),
  right: spansOf(right)
})

export const gap: GapBlock = { kind: "gap" }

export const rule = (style: SpanStyle = { color: "border" }): RuleBlock => ({ kind: "rule", style })

export const group = (children: ReadonlyArray<Block>): GroupBlock => ({ kind: "group", children })

const faintOnes = new WeakMap<Block, Block>()

/** A block as what is not up to date: pale, without colours. The same one for the same block. */
export const faint = (block: Block): Block => {
  const known = faintOnes.get(block)
  if (known !== undefined) return known
  // What consists of parts stays in parts, of which a screen lays out those that it shows.
  const made: Block = block.kind === "group" && block.children.every(({ kind }) => kind === "group")
    ? group(block.children.map(faint))
    : { kind: "group", children: block.kind === "group" ? block.children : [block], faint: true }
  faintOnes.set(block, made)
  return made
}

/** A file of a message, as an image. */
export const image = (
  file: { readonly mediaType: string; readonly data: string; readonly fileName?: string },
  options: { readonly indent?: number } = {}
): ImageBlock => ({
  kind: "image",
  mediaType: file.mediaType,
  data: file.data,
  name: file.fileName ?? null,
  indent: options.indent ?? 0
})
