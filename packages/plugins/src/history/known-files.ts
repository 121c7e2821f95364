/**
 * How each file of a folder was when it was looked at last, and the stamp by which one that nobody has touched is known
 * without being read again.
 *
 * A stamp says nothing of a file that was changed within the last tick of the file system's clock, for it may change once
 * more without another time; nor of one whose last change lies in the future, for then the clock was set back. Such a file
 * has no stamp and is read at the next look. The time that counts is that of the last change of any kind (`ctime`), which no
 * program can set.
 */
import * as Schema from "effect/Schema"
import type * as fs from "node:fs"
import * as NodePath from "node:path"
import type { FileState } from "./file-state.ts"
import type { IndexEntry } from "./git-index.ts"

export const Stamp = Schema.Struct({
  ino: Schema.Finite,
  size: Schema.Finite,
  mtimeMs: Schema.Finite,
  ctimeMs: Schema.Finite,
  /** `null` in one of git's index, which has only part of it. */
  mode: Schema.NullOr(Schema.Finite)
})
export type Stamp = typeof Stamp.Type

export interface KnownFile {
  readonly state: FileState
  /** `null` where only reading tells. */
  readonly stamp: Stamp | null
}

const tickMillis = 20
/** Of file systems that keep whole seconds, or every second one. */
const coarseTickMillis = 2_100

/** The stamp of a file that has just been observed, at a time of the wall clock. */
export const stampOf = (stats: fs.Stats, now: number): Stamp | null => {
  const tick = stats.ctimeMs % 1_000 === 0 ? coarseTickMillis : tickMillis
  if (now - stats.ctimeMs <= tick) return null
  return { ino: stats.ino, size: stats.size, mtimeMs: stats.mtimeMs, ctimeMs: stats.ctimeMs, mode: stats.mode }
}

const low32 = (value: number): number => value % 0x1_0000_0000

export const hasStamp = ({ stamp, state }: KnownFile, stats: fs.Stats): boolean => {
  if (stamp === null || stamp.mtimeMs !== stats.mtimeMs || stamp.ctimeMs !== stats.ctimeMs) return false
  if (stamp.mode !== null) return stamp.mode === stats.mode && stamp.ino === stats.ino && stamp.size === stats.size
  return stamp.ino === low32(stats.ino) && stamp.size === low32(stats.size) &&
    (state.type === "link" ? stats.isSymbolicLink() : stats.isFile())
}

/** What git's index says of a file, unless it was changed when or after the index was written. */
export const knownOfIndex = (entry: IndexEntry, indexMtimeMs: number): KnownFile => {
  const { ctimeMs, id, ino, mtimeMs, size, type } = entry
  const isDoubtful = Math.max(mtimeMs, ctimeMs) >= indexMtimeMs ||
    (ctimeMs % 1_000 === 0 && Math.max(mtimeMs, ctimeMs) >= indexMtimeMs - coarseTickMillis)
  return {
    state: type === "link" ? { type, id } : { type, id, mode: 0o644, size },
    stamp: isDoubtful ? null : { ino, size, mtimeMs, ctimeMs, mode: null }
  }
}

/** An absolute path without `.` and `..`, as its folder and its name; quicker than taking apart any path. */
const partsOf = (path: string): readonly [folder: string, name: string] => {
  const slash = path.lastIndexOf(NodePath.sep)
  return [slash === 0 ? NodePath.sep : path.slice(0, slash), path.slice(slash + 1)]
}

/** By absolute path. */
export class KnownFiles {
  /** Files by name, by folder. */
  readonly folders = new Map<string, Map<string, KnownFile>>()
  readonly #above = new Set<string>()

  get(path: string): KnownFile | undefined {
    const [folder, name] = partsOf(path)
    return this.folders.get(folder)?.get(name)
  }

  set(path: string, file: KnownFile): void {
    const [folder, name] = partsOf(path)
    const files = this.folders.get(folder)
    if (files !== undefined) {
      files.set(name, file)
      return
    }
    this.folders.set(folder, new Map([[name, file]]))
    for (let at = folder; !this.#above.has(at); at = NodePath.dirname(at)) this.#above.add(at)
  }

  delete(path: string): void {
    const [folder, name] = partsOf(path)
    const files = this.folders.get(folder)
    files?.delete(name)
    if (files?.size === 0) this.folders.delete(folder)
  }

  /** Whether a folder has, or once had, a known file somewhere below. */
  hasBelow(folder: string): boolean {
    return this.#above.has(folder)
  }

  clear(): void {
    this.folders.clear()
    this.#above.clear()
  }

  *[Symbol.iterator](): Iterator<readonly [string, KnownFile]> {
    for (const [folder, files] of this.folders) {
      for (const [name, file] of files) yield [NodePath.join(folder, name), file]
    }
  }
}
