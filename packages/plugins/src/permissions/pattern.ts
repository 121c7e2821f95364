/**
 * The two kinds of pattern in permission rules, and the question that each can answer about a text that is partly unknown.
 *
 * *Text patterns* (command lines, URLs, names): `*` is any text, `?` one character, all else stands for itself; runs of spaces
 * count as one; ` *` at the end also matches without arguments, so `rm *` covers a bare `rm`. *Path patterns*: see `paths.ts`.
 * `\*`, `\?` and `\\` stand for the character itself.
 *
 * A command line may hold parts that only the shell will know (`$X`, `$(…)`, `*.ts`). They are one `unknown` character in a
 * text: `matches` says whether a pattern fits whatever they stand for, `mayMatch` whether it fits something they could stand for.
 */

/** Stands in a text for a part, of any length, that is not known. Never part of a real command: a shell takes no NUL. */
export const unknown = "\u0000"

/** One character, or `many` (any text) or `one` (any one character). */
type Token = string | typeof many | typeof one
const many = Symbol("many")
const one = Symbol("one")

export type Tokens = ReadonlyArray<Token>

export interface TextPattern {
  readonly source: string
  readonly alternatives: ReadonlyArray<Tokens>
}

/** Reads wildcards and escapes. */
export const tokenize = (source: string): Tokens => {
  const tokens: Array<Token> = []
  for (let index = 0; index < source.length; index++) {
    const character = source.charAt(index)
    const next = source.charAt(index + 1)
    if (character === "\\" && (next === "*" || next === "?" || next === "\\")) {
      tokens.push(next)
      index++
    } else if (character === "*") {
      if (tokens.at(-1) !== many) tokens.push(many)
    } else {
      tokens.push(character === "?" ? one : character)
    }
  }
  return tokens
}

export const textPattern = (source: string): TextPattern => {
  const normal = spaced(source)
  const bare = normal.endsWith(" *") && !normal.endsWith("\\ *") ? [tokenize(normal.slice(0, -2))] : []
  return { source, alternatives: [tokenize(normal), ...bare] }
}

/** Writes a text so that as a pattern it matches exactly itself. */
export const escapePattern = (text: string): string => text.replace(/[*?]|\\(?=[*?\\])/g, "\\$&")

/** Spaces of patterns and texts are compared alike. */
const spaced = (text: string): string => text.trim().replace(/[ \t]+/g, " ")

const fits = (token: Token, character: string): boolean => token === one ? character !== unknown : token === character

/** Wildcard matching with one point of return, linear in practice: a pattern from a repository cannot make it explode. */
export const matchTokens = (tokens: Tokens, text: string): boolean => {
  let at = 0
  let position = 0
  let star = -1
  let starPosition = 0
  while (position < text.length) {
    const token = tokens[at]
    if (token === many) {
      star = at++
      starPosition = position
    } else if (token !== undefined && fits(token, text.charAt(position))) {
      at++
      position++
    } else if (star >= 0) {
      at = star + 1
      position = ++starPosition
    } else {
      return false
    }
  }
  while (tokens[at] === many) at++
  return at === tokens.length
}

/** Whether some text fits both the pattern and the partly unknown text: row by row over the pattern's states. */
const intersects = (tokens: Tokens, text: string): boolean => {
  let states = new Set<number>([0])
  const close = (from: Set<number>): Set<number> => {
    for (const state of from) if (tokens[state] === many) from.add(state + 1)
    return from
  }
  states = close(states)
  for (let position = 0; position < text.length; position++) {
    const character = text.charAt(position)
    const next = new Set<number>()
    for (const state of states) {
      if (character === unknown) {
        for (let later = state; later <= tokens.length; later++) next.add(later)
        continue
      }
      const token = tokens[state]
      if (token === many) next.add(state)
      else if (token !== undefined && fits(token, character)) next.add(state + 1)
    }
    states = close(next)
    if (states.size === 0) return false
  }
  return states.has(tokens.length)
}

/** The pattern fits, whatever the unknown parts are. */
export const matches = (pattern: TextPattern, text: string): boolean =>
  pattern.alternatives.some((tokens) => matchTokens(tokens, spaced(text)))

/** The pattern fits for some content of the unknown parts. */
export const mayMatch = (pattern: TextPattern, text: string): boolean =>
  text.includes(unknown)
    ? pattern.alternatives.some((tokens) => intersects(tokens, spaced(text)))
    : matches(pattern, text)
