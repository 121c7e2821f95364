/**
 * Putting the hunks of a patch into a text: what is outside of the changed lines stays byte for byte. Pure.
 *
 * Text is Latin-1 of bytes, as in `edit-text`. A hunk is looked for behind the one before it: as it is written, then without
 * regard to blank space at line ends, then around lines. Its context only finds the place; the file keeps its own lines. New
 * lines end as the lines around them do.
 */
import type { Hunk } from "./patch-format.ts"

/** The hunk that does not fit, and why. */
export interface Misfit {
  readonly hunk: Hunk
  readonly why: string
}

interface Line {
  readonly text: string
  readonly end: string
}

const linesOf = (text: string): Array<Line> =>
  [...text.matchAll(/([^\n]*?)(\r?\n)|([^\n]+)$/g)].map(([, line, end, last]) => ({
    text: line ?? last ?? "",
    end: end ?? ""
  }))

const latin = (text: string): string => Buffer.from(text, "utf8").toString("latin1")

const bom = "\u00ef\u00bb\u00bf"

type Same = (left: string, right: string) => boolean

const comparisons: ReadonlyArray<Same> = [
  (left, right) => left === right,
  (left, right) => left.trimEnd() === right.trimEnd(),
  (left, right) => left.trim() === right.trim()
]

const at = (lines: ReadonlyArray<Line>, index: number): string => {
  const text = lines[index]?.text ?? ""
  return index === 0 && text.startsWith(bom) ? text.slice(bom.length) : text
}

/** Where these lines stand, from `from` on, or -1. */
const placeOf = (lines: ReadonlyArray<Line>, wanted: ReadonlyArray<string>, from: number, toEnd: boolean): number => {
  for (const same of comparisons) {
    const first = toEnd ? Math.max(from, lines.length - wanted.length) : from
    for (let start = first; start + wanted.length <= lines.length; start++) {
      if (wanted.every((text, offset) => same(at(lines, start + offset), text))) return start
    }
  }
  return -1
}

/** The line of an @@ may be given again as the first of the context. */
const firstPlace = (
  lines: ReadonlyArray<Line>,
  wanted: ReadonlyArray<string>,
  froms: ReadonlyArray<number>,
  toEnd: boolean
): number => froms.map((from) => placeOf(lines, wanted, from, toEnd)).find((place) => place !== -1) ?? -1

const shown = (text: string): string => JSON.stringify(Buffer.from(text, "latin1").toString("utf8").slice(0, 120))

const quoted = (wanted: ReadonlyArray<string>): string => {
  const first = wanted.find((text) => text.trim() !== "") ?? wanted[0] ?? ""
  return `${shown(first)}${wanted.length > 1 ? ` and the ${wanted.length - 1} lines that belong to it` : ""}`
}

const whyNot = (lines: ReadonlyArray<Line>, wanted: ReadonlyArray<string>, from: number, hunk: Hunk): string => {
  const elsewhere = placeOf(lines, wanted, 0, false)
  if (elsewhere !== -1 && elsewhere < from) {
    return `its lines are at line ${
      elsewhere + 1
    }, before the place where the previous hunk or its @@ line leads; hunks stand in the order of the file`
  }
  if (elsewhere !== -1 && hunk.toEnd) return `its lines are at line ${elsewhere + 1}, and not at the end of the file`
  const matching = wanted.findIndex((text) => text.trim() !== "" && placeOf(lines, [text], from, false) === -1)
  const missing = wanted[matching]
  return missing === undefined
    ? `the file has its lines, but not one after the other: ${quoted(wanted)}`
    : `the file has no line ${shown(missing)}`
}

/** The text with all hunks in it, or the first that does not fit. */
export const applyHunks = (text: string, hunks: ReadonlyArray<Hunk>): string | Misfit => {
  const lines = linesOf(text)
  const usual = lines.find(({ end }) => end !== "")?.end ?? "\n"
  const hasFinalEnd = lines.length === 0 || lines.at(-1)?.end !== ""
  const result: Array<Line> = []
  let cursor = 0
  for (const hunk of hunks) {
    let from = cursor
    for (const header of hunk.after.map(latin)) {
      const found = placeOf(lines, [header], from, false)
      if (found === -1) return { hunk, why: `there is no line ${shown(header)} for its @@` }
      from = found + 1
    }
    const wanted = hunk.lines.filter(({ sign }) => sign !== "+").map((line) => latin(line.text))
    // Only additions: behind the @@ line, else at the end.
    const start = wanted.length === 0
      ? hunk.after.length === 0 || hunk.toEnd ? lines.length : from
      : firstPlace(lines, wanted, hunk.after.length > 0 && from > cursor ? [from, from - 1] : [from], hunk.toEnd)
    if (start === -1) return { hunk, why: whyNot(lines, wanted, from, hunk) }
    result.push(...lines.slice(cursor, start))
    cursor = start
    let removedEnd = ""
    for (const line of hunk.lines) {
      const here = lines[cursor]
      if (line.sign === "+") {
        const end = removedEnd || here?.end || lines[cursor - 1]?.end || usual
        result.push({ text: latin(line.text), end })
        continue
      }
      if (line.sign === " " && here !== undefined) result.push(here)
      removedEnd = line.sign === "-" ? here?.end ?? "" : ""
      cursor++
    }
  }
  result.push(...lines.slice(cursor))
  return result.map(({ end, text: line }, index) =>
    index === result.length - 1 ? line + (hasFinalEnd ? end || usual : "") : line + (end || usual)
  ).join("")
}
