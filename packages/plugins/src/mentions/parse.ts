/**
 * Finds `@` mentions in a prompt: `@src/a.ts`, `@src/` , `@a.ts:10-20`, `@"a name.md"`. Pure.
 *
 * A mention begins a word, so `me@example.com` is none. Which of them are files is for the file system to say; punctuation
 * behind a name is part of it only if such a file is there, so several readings are given, the longest first.
 */

export interface Lines {
  /** First and last line, from 1. */
  readonly from: number
  readonly to: number
}

export interface Reading {
  readonly path: string
  readonly lines: Lines | null
}

export interface MentionText {
  /** As it is written, with the `@`. */
  readonly text: string
  readonly readings: ReadonlyArray<Reading>
}

const mention = /(?:^|[\s([{<`'])@(?:"([^"\n]{1,1000})"|([^\s"`]{1,1000}))/gu

const withLines = (path: string): ReadonlyArray<Reading> => {
  const match = /^(.+?):(\d{1,9})(?:-(\d{1,9}))?$/.exec(path)
  const whole: Reading = { path, lines: null }
  if (match?.[1] === undefined) return [whole]
  const from = Math.max(1, Number(match[2]))
  const to = match[3] === undefined ? from : Math.max(from, Number(match[3]))
  return [whole, { path: match[1], lines: { from, to } }]
}

const readingsOf = (word: string): ReadonlyArray<Reading> => {
  const readings = [...withLines(word)]
  for (let rest = word; /[.,;:!?)\]}>'*_]$/.test(rest) && rest.length > 1;) {
    rest = rest.slice(0, -1)
    readings.push(...withLines(rest))
  }
  return readings
}

export const mentionsIn = (text: string, most: number): ReadonlyArray<MentionText> => {
  const found = new Map<string, MentionText>()
  for (const [, quoted, plain] of text.matchAll(mention)) {
    const word = quoted ?? plain ?? ""
    if (word === "" || found.has(word)) continue
    found.set(word, { text: `@${word}`, readings: quoted === undefined ? readingsOf(word) : withLines(word) })
    if (found.size >= most) break
  }
  return [...found.values()]
}
