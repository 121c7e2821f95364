/**
 * Search without ripgrep: walks the tree (see `walk`), reads each text file and matches its lines. Bounded in matches,
 * in the size of a file and in time; files that are no text are passed over.
 */
import { looksBinary, textOf, ToolFailure } from "@bezel/core/tool"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { constants } from "node:fs"
import * as FileSystem from "node:fs/promises"
import { makeMatcher } from "./matcher.ts"
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

export const nothingLeftOut: LeftOut = { count: 0, complete: true, examples: [], unreadable: [] }

const MAX_FILE_BYTES = 16 * 1024 * 1024
/** After so long a search gives what it has found. */
export const MAX_SECONDS = 30

export const searchFiles = (request: SearchRequest): Effect.Effect<SearchOutcome, ToolFailure> =>
  Effect.gen(function*() {
    const matcher = makeMatcher(request.pattern)
    if (Result.isFailure(matcher)) return yield* new ToolFailure({ message: matcher.failure })
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
        const lines = matcher.success.match(textOf(bytes), request.limit + 1 - found.length)
        if (lines === null) {
          slow = path
          return false
        }
        for (const { line, text } of lines) found.push({ path, line, text })
        incomplete = performance.now() > until
        return found.length <= request.limit && !incomplete
      })

    const { glob } = request
    const leftOut = request.isFile
      ? yield* Effect.as(look(request.path, request.path), nothingLeftOut)
      : yield* walk({
        directory: request.path,
        workspace: request.workspace,
        depth: Number.POSITIVE_INFINITY,
        visit: (entry) =>
          entry.kind === "file" && (glob === null || glob(entry.segments))
            ? look(entry.path, entry.file)
            : Effect.succeed(true)
      })
    if (slow !== null) {
      return yield* new ToolFailure({
        message:
          `The pattern takes too long on ${slow}, most likely because of nested repetitions such as (a+)+. Write it more simply.`
      })
    }
    return { found: found.slice(0, request.limit), more: found.length > request.limit, leftOut, tooLarge, incomplete }
  })

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
