/**
 * Joins deltas that arrived together: server-sent events in a row that differ only in the text of one delta become one event
 * with all of their text.
 *
 * A provider package spends far more on an event than on its text, so a model that is quicker than the program costs less
 * this way; a slow one is not touched, and nothing waits. It is exact: JSON strings are joined by joining what is between
 * their quotes. Only events of the plainest form are looked at (one line of data, no escapes outside of the delta), only
 * strings that are deltas by their place (`shape`), and everything else about two events must be the same, byte for byte.
 * What does not fit is handed on as it came. Text is of one byte per character (latin1), as bytes were received.
 */

/** Members that may stand beside a delta's text: they say nothing that adds up. */
const beside = String
  .raw`"(?:role|type)": ?"(?:assistant|function|text_delta|thinking_delta|input_json_delta)"|"\w+": ?(?:null|""|\[\])`
/** An event up to where the text of its delta begins. */
const opening = new RegExp(
  String.raw`(?:event: ?[\w.]+\r?\n)?data: ?\{[^\\\r\n]*?"delta": ?\{(?:(?:${beside}), ?)*` +
    String.raw`(?:"(?:content|reasoning|reasoning_content|text|thinking|partial_json)"|` +
    String
      .raw`"tool_calls": ?\[\{"index": ?\d+, ?(?:(?:${beside}), ?)*"function": ?\{(?:(?:${beside}), ?)*("arguments")): ?"`,
  "y"
)
/** What follows the text up to the event's end: the delta and the event, with nothing that a list could hold. */
const rest = String.raw`(?:, ?(?:${beside}))*\}[^\\\r\n[]*\}(?:\n|\r\n)(?:\n|\r\n)`
const closing = new RegExp(`"${rest}`, "y")
const closingCall = new RegExp(String.raw`"(?:, ?(?:${beside}))*\}(?:, ?(?:${beside}))*\}\]${rest}`, "y")
const blankLine = /\n\r?\n/g

/** The offset behind the next blank line at or after `from`, or -1. */
const afterBlankLine = (text: string, from: number): number => {
  blankLine.lastIndex = from
  return blankLine.test(text) ? blankLine.lastIndex : -1
}

const quote = 0x22
const backslash = 0x5c
const escapes = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y

/** The offset of the quote that ends the JSON string which holds `from`, or -1 if it is not whole or not valid. */
const endOfString = (text: string, from: number): number => {
  for (let at = from; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === quote) return at
    if (code < 0x20) return -1
    if (code !== backslash) continue
    escapes.lastIndex = at
    if (!escapes.test(text)) return -1
    at = escapes.lastIndex - 1
  }
  return -1
}

interface Shape {
  /** The event up to the text of its delta. */
  readonly prefix: string
  /** Where the text ends. */
  readonly close: number
  /** The event from there on, with the blank line behind it. */
  readonly suffix: string
}

/** How the event at `start` is made, or `null` if it is none whose text can be joined. */
const shapeAt = (text: string, start: number): Shape | null => {
  opening.lastIndex = start
  const found = opening.exec(text)
  if (found === null) return null
  const open = opening.lastIndex
  const prefix = found[0]
  if (prefix.indexOf('"delta"') !== prefix.lastIndexOf('"delta"')) return null
  const close = endOfString(text, open)
  if (close < 0) return null
  const end = found[1] === undefined ? closing : closingCall
  end.lastIndex = close
  if (!end.test(text)) return null
  const suffix = text.slice(close, end.lastIndex)
  return suffix.includes('"delta"') ? null : { prefix, close, suffix }
}

/** A byte that continues a character: behind another text it could complete one that was broken off there. */
const continues = (text: string, at: number): boolean => (text.charCodeAt(at) & 0xc0) === 0x80

/** For one stream: takes each piece as it was received, and gives what to hand on instead. */
export const makeDeltaJoiner = (): (piece: string) => string => {
  // The end of the piece before, as much as a blank line can have of it. A stream begins with an event.
  let before = "\n\n"
  return (piece) => {
    const seen = before + piece
    const start = before.length
    before = seen.slice(-3)
    let first = afterBlankLine(seen, 0)
    // One that ended earlier was that of an event whose beginning is in the piece before.
    while (first >= 0 && first < start) first = afterBlankLine(seen, first - 1)
    return first < 0 ? piece : join(piece, first - start)
  }
}

const join = (text: string, first: number): string => {
  const out: Array<string> = []
  let copied = 0
  let at = first
  while (at >= 0 && at < text.length) {
    const shape = shapeAt(text, at)
    if (shape === null) {
      at = afterBlankLine(text, at)
      continue
    }
    const { close, prefix, suffix } = shape
    const more: Array<string> = []
    at = close + suffix.length
    while (text.startsWith(prefix, at)) {
      const from = at + prefix.length
      const end = endOfString(text, from)
      if (end < 0 || continues(text, from) || !text.startsWith(suffix, end)) break
      more.push(text.slice(from, end))
      at = end + suffix.length
    }
    if (more.length === 0) continue
    out.push(text.slice(copied, close), ...more, suffix)
    copied = at
  }
  if (out.length === 0) return text
  out.push(text.slice(copied))
  return out.join("")
}
