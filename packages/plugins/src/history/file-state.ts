/**
 * What is at a path: nothing, a file of certain bytes and mode, a symbolic link, or something whose content is not kept.
 *
 * Two states are the same if putting one in the place of the other would change nothing that a person cares about: content,
 * permission bits, the target of a link. Owner and times do not count. A link is never followed.
 */
import * as Schema from "effect/Schema"
import { createHash } from "node:crypto"
import * as fs from "node:fs"
import * as FileSystem from "node:fs/promises"
import * as NodePath from "node:path"
import { promisify } from "node:util"

export const FileState = Schema.Union([
  /** `below`: the nearest folder that was there. */
  Schema.Struct({ type: Schema.Literal("absent"), below: Schema.optionalKey(Schema.String) }),
  Schema.Struct({
    type: Schema.Literal("file"),
    /** Git's name for the content: the SHA-1 of the blob. */
    id: Schema.String,
    /** The permission bits. */
    mode: Schema.Int,
    /** Bytes. */
    size: Schema.Finite
  }),
  /** `id` names the target's text. */
  Schema.Struct({ type: Schema.Literal("link"), id: Schema.String }),
  Schema.Struct({
    type: Schema.Literal("unkept"),
    what: Schema.Literals(["large", "folder", "special", "lost"]),
    /** Equal as long as nobody writes it. */
    stamp: Schema.String,
    size: Schema.Finite
  })
])
export type FileState = typeof FileState.Type

export const absent = { type: "absent" } as const satisfies FileState

export const sameState = (left: FileState, right: FileState): boolean => {
  switch (left.type) {
    case "absent":
      return right.type === "absent"
    case "file":
      return right.type === "file" && left.id === right.id && left.mode === right.mode
    case "link":
      return right.type === "link" && left.id === right.id
    case "unkept":
      return right.type === "unkept" && left.what === right.what && left.stamp === right.stamp
  }
}

/** Git's name of a blob. */
export const blobID = (content: Uint8Array): string =>
  createHash("sha1").update(`blob ${content.byteLength}\0`).update(content).digest("hex")

/** A state with its content, where that is kept, and when it was last changed in any way (milliseconds since the epoch). */
export interface Observed {
  readonly state: FileState
  readonly content: Buffer | null
  /** For what is absent, when its folder changed. */
  readonly changedAt: number
  /** What the file system said of it; `null` for what is absent. */
  readonly stats: fs.Stats | null
}

const hasCode = (error: unknown, ...codes: ReadonlyArray<string>): boolean =>
  error instanceof Error && "code" in error && codes.some((code) => code === error.code)

/** The nearest ancestor that is a folder, and when it last changed. */
const nearestFolder = (path: string): { readonly folder: string; readonly changedAt: number } => {
  for (let folder = NodePath.dirname(path);; folder = NodePath.dirname(folder)) {
    try {
      const stats = fs.statSync(folder, { throwIfNoEntry: false })
      if (stats?.isDirectory() === true) return { folder, changedAt: stats.mtimeMs }
    } catch (error) {
      if (!hasCode(error, "ENOTDIR")) throw error
    }
    if (folder === NodePath.dirname(folder)) return { folder, changedAt: 0 }
  }
}

/** Up to this size, a file is read in one step, which takes less than asking a thread to. */
const smallBytes = 128 * 1024

/** Reads what is at a path; files above `maxBytes` are not read. Fails as the file system does. */
export const observe = async (path: string, maxBytes: number): Promise<Observed> => {
  const stats = lookAt(path)
  if (stats === null) {
    const { changedAt, folder } = nearestFolder(path)
    return { state: { type: "absent", below: folder }, content: null, changedAt, stats }
  }
  const changedAt = stats.ctimeMs
  const unkept = (what: "large" | "folder" | "special"): Observed => ({
    state: { type: "unkept", what, stamp: `${stats.ino}:${stats.size}:${stats.mtimeMs}`, size: stats.size },
    content: null,
    changedAt,
    stats
  })
  if (stats.isSymbolicLink()) {
    const content = await FileSystem.readlink(path, { encoding: "buffer" })
    return { state: { type: "link", id: blobID(content) }, content, changedAt, stats }
  }
  if (stats.isDirectory()) return unkept("folder")
  if (!stats.isFile()) return unkept("special")
  if (stats.size > maxBytes) return unkept("large")
  const read = await readOpened(path, stats.size <= smallBytes)
  if (read === null) return unkept("special")
  const { content } = read
  return {
    state: { type: "file", id: blobID(content), mode: read.stats.mode & 0o7777, size: content.length },
    content,
    changedAt: read.stats.ctimeMs,
    stats: read.stats
  }
}

/** `null` where there is nothing. */
export const lookAt = (path: string): fs.Stats | null => {
  try {
    return fs.lstatSync(path, { throwIfNoEntry: false }) ?? null
  } catch (error) {
    if (hasCode(error, "ENOTDIR")) return null
    throw error
  }
}

interface Read {
  readonly content: Buffer
  readonly stats: fs.Stats
}

/** Between the look and the opening it may have become a link, which fails, or a pipe, which is `null`. */
const readOpened = async (path: string, isSmall: boolean): Promise<Read | null> => {
  const file = fs.openSync(path, fs.constants.O_RDONLY | fs.constants.O_NOFOLLOW | fs.constants.O_NONBLOCK)
  try {
    const opened = fs.fstatSync(file)
    if (!opened.isFile()) return null
    const content = isSmall ? fs.readFileSync(file) : await readAll(file)
    return { content, stats: opened }
  } finally {
    fs.closeSync(file)
  }
}

const readAll = promisify<number, Buffer>((file, done) => fs.readFile(file, done))
