/**
 * Walking a directory in order, by one rule that search and list share:
 *
 * - hidden files and directories are looked at like all others, `.git` is not;
 * - what git ignores is left out and counted;
 * - what was named exactly is always looked at, and inside an ignored directory that was named nothing is left out;
 * - symbolic links are shown, never followed, so a walk ends.
 */
import * as Effect from "effect/Effect"
import type { Dirent } from "node:fs"
import * as FileSystem from "node:fs/promises"
import * as NodePath from "node:path"
import type { IgnoreRules } from "./ignore.ts"
import { isIgnored, rulesAt, rulesBelow } from "./ignore.ts"

/** The rule in words, for descriptions of tools. */
export const walkRule =
  "Hidden files are included, .git and files that git ignores are not; what is left out is said. A path named exactly is always looked at."

export interface WalkEntry {
  readonly path: string
  /** From where the walk started. */
  readonly segments: ReadonlyArray<string>
  readonly kind: "file" | "directory" | "link" | "other"
}

export interface LeftOut {
  readonly count: number
  /** Whether the walk came to its end; if not, there may be more. */
  readonly complete: boolean
  /** The first of them, as paths from where the walk started; directories end in `/`. */
  readonly examples: ReadonlyArray<string>
  /** Directories that could not be read. */
  readonly unreadable: ReadonlyArray<string>
}

export interface WalkOptions {
  readonly directory: string
  /** Where `.gitignore` files begin to count outside of a git work tree. */
  readonly workspace: string
  /** How deep; 1 is only the directory's own entries. */
  readonly depth: number
  /** Takes an entry in order; `false` ends the walk. */
  readonly visit: (entry: WalkEntry) => Effect.Effect<boolean>
}

const MAX_EXAMPLES = 5
const MAX_DEPTH = 256

/** Walks depth first, entries by name in code unit order, each directory before its content. */
export const walk = (options: WalkOptions): Effect.Effect<LeftOut> =>
  Effect.gen(function*() {
    let count = 0
    const examples: Array<string> = []
    const unreadable: Array<string> = []
    const start = startRules(options.directory, options.workspace)

    const into = (
      directory: string,
      segments: ReadonlyArray<string>,
      rules: IgnoreRules | null
    ): Effect.Effect<boolean> =>
      Effect.gen(function*() {
        const entries = yield* entriesOf(directory)
        if (entries === null) {
          unreadable.push(segments.join("/") || ".")
          return true
        }
        for (const entry of entries) {
          if (entry.name === ".git") continue
          const path = NodePath.join(directory, entry.name)
          const below = [...segments, entry.name]
          if (rules !== null && isIgnored(rules, path, entry.isDirectory())) {
            count++
            if (examples.length < MAX_EXAMPLES) examples.push(below.join("/") + (entry.isDirectory() ? "/" : ""))
            continue
          }
          if (!(yield* options.visit({ path, segments: below, kind: kindOf(entry) }))) return false
          if (!entry.isDirectory() || below.length >= Math.min(options.depth, MAX_DEPTH)) continue
          if (!(yield* into(path, below, rules === null ? null : rulesBelow(rules, path)))) return false
        }
        return true
      })

    const complete = yield* into(options.directory, [], start)
    return { count, complete, examples, unreadable }
  })

/** What was left out, as a sentence in brackets; an empty text if nothing was. */
export const leftOutNotice = (leftOut: LeftOut): string => {
  const more = leftOut.count > leftOut.examples.length ? ", …" : ""
  const ignored = leftOut.count === 0
    ? ""
    : `[Left out because git ignores it: ${leftOut.complete ? "" : "at least "}${leftOut.count} ${
      leftOut.count === 1 ? "entry" : "entries"
    } (${leftOut.examples.join(", ")}${more}).]`
  const unreadable = leftOut.unreadable.length === 0
    ? ""
    : `[Could not be read: ${leftOut.unreadable.slice(0, MAX_EXAMPLES).join(", ")}.]`
  return [ignored, unreadable].filter((part) => part !== "").join("\n")
}

/** The rules for a walk; `null` inside an ignored directory: it was named, so nothing in it is left out. */
export const startRules = (directory: string, workspace: string): IgnoreRules | null => {
  const rules = rulesAt(directory, workspace)
  const top = topOf(rules)
  for (let at = directory; at !== top && at !== NodePath.dirname(at); at = NodePath.dirname(at)) {
    if (isIgnored(rules, at, true)) return null
  }
  return rules
}

const topOf = (rules: IgnoreRules): string => rules.above === null ? rules.directory : topOf(rules.above)

const entriesOf = (directory: string): Effect.Effect<ReadonlyArray<Dirent> | null> =>
  Effect.promise(async () => {
    try {
      const entries = await FileSystem.readdir(directory, { withFileTypes: true })
      return entries.sort((left, right) => left.name < right.name ? -1 : left.name > right.name ? 1 : 0)
    } catch {
      return null
    }
  })

const kindOf = (entry: Dirent): WalkEntry["kind"] =>
  entry.isFile() ? "file" : entry.isDirectory() ? "directory" : entry.isSymbolicLink() ? "link" : "other"
