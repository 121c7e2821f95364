/**
 * What every match of a regular expression contains, as plain text: one text for each of its alternatives. A file without any
 * of them has no match, so whoever is quick at plain text can say which files need no look.
 *
 * It takes what it is sure of and no more: groups, classes and what may be missing count for nothing. `null`: nothing is sure.
 */

export interface RequiredText {
  readonly texts: ReadonlyArray<string>
  readonly ignoreCase: boolean
}

/** Shorter texts are in most files. */
const minLength = 2

/** Escapes that stand for a place or for a class of characters; others that are letters or digits are not understood. */
const opaque = new Set("dDwWsSbBntrfv")

const literal = /^[\x20-\x7e]$|^[^\x00-\x7f]$/u

/** Where the class that begins at `from` ends, or -1. */
const endOfClass = (source: string, from: number): number => {
  for (let at = from + 1; at < source.length; at++) {
    if (source[at] === "\\") at++
    else if (source[at] === "]") return at
  }
  return -1
}

/** Where the group that begins at `from` ends, or -1. */
const endOfGroup = (source: string, from: number): number => {
  let depth = 0
  for (let at = from; at >= 0 && at < source.length; at++) {
    const unit = source[at]
    if (unit === "\\") at++
    else if (unit === "[") {
      at = endOfClass(source, at)
      if (at < 0) return -1
    } else if (unit === "(") depth++
    else if (unit === ")" && --depth === 0) return at
  }
  return -1
}

export const requiredText = (pattern: string): RequiredText | null => {
  const leading = /^\(\?([ims]+)\)/.exec(pattern)
  const ignoreCase = leading?.[1]?.includes("i") ?? false
  const source = leading === null ? pattern : pattern.slice(leading[0].length)
  const texts: Array<string> = []
  let best = ""
  let run: Array<string> = []
  const endRun = () => {
    const text = run.join("")
    if (text.length > best.length) best = text
    run = []
  }
  const endBranch = () => {
    endRun()
    texts.push(best)
    best = ""
  }
  for (let at = 0; at < source.length;) {
    const character = String.fromCodePoint(source.codePointAt(at) ?? 0)
    switch (character) {
      case "\\": {
        const escaped = source[at + 1] ?? ""
        if (/^[^\w\s]$/.test(escaped) && escaped < "\x7f") run.push(escaped)
        else if (opaque.has(escaped)) endRun()
        else return null
        at += 2
        continue
      }
      case "[":
      case "(": {
        endRun()
        const end = character === "[" ? endOfClass(source, at) : endOfGroup(source, at)
        if (end < 0) return null
        at = end + 1
        continue
      }
      case ")":
        return null
      case "|":
        endBranch()
        break
      case ".":
      case "^":
      case "$":
      case "+":
        endRun()
        break
      case "*":
      case "?":
        run.pop()
        endRun()
        break
      case "{":
        run.pop()
        endRun()
        at += /^\{\d+(?:,\d*)?\}/.exec(source.slice(at))?.[0].length ?? 1
        continue
      default:
        // What is not UTF-8 in a file is read as a replacement, and the other way round nothing is.
        if (!literal.test(character) || /^[\ud800-\udfff\ufffd]$/.test(character)) return null
        if (ignoreCase && character > "\x7f") endRun()
        else run.push(character)
    }
    at += character.length
  }
  endBranch()
  return texts.every((text) => text.length >= minLength) ? { texts, ignoreCase } : null
}
