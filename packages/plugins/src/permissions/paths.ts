/**
 * Path patterns in permission rules.
 *
 * A pattern is relative to the location, below `~/`, or absolute. `*` and `?` stay within one name, a name `**` spans any
 * number of folders, and a pattern covers everything below what it matches. A pattern without a slash (`*.pem`, `.env`) is for
 * that name in any folder: to deny or ask anywhere, to allow inside the location only. `*` and `**` alone are everything,
 * everywhere. Matching takes no more than pattern times path, so a pattern from a repository cannot hold anything up.
 */
import * as path from "node:path"
import { escapePattern, matchTokens, tokenize, type Tokens } from "./pattern.ts"

const folders = Symbol("folders")

export interface PathPattern {
  readonly source: string
  /** `everything`, a single `name`, or a `place` given from the root. */
  readonly kind: "everything" | "name" | "place"
  readonly segments: ReadonlyArray<Tokens | typeof folders>
}

const namesOf = (file: string): ReadonlyArray<string> => file.split("/").filter((name) => name !== "")

const segment = (text: string): Tokens | typeof folders => /^\*\*+$/.test(text) ? folders : tokenize(text)

export const pathPattern = (source: string, location: string, home: string): PathPattern => {
  const text = source.trim()
  if (/^\*+$/.test(text)) return { source, kind: "everything", segments: [] }
  if (!text.includes("/") && !["~", ".", ".."].includes(text)) {
    return { source, kind: "name", segments: [segment(text)] }
  }
  const fromHome = text === "~" || text.startsWith("~/")
  const from = fromHome
    ? `${escapePattern(home)}${text.slice(1)}`
    : path.isAbsolute(text)
    ? text
    : `${escapePattern(location)}/${text}`
  return { source, kind: "place", segments: namesOf(path.posix.normalize(from)).map(segment) }
}

/** Whether the pattern matches the path or a folder that it is in. */
const covers = (segments: PathPattern["segments"], names: ReadonlyArray<string>): boolean => {
  const end = segments.length
  // The places in the pattern that the names read so far can have led to.
  let reached = spanning(segments, new Set([0]))
  if (reached.has(end)) return true
  for (const name of names) {
    const next = new Set<number>()
    for (const at of reached) {
      const expected = segments[at]
      if (expected === folders) next.add(at)
      else if (expected !== undefined && matchTokens(expected, name)) next.add(at + 1)
    }
    reached = spanning(segments, next)
    if (reached.has(end)) return true
  }
  return false
}

/** Folders may be none at all. */
const spanning = (segments: PathPattern["segments"], reached: Set<number>): Set<number> => {
  for (const at of reached) if (segments[at] === folders) reached.add(at + 1)
  return reached
}

export const isInside = (folder: string, file: string): boolean =>
  file === folder || file.startsWith(folder.endsWith("/") ? folder : `${folder}/`)

/** For `allow`, a mere name holds inside the location only. */
export const matchesPath = (
  pattern: PathPattern,
  file: string,
  verdict: "allow" | "ask" | "deny",
  location: string
): boolean => {
  if (pattern.kind === "everything") return true
  if (pattern.kind === "place") return covers(pattern.segments, namesOf(file))
  const inside = isInside(location, file)
  if (!inside && verdict === "allow") return false
  // The folders that the location itself lies in have names too; they are not what a rule of this project speaks of.
  const names = namesOf(inside ? file.slice(location.length) : file)
  return names.some((name) => covers(pattern.segments, [name]))
}
