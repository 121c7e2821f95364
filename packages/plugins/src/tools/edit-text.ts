/**
 * Replacing text in bytes: what is outside the replaced places stays byte for byte, whatever it is.
 *
 * Bytes are handled as Latin-1 strings, one unit per byte, so that a byte order mark, mixed line endings and bytes that
 * are no UTF-8 survive. A line break in the old text matches LF and CRLF; line breaks of the new text follow those of
 * the place.
 */

export interface Replaced {
  readonly content: Buffer
  /** How many places were replaced. */
  readonly count: number
  /** Line of the first place, from 1. */
  readonly line: number
}

/** Why nothing was replaced. `lines` are the lines of the matches, from 1. */
export type NotReplaced =
  | { readonly reason: "absent"; readonly near: number | null }
  | { readonly reason: "several"; readonly lines: ReadonlyArray<number>; readonly count: number }
  | { readonly reason: "identical" }

export const replaceText = (
  bytes: Buffer,
  oldText: string,
  newText: string,
  all: boolean
): Replaced | NotReplaced => {
  const text = bytes.toString("latin1")
  const oldLines = linesOf(oldText)
  const newLines = linesOf(newText)
  const places = placesOf(text, oldLines)
  const [first] = places
  if (first === undefined) return { reason: "absent", near: similarLine(text, oldLines) }
  if (places.length > 1 && !all) {
    return {
      reason: "several",
      lines: places.slice(0, 10).map((place) => lineAt(text, place.index)),
      count: places.length
    }
  }
  const parts: Array<string> = []
  let from = 0
  for (const place of places) {
    parts.push(
      text.slice(from, place.index),
      withEndings(newLines, text, place.index, text.slice(place.index, place.end))
    )
    from = place.end
  }
  parts.push(text.slice(from))
  const content = parts.join("")
  if (content === text) return { reason: "identical" }
  return { content: Buffer.from(content, "latin1"), count: places.length, line: lineAt(text, first.index) }
}

/** Number of the line that holds a place, from 1. */
export const lineAt = (text: string, index: number): number => {
  let line = 1
  for (let at = text.indexOf("\n"); at !== -1 && at < index; at = text.indexOf("\n", at + 1)) line++
  return line
}

/** Lines of a text, as Latin-1 of their UTF-8, without their ends. */
const linesOf = (text: string): ReadonlyArray<string> => Buffer.from(text, "utf8").toString("latin1").split(/\r?\n/)

interface Place {
  readonly index: number
  readonly end: number
}

/** Where these lines stand one after the other, each break being LF or CRLF. Places do not overlap. */
const placesOf = (text: string, lines: ReadonlyArray<string>): ReadonlyArray<Place> => {
  const [first = "", ...others] = lines
  const places: Array<Place> = []
  for (let index = text.indexOf(first); index !== -1;) {
    const end = endOf(text, index + first.length, others)
    if (end !== -1) places.push({ index, end })
    const from = end > index ? end : index + 1
    index = from > text.length ? -1 : text.indexOf(first, from)
  }
  return places
}

const endOf = (text: string, start: number, lines: ReadonlyArray<string>): number => {
  let at = start
  for (const line of lines) {
    if (text[at] === "\r" && text[at + 1] === "\n") at += 2
    else if (text[at] === "\n") at += 1
    else return -1
    if (!text.startsWith(line, at)) return -1
    at += line.length
  }
  return at
}

/** The n-th break of the new text is as the n-th of the replaced, then as its last; else as the breaks around it. */
const withEndings = (lines: ReadonlyArray<string>, text: string, index: number, replaced: string): string => {
  if (lines.length === 1) return lines[0] ?? ""
  const endings = replaced.match(/\r?\n/g) ?? []
  const usual = endings.at(-1) ?? endingAround(text, index, index + replaced.length)
  return lines.map((line, number) => number === lines.length - 1 ? line : line + (endings[number] ?? usual)).join("")
}

const endingAround = (text: string, start: number, end: number): string => {
  const after = text.indexOf("\n", end)
  if (after !== -1) return text[after - 1] === "\r" ? "\r\n" : "\n"
  const before = start === 0 ? -1 : text.lastIndexOf("\n", start - 1)
  return before > 0 && text[before - 1] === "\r" ? "\r\n" : "\n"
}

/** A line that is like the first of the old text but for its white space: what a model most often gets wrong. */
const similarLine = (text: string, oldLines: ReadonlyArray<string>): number | null => {
  const wanted = oldLines.map(squeeze).find((line) => line.length >= 4)
  if (wanted === undefined) return null
  const at = text.split("\n").findIndex((line) => squeeze(line) === wanted)
  return at === -1 ? null : at + 1
}

const squeeze = (line: string): string => line.trim().replaceAll(/\s+/g, " ")
