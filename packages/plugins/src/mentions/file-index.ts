/**
 * The files of a location by name, for completion: walked once in the background, by the rule of the tools (what git ignores
 * is left out), and again when it is older than some seconds and somebody asks. Who asks waits for a moment only, and is
 * answered from what is there by then.
 */
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Snapshot } from "fuzzysort"
import { walk } from "../tools/walk.ts"

const maxFiles = 100_000
const freshMillis = 10_000
const waitMillis = 300

export interface FileIndex {
  /** Paths that fit, best first. Folders end in a slash. */
  readonly find: (word: string, limit: number) => Effect.Effect<ReadonlyArray<string>>
}

/** Entries directly in the folder that is named so far, folders first; for a word that says nothing else yet. */
const entriesIn = (paths: ReadonlyArray<string>, folder: string, limit: number): ReadonlyArray<string> => {
  const direct = paths.filter((path) =>
    path.startsWith(folder) && path.length > folder.length && !path.slice(folder.length, -1).includes("/")
  )
  const folders = direct.filter((path) => path.endsWith("/"))
  return [...folders, ...direct.filter((path) => !path.endsWith("/"))].slice(0, limit)
}

export const makeFileIndex = (directory: string): Effect.Effect<FileIndex, never, Scope.Scope> =>
  Effect.gen(function*() {
    const scope = yield* Effect.scope
    const fuzzy = yield* Effect.cached(Effect.promise(() => import("fuzzysort")))
    let paths: ReadonlyArray<string> = []
    let snapshot: Snapshot | null = null
    let scannedAt: number | null = null
    let scanning: Deferred.Deferred<void> | null = null

    const rescan = Effect.gen(function*() {
      const found: Array<string> = []
      // The first time, what is found so far is better than nothing.
      if (scannedAt === null) paths = found
      yield* walk({
        directory,
        workspace: directory,
        depth: Number.POSITIVE_INFINITY,
        visit: ({ kind, segments }) =>
          Effect.sync(() => {
            found.push(segments.join("/") + (kind === "directory" ? "/" : ""))
            return found.length < maxFiles
          })
      })
      paths = found
      snapshot = null
      scannedAt = yield* Clock.currentTimeMillis
    })

    const refresh = Effect.gen(function*() {
      const now = yield* Clock.currentTimeMillis
      if (scannedAt !== null && now - scannedAt < freshMillis) return
      const running = scanning ?? Deferred.makeUnsafe<void>()
      if (scanning === null) {
        scanning = running
        const done = Effect.suspend(() => {
          scanning = null
          return Deferred.succeed(running, undefined)
        })
        yield* Effect.forkIn(Effect.ensuring(rescan, done), scope)
      }
      if (scannedAt === null) yield* Effect.timeoutOption(Deferred.await(running), waitMillis)
    })

    return {
      find: Effect.fn("mentions.find")(function*(word, limit) {
        yield* refresh
        const wanted = word.replace(/^\.\//, "")
        if (wanted === "" || wanted.endsWith("/")) return entriesIn(paths, wanted, limit)
        const { go, snapshot: take } = yield* fuzzy
        if (scanning === null) snapshot ??= take(paths)
        return go(wanted, snapshot ?? paths, { limit }).map(({ target }) => target)
      })
    }
  })
