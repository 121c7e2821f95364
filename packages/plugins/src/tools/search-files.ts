/**
 * Search: walks the tree (see `walk`), reads each text file and matches its lines. Bounded in matches, in the size of a file
 * and in time; files that are no text are passed over. Whoever can say quickly which files may have a match is asked first,
 * many files at a time.
 */
import { looksBinary, textOf, ToolFailure } from "@bezel/core/tool"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { constants, statSync } from "node:fs"
import * as FileSystem from "node:fs/promises"
import { makeMatcher } from "./matcher.ts"
import type { RequiredText } from "./required-text.ts"
import type { Candidates } from "./search-ripgrep.ts"
import { walk } from "./walk.ts"
import type { LeftOut } from "./walk.ts"

export interface SearchRequest {
  readonly pattern: string
  /** Real path of a directory or of one file. */
  readonly path: string
  readonly isFile: boolean
  readonly workspace: string
  readonly glob: ((path: ReadonlyArray<string>) => boolean) | null
  readonly limit: number
}

export interface Found {
  readonly path: string
  readonly line: number
  readonly text: string
}

export interface SearchOutcome {
  /** By path, then by line; at most `limit`. */
  readonly found: ReadonlyArray<Found>
  readonly more: boolean
  readonly leftOut: LeftOut
  /** Files that were too large to search. */
  readonly tooLarge: ReadonlyArray<string>
  /** Set if time ran out before all was searched. */
  readonly incomplete: boolean
}

const nothingLeftOut: LeftOut = { count: 0, complete: true, examples: [], unreadable: [] }

const MAX_FILE_BYTES = 16 * 1024 * 1024
/** After so long a search gives what it has found. */
const MAX_SECONDS = 30
/** Files that are asked about at once, and UTF-16 units of their names: a command line has bounds. */
const ASKED_FILES = 2_000
const ASKED_UNITS = 64 * 1024

/** `required` is what the pattern's matches contain; without `candidates` every file is read to find out. */
export const searchFiles = (
  request: SearchRequest,
  required: RequiredText | null,
  candidates: Candidates | null
): Effect.Effect<SearchOutcome, ToolFailure> =>
  Effect.gen(function*() {
    const matcher = makeMatcher(request.pattern)
    if (Result.isFailure(matcher)) return yield* new ToolFailure({ message: matcher.failure })
    const mayMatch = containsAny(required)
    const found: Array<Found> = []
    const tooLarge: Array<string> = []
    const until = performance.now() + MAX_SECONDS * 1_000
    let incomplete = false
    let slow: string | null = null

    const look = (path: string, file: string | Buffer) =>
      Effect.gen(function*() {
        const bytes = yield* contentOf(file)
        if (bytes === "too large") tooLarge.push(path)
        if (typeof bytes === "string" || looksBinary(bytes)) return true
        // One more than is shown tells whether there are more.
        const text = textOf(bytes)
        const lines = mayMatch(text) ? matcher.success.match(text, request.limit + 1 - found.length) : []
        if (lines === null) {
          slow = path
          return false
        }
        for (const { line, text } of lines) found.push({ path, line, text })
        incomplete = performance.now() > until
        return found.length <= request.limit && !incomplete
      })

    /** Files in order that wait to be asked about. */
    let waiting: Array<{ readonly path: string; readonly file: string | Buffer }> = []
    let units = 0
    const lookAtWaiting = Effect.gen(function*() {
      const files = waiting
      waiting = []
      units = 0
      // Too large ones are told; a name that is not UTF-8 cannot be asked about.
      const asked = candidates === null
        ? []
        : files.flatMap(({ file }) => typeof file === "string" && sizeOf(file) <= MAX_FILE_BYTES ? [file] : [])
      const may = candidates === null ? new Set<string>() : yield* candidates(asked)
      const not = new Set(asked.filter((file) => !may.has(file)))
      for (const { file, path } of files) {
        if (typeof file === "string" && not.has(file)) continue
        if (!(yield* look(path, file))) return false
      }
      incomplete ||= performance.now() > until
      return !incomplete
    })
    const visit = ({ file, path }: (typeof waiting)[number]) => {
      waiting.push({ path, file })
      units += path.length
      return waiting.length >= ASKED_FILES || units >= ASKED_UNITS ? lookAtWaiting : Effect.succeed(true)
    }

    const { glob } = request
    const leftOut = request.isFile
      ? yield* Effect.as(look(request.path, request.path), nothingLeftOut)
      : yield* walk({
        directory: request.path,
        workspace: request.workspace,
        depth: Number.POSITIVE_INFINITY,
        visit: (entry) =>
          entry.kind === "file" && (glob === null || glob(entry.segments)) ? visit(entry) : Effect.succeed(true)
      })
    if (leftOut.complete) yield* lookAtWaiting
    if (slow !== null) {
      return yield* new ToolFailure({
        message:
          `The pattern takes too long on ${slow}, most likely because of nested repetitions such as (a+)+. Write it more simply.`
      })
    }
    return { found: found.slice(0, request.limit), more: found.length > request.limit, leftOut, tooLarge, incomplete }
  })

/** Whether a text contains what matches contain. It takes linear time, which an expression may not. */
const containsAny = (required: RequiredText | null): (text: string) => boolean => {
  if (required === null) return () => true
  const { ignoreCase, texts } = required
  if (!ignoreCase) return (text) => texts.some((one) => text.includes(one))
  const expression = new RegExp(texts.map((one) => one.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&")).join("|"), "iu")
  return (text) => expression.test(text)
}

const sizeOf = (file: string): number => statSync(file, { throwIfNoEntry: false })?.size ?? 0

/** Never waits for a pipe and never follows a file that grows. */
const contentOf = (path: string | Buffer): Effect.Effect<Buffer | "unreadable" | "too large"> =>
  Effect.promise(async () => {
    try {
      const handle = await FileSystem.open(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY)
      try {
        const stats = await handle.stat()
        if (!stats.isFile()) return "unreadable"
        if (stats.size > MAX_FILE_BYTES) return "too large"
        const buffer = Buffer.allocUnsafe(stats.size)
        let length = 0
        while (length < buffer.length) {
          const { bytesRead } = await handle.read(buffer, length, buffer.length - length, length)
          if (bytesRead === 0) break
          length += bytesRead
        }
        return buffer.subarray(0, length)
      } finally {
        await handle.close()
      }
    } catch {
      return "unreadable"
    }
  })
