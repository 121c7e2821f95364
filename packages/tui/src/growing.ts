/**
 * Markdown that grows at its end, as an answer does while it streams: what is finished is laid out once.
 *
 * A text is cut where a blank line ends everything that stands before it, so that no word that may still come can change
 * how that is shown; only what follows the last cut is laid out again. The rows are those of the whole text laid out at
 * once, always: where a cut could make a difference (reference definitions, HTML and mathematics that are open, a link
 * that is), none is made, and such a text costs what it cost before. Plain synchronous code.
 */
import { Marked, type Token } from "@earendil-works/pi-tui"
import { sanitize } from "./sanitize.ts"

/** Lays a text out. */
export type MarkdownLayout = (source: string, width: number) => ReadonlyArray<string>

const lexer = new Marked().Lexer

/** A display formula that is open to what follows, or could be; the parser looks for one behind a first letter, too. */
const formula = /^.? {0,3}(?:\$\$|\\\[)/m
/** One formula and nothing else, as a block. */
const closedFormula = /^ {0,3}(?:\$\$\s*[^$\s][^$]*\$\$|\\\[\s*(?!\\[[\]])\S(?:(?!\\[[\]])[^])*\\\])[ \t]*\n?$/
/** What blank space is that has a line of its own, with the character before it. */
const blankLine = /^(?:\n|[^\n][ \t]*\n)[ \t]*\n/
/** What a reference definition begins with, anywhere; also where it is only code, and such a text is laid out as a whole. */
const definition = /^[ \t>*+\-\d.)]*\[(?:\\[^]|[^[\]\\])+\]:/m
/** A label of one that is not complete yet, and may go on over blank lines. */
const openLabel = /^ {0,3}\[(?:\\[^]|[^[\]\\])*[\\\]]?$/

/** Whether nothing that follows can change how this block is read, and it changes nothing of how others are. */
const isFinal = (token: Token, upTo: string): boolean => {
  if (token.type === "space" || token.type === "code") return true
  if (token.type === "html" && token.raw.includes("<!--")) return false
  // An open link makes words that look like addresses plain ones, in all blocks that follow.
  if (/<a\s/i.test(token.raw)) return false
  if (formula.test(token.raw) && !closedFormula.test(token.raw)) return false
  return !openLabel.test(upTo)
}

/**
 * Where a text can be cut for good: a place behind a blank line. 0 where it cannot, `null` where it never will be, since it
 * has reference definitions, which change what stands before them.
 */
export const finishedUpTo = (source: string): number | null => {
  if (definition.test(source)) return null
  const made = new lexer()
  made.blockTokens(source, made.tokens)
  let end = 0
  let found = 0
  for (const [index, token] of made.tokens.entries()) {
    const from = end
    end += token.raw.length
    const next = made.tokens[index + 1]
    // What a line is shows when it is complete.
    if (next === undefined || !source.slice(end).includes("\n")) break
    const before = made.tokens[index - 1]
    // Two that meet are one where a formula comes anywhere below.
    if (!isFinal(token, source.slice(from)) || (token.type === "paragraph" && before?.type === "paragraph")) break
    const isGap = token.type === "space" && before !== undefined && blankLine.test(source.slice(from - 1, end))
    if (isGap && !formula.test(before.type === "code" ? "" : before.raw) && next.type !== "html") found = end
  }
  // Tokens whose texts are not the text's are of a text that was changed in reading, such as one with tabs.
  return source.startsWith(made.tokens.map(({ raw }) => raw).join("").slice(0, found)) ? found : 0
}

/** The place behind as many line feeds as the first `length` characters of `clean` have. */
const placeOf = (raw: string, clean: string, length: number): number => {
  if (raw === clean) return length
  let place = 0
  for (let at = clean.indexOf("\n"); at !== -1 && at < length; at = clean.indexOf("\n", at + 1)) {
    place = raw.indexOf("\n", place) + 1
  }
  return place
}

/** The layout of one text as it grows. `lay` lays out a sanitized text for itself, and keeps nothing of it. */
export const makeGrowing = (lay: MarkdownLayout): MarkdownLayout => {
  /** What is finished, as it was given and as it is laid out. */
  let done = ""
  let pieces: Array<string> = []
  let rows: Array<string> = []
  let columns = 0
  /** The newest text, and how much of it had been looked at for a cut. */
  let latest: string | null = null
  let looked = 0
  let isWhole = false

  const restart = (): void => {
    done = ""
    pieces = []
    rows = []
    looked = 0
    isWhole = false
  }

  const cut = (source: string): void => {
    if (isWhole) return
    const raw = source.slice(done.length)
    // A blank line that has come since, or what a definition cannot be without; most frames bring neither.
    if (source.lastIndexOf("\n\n") < looked && !raw.includes("]:")) return
    looked = source.length
    const clean = sanitize(raw)
    const finished = finishedUpTo(clean)
    if (finished === null) {
      restart()
      isWhole = true
      return
    }
    if (finished === 0) return
    const piece = clean.slice(0, finished)
    pieces.push(piece)
    done += raw.slice(0, placeOf(raw, clean, finished))
    for (const row of lay(piece, columns)) rows.push(row)
  }

  return (source, width) => {
    const grows = latest !== null && source.startsWith(latest)
    if (!source.startsWith(done)) restart()
    latest = source
    if (width !== columns) {
      columns = width
      rows = pieces.flatMap((piece) => lay(piece, width))
    }
    // A text that is given once is laid out once.
    if (grows) cut(source)
    const last = lay(sanitize(source.slice(done.length)), width)
    if (rows.length === 0) return last
    // A blank row is an empty heading, or stands for a text without any row; only the whole text tells.
    return last.length === 1 && last[0] === "" ? lay(sanitize(source), width) : rows.concat(last)
  }
}
