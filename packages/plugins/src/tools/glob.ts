/**
 * Glob patterns, as `.gitignore` files and the search tool's `glob` have them: `*`, `?`, `[…]`, `**`, and `{a,b}` for
 * search.
 *
 * Matching is by two pointers, not by regular expression, so that no pattern can take exponential time.
 */

/** One path segment of a pattern, or `**`, which stands for any number of segments. */
type Segment = "**" | ReadonlyArray<Token>
type Token = { readonly kind: "any" } | { readonly kind: "one" } | {
  readonly kind: "set"
  readonly test: (character: string) => boolean
}

export type Glob = ReadonlyArray<Segment>

/** A pattern of segments, matched against whole paths. */
export const compileGlob = (pattern: string): Glob =>
  pattern.split("/").filter((segment) => segment !== "").map((segment) => segment === "**" ? "**" : tokensOf(segment))

/** Whether a path, given as its segments, matches. */
export const matchesGlob = (glob: Glob, path: ReadonlyArray<string>): boolean =>
  wildcard(
    glob,
    path,
    (segment) => segment === "**",
    (segment, name) => segment !== "**" && matchesSegment(segment, name)
  )

/**
 * The search tool's `glob`: without `/` it is matched against names at any depth, with one against the path from where
 * the search starts; braces give alternatives.
 */
export const fileGlob = (pattern: string): (path: ReadonlyArray<string>) => boolean => {
  const globs = expandBraces(pattern.replace(/^(?:\.\/)+/, "")).map((one) =>
    compileGlob(one.includes("/") ? one : `**/${one}`)
  )
  return (path) => globs.some((glob) => matchesGlob(glob, path))
}

/** The greedy algorithm for `*`: on a mismatch, let the last star take one more and go on from there. */
const wildcard = <P, T>(
  pattern: ReadonlyArray<P>,
  text: ReadonlyArray<T>,
  isStar: (part: P) => boolean,
  matches: (part: P, item: T) => boolean
): boolean => {
  let p = 0
  let t = 0
  let star = -1
  let starTook = 0
  while (t < text.length) {
    const part = pattern[p]
    const item = text[t]
    if (part !== undefined && isStar(part)) {
      star = p
      starTook = t
      p++
    } else if (part !== undefined && item !== undefined && matches(part, item)) {
      p++
      t++
    } else if (star !== -1) {
      p = star + 1
      starTook++
      t = starTook
    } else return false
  }
  return pattern.slice(p).every(isStar)
}

const matchesSegment = (tokens: ReadonlyArray<Token>, name: string): boolean =>
  wildcard(
    tokens,
    [...name],
    (token) => token.kind === "any",
    (token, character) => token.kind === "one" || (token.kind === "set" && token.test(character))
  )

const tokensOf = (segment: string): ReadonlyArray<Token> => {
  const characters = [...segment]
  const tokens: Array<Token> = []
  for (let at = 0; at < characters.length; at++) {
    const character = characters[at] ?? ""
    if (character === "*") tokens.push({ kind: "any" })
    else if (character === "?") tokens.push({ kind: "one" })
    else if (character === "[") {
      const end = characters.indexOf("]", characters[at + 1] === "!" || characters[at + 1] === "^" ? at + 3 : at + 2)
      if (end === -1) tokens.push(literal("["))
      else {
        tokens.push({ kind: "set", test: setOf(characters.slice(at + 1, end)) })
        at = end
      }
    } else if (character === "\\" && at + 1 < characters.length) {
      at++
      tokens.push(literal(characters[at] ?? ""))
    } else tokens.push(literal(character))
  }
  return tokens
}

const literal = (wanted: string): Token => ({ kind: "set", test: (character) => character === wanted })

const setOf = (members: ReadonlyArray<string>): (character: string) => boolean => {
  const negated = members[0] === "!" || members[0] === "^"
  const listed = negated ? members.slice(1) : members
  const ranges: Array<readonly [string, string]> = []
  for (let at = 0; at < listed.length; at++) {
    const from = listed[at] ?? ""
    const to = listed[at + 1] === "-" ? listed[at + 2] : undefined
    ranges.push([from, to ?? from])
    if (to !== undefined) at += 2
  }
  return (character) => ranges.some(([from, to]) => character >= from && character <= to) !== negated
}

const MAX_ALTERNATIVES = 64

const expandBraces = (pattern: string): ReadonlyArray<string> => {
  const done: Array<string> = []
  const open = [pattern]
  while (open.length > 0 && done.length + open.length <= MAX_ALTERNATIVES) {
    const next = open.pop() ?? ""
    const found = /^(.*?)\{([^{}]*,[^{}]*)\}(.*)$/s.exec(next)
    if (found === null) done.push(next)
    else {for (const alternative of (found[2] ?? "").split(",").toReversed()) {
        open.push(`${found[1]}${alternative}${found[3]}`)
      }}
  }
  return [...done, ...open]
}
