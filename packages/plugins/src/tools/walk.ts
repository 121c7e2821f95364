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
  /** For people and patterns: what of it is not UTF-8 is replaced. */
  readonly path: string
  /** What the file system calls it. */
  readonly file: string | Buffer
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
      file: string | Buffer,
      segments: ReadonlyArray<string>,
      rules: IgnoreRules | null
    ): Effect.Effect<boolean> =>
      Effect.gen(function*() {
        const entries = yield* entriesOf(file)
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
          const called = entry.bytes === null && typeof file === "string"
            ? path
            : joinBytes(file, entry.bytes ?? entry.name)
          if (!(yield* options.visit({ path, file: called, segments: below, kind: kindOf(entry) }))) return false
          if (!entry.isDirectory() || below.length >= Math.min(options.depth, MAX_DEPTH)) continue
          if (!(yield* into(path, called, below, rules === null ? null : rulesBelow(rules, path)))) return false
        }
        return true
      })

    const complete = yield* into(options.directory, options.directory, [], start)
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

interface Entry extends Pick<Dirent, "isFile" | "isDirectory" | "isSymbolicLink"> {
  readonly name: string
  /** The name, where it is not UTF-8. */
  readonly bytes: Buffer | null
}

const replacement = "\ufffd"

const entriesOf = (directory: string | Buffer): Effect.Effect<ReadonlyArray<Entry> | null> =>
  Effect.promise(async () => {
    try {
      const entries = await readEntries(directory)
      return entries.sort((left, right) => left.name < right.name ? -1 : left.name > right.name ? 1 : 0)
    } catch {
      return null
    }
  })

const readEntries = async (directory: string | Buffer): Promise<Array<Entry>> => {
  const named = await FileSystem.readdir(directory, { withFileTypes: true })
  if (!named.some(({ name }) => name.includes(replacement))) {
    return named.map((entry) => Object.assign(entry, { bytes: null }))
  }
  const raw = await FileSystem.readdir(directory, { withFileTypes: true, encoding: "buffer" })
  return raw.map((entry) => {
    const name = entry.name.toString()
    return {
      name,
      bytes: Buffer.from(name).equals(entry.name) ? null : entry.name,
      isFile: () => entry.isFile(),
      isDirectory: () => entry.isDirectory(),
      isSymbolicLink: () => entry.isSymbolicLink()
    }
  })
}

const joinBytes = (directory: string | Buffer, name: string | Buffer): Buffer =>
  Buffer.concat([Buffer.from(directory), Buffer.from(NodePath.sep), Buffer.from(name)])

const kindOf = (entry: Entry): WalkEntry["kind"] =>
  entry.isFile() ? "file" : entry.isDirectory() ? "directory" : entry.isSymbolicLink() ? "link" : "other"

/** For whoever sees a path that cannot be named as it is shown. */
export const unnamableNotice = (text: string): string =>
  text.includes(replacement)
    ? `[A name with ${replacement} is not UTF-8; only bash can open it, by a pattern such as *.txt.]`
    : ""
