/**
 * Files of a location for clients: read and found inside it, and nowhere else.
 *
 * A path is resolved with all its symbolic links before it is opened, and what was opened is checked again, so that a link
 * that is exchanged in between leads nowhere. Sizes are bounded; what is no regular file is refused before it is read.
 */
import * as Effect from "effect/Effect"
import { constants } from "node:fs"
import * as fs from "node:fs/promises"
import { isAbsolute, join, relative, resolve, sep } from "node:path"
import { type ApiFailure, failure } from "./failure.ts"

/** Bytes of a file that are given. */
const mostBytes = 1_048_576

/** Entries that a search looks at. */
const mostLookedAt = 50_000

/** Folders that nobody means who looks for a file by name. */
const passedOver = new Set([".git", "node_modules", ".hg", ".svn"])

export interface FileContent {
  readonly path: string
  readonly size: number
  readonly encoding: "utf8" | "base64"
  readonly content: string
  readonly truncated: boolean
}

const isInside = (directory: string, path: string): boolean => {
  const way = relative(directory, path)
  return way === "" || (way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way))
}

const outside = (path: string) =>
  failure("forbidden", `${JSON.stringify(path.slice(0, 500))} is not inside the location.`)

const explain = (path: string, error: unknown): ApiFailure => {
  const name = JSON.stringify(path.slice(0, 500))
  const code = error instanceof Error && "code" in error ? error.code : null
  switch (code) {
    case "ENOENT":
    case "ENOTDIR":
      return failure("not_found", `There is no file ${name} in the location.`)
    case "EACCES":
    case "EPERM":
      return failure("forbidden", `The server may not read ${name}.`)
    case "ENAMETOOLONG":
    case "ERR_INVALID_ARG_VALUE":
      return failure("invalid_request", `${name} is no path of a file.`)
    default:
      return failure("unavailable", `${name} cannot be read (${String(code)}).`)
  }
}

/** As text if it is UTF-8; a character that the limit cut in two is left out. */
const decode = (bytes: Buffer, truncated: boolean): Pick<FileContent, "content" | "encoding"> => {
  if (!bytes.includes(0)) {
    try {
      const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })
      return { encoding: "utf8", content: decoder.decode(bytes, { stream: truncated }) }
    } catch {
      // It is no text.
    }
  }
  return { encoding: "base64", content: bytes.toString("base64") }
}

const readWhole = async (directory: string, path: string): Promise<FileContent | ApiFailure> => {
  const named = resolve(directory, path)
  if (!isInside(directory, named)) return outside(path)
  const real = await fs.realpath(named)
  if (!isInside(directory, real)) return outside(path)
  // Not to wait for the writer of a named pipe, and not to follow what stands there now in place of what was looked at.
  const file = await fs.open(real, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW)
  try {
    const { dev, ino } = await file.stat()
    const stat = await file.stat()
    const again = await fs.realpath(named)
    const now = await fs.stat(again)
    if (!isInside(directory, again) || now.dev !== dev || now.ino !== ino) return outside(path)
    if (!stat.isFile()) return failure("invalid_request", `${JSON.stringify(path.slice(0, 500))} is no file.`)
    const buffer = Buffer.alloc(Math.min(stat.size, mostBytes))
    let length = 0
    while (length < buffer.length) {
      const { bytesRead } = await file.read(buffer, length, buffer.length - length, length)
      if (bytesRead === 0) break
      length += bytesRead
    }
    const truncated = stat.size > mostBytes
    return {
      path: relative(directory, named),
      size: stat.size,
      truncated,
      ...decode(buffer.subarray(0, length), truncated)
    }
  } finally {
    await file.close()
  }
}

/** A file inside a directory, whose own path is resolved already. */
export const readInside = (directory: string, path: string): Effect.Effect<FileContent, ApiFailure> =>
  path.includes("\0")
    ? Effect.fail(failure("invalid_request", "A path holds no NUL."))
    : Effect.flatMap(
      Effect.tryPromise({ try: () => readWhole(directory, path), catch: (error) => explain(path, error) }),
      (found) => "content" in found ? Effect.succeed(found) : Effect.fail(found)
    )

/** Files below a directory whose path contains the text, in any case; links are not followed. */
export const findFiles = (directory: string, text: string, limit: number) =>
  Effect.promise(async (signal) => {
    const wanted = text.toLowerCase()
    const items: Array<{ readonly path: string }> = []
    const waiting = [""]
    let lookedAt = 0
    for (let folder = waiting.shift(); folder !== undefined; folder = waiting.shift()) {
      const entries = await fs.readdir(join(directory, folder), { withFileTypes: true }).catch(() => [])
      if (signal.aborted) break
      for (const entry of entries.toSorted((one, other) => one.name < other.name ? -1 : 1)) {
        const path = folder === "" ? entry.name : `${folder}/${entry.name}`
        if (++lookedAt > mostLookedAt) return { items, truncated: true }
        if (entry.isDirectory()) {
          if (!passedOver.has(entry.name)) waiting.push(path)
        } else if (entry.isFile() && path.toLowerCase().includes(wanted)) {
          if (items.length >= limit) return { items, truncated: true }
          items.push({ path })
        }
      }
    }
    return { items, truncated: false }
  })
