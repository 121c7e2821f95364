/**
 * The segment files of a JSONL session: reading a line by its place, appending a group whole or not at all.
 *
 * An append that fails half-way is taken back by cutting the file where it began. If even that fails, or the system cannot
 * say whether it was written out, nothing more is appended until the session is opened again: opening cuts what is not
 * confirmed. Synchronous; files are 0600.
 */
import * as fs from "node:fs"
import * as nodePath from "node:path"
import { StorageError } from "./storage.ts"

const segmentName = /^(\d{6,9})\.jsonl$/

export interface SegmentStat {
  readonly size: number
  /** Changes with the file: time of change, in nanoseconds, and inode. */
  readonly identity: string
  readonly modifiedAt: number
}

const isMissing = (error: unknown): boolean =>
  error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ENOTDIR")

/** How many files stay open for reading. */
const openFiles = 8

/** A folder with segment files, read-only. */
export class Segments {
  readonly folder: string
  readonly #open = new Map<number, number>()

  constructor(folder: string) {
    this.folder = folder
  }

  path(segment: number): string {
    return nodePath.join(this.folder, `${String(segment).padStart(6, "0")}.jsonl`)
  }

  /** Numbers of the segments that there are, in order. */
  list(): ReadonlyArray<number> {
    const numbers: Array<number> = []
    for (const name of fs.readdirSync(this.folder)) {
      const match = segmentName.exec(name)
      if (match !== null) numbers.push(Number(match[1]))
    }
    return numbers.sort((left, right) => left - right)
  }

  /** `null` when it is not there. */
  stat(segment: number): SegmentStat | null {
    try {
      const found = fs.statSync(this.path(segment), { bigint: true })
      return {
        size: Number(found.size),
        identity: `${found.mtimeNs}:${found.ino}`,
        modifiedAt: Number(found.mtimeMs)
      }
    } catch (error) {
      if (isMissing(error)) return null
      throw error
    }
  }

  #descriptor(segment: number): number {
    const known = this.#open.get(segment)
    if (known !== undefined) return known
    if (this.#open.size >= openFiles) this.forget()
    const descriptor = fs.openSync(this.path(segment), "r")
    this.#open.set(segment, descriptor)
    return descriptor
  }

  /** Bytes of a segment from `offset` on: `length` of them, or fewer where the file ends. */
  read(segment: number, offset: number, length: number): Buffer {
    const descriptor = this.#descriptor(segment)
    const bytes = Buffer.allocUnsafe(length)
    let filled = 0
    while (filled < length) {
      const count = fs.readSync(descriptor, bytes, filled, length - filled, offset + filled)
      if (count === 0) break
      filled += count
    }
    return filled === length ? bytes : bytes.subarray(0, filled)
  }

  /** Closes files; they are opened again when needed. */
  forget(): void {
    for (const descriptor of this.#open.values()) fs.closeSync(descriptor)
    this.#open.clear()
  }

  close(): void {
    this.forget()
  }
}

const noSpace = (path: string): StorageError =>
  new StorageError({
    kind: "disk_full",
    message: `${path}: no space left; make room on the disk, then try again`,
    path
  })

/** Makes the names in a folder durable. */
export const syncFolder = (folder: string): void => {
  const descriptor = fs.openSync(folder, "r")
  try {
    fs.fsyncSync(descriptor)
  } finally {
    fs.closeSync(descriptor)
  }
}

/** How often to look whether the file is still where it was. Milliseconds. */
const lookEvery = 250

/** The one segment that is appended to. */
export class Appender {
  readonly path: string
  readonly segment: number
  readonly #descriptor: number
  readonly #fsync: boolean
  readonly #maxBytes: number
  #size: number
  #broken: StorageError | null = null
  #lookedAt = performance.now()

  /** Opens a segment to append after `size`; what stands behind that is cut. */
  constructor(segments: Segments, segment: number, size: number, options: { fsync: boolean; maxBytes: number }) {
    this.segment = segment
    this.path = segments.path(segment)
    this.#fsync = options.fsync
    this.#maxBytes = options.maxBytes
    this.#size = size
    this.#descriptor = fs.openSync(this.path, "r+")
    try {
      if (fs.fstatSync(this.#descriptor).size !== size) {
        fs.ftruncateSync(this.#descriptor, size)
        if (this.#fsync) fs.fsyncSync(this.#descriptor)
      }
    } catch (error) {
      fs.closeSync(this.#descriptor)
      throw error
    }
  }

  /** Makes the file of a segment, with its first line; nothing is left of it when that fails. */
  static create(segments: Segments, segment: number, header: string, options: { fsync: boolean }): void {
    const path = segments.path(segment)
    const temporary = `${path}.new`
    fs.rmSync(temporary, { force: true })
    try {
      fs.writeFileSync(temporary, header, { mode: 0o600, flag: "wx", flush: options.fsync })
      fs.renameSync(temporary, path)
      if (options.fsync) syncFolder(segments.folder)
    } catch (error) {
      fs.rmSync(temporary, { force: true })
      throw error
    }
  }

  get size(): number {
    return this.#size
  }

  #write(bytes: Buffer): void {
    let done = 0
    while (done < bytes.length) {
      const room = this.#maxBytes - this.#size - done
      const count = room <= 0
        ? 0
        : fs.writeSync(this.#descriptor, bytes, done, Math.min(bytes.length - done, room), this.#size + done)
      if (count === 0) throw noSpace(this.path)
      done += count
    }
  }

  #look(): void {
    const now = performance.now()
    if (now - this.#lookedAt < lookEvery) return
    this.#lookedAt = now
    const { nlink, size } = fs.fstatSync(this.#descriptor)
    if (nlink > 0 && size === this.#size) return
    this.#broken = nlink === 0
      ? new StorageError({
        kind: "not_found",
        message: `${this.path}: the file was removed while the session was open; nothing more is stored in it`,
        path: this.path
      })
      : new StorageError({
        kind: "io",
        message:
          `${this.path}: another program changed this file; nothing more is stored until the session is opened again`,
        path: this.path
      })
  }

  /** Appends all of it or nothing. */
  append(bytes: Buffer): void {
    this.#look()
    if (this.#broken !== null) throw this.#broken
    try {
      this.#write(bytes)
    } catch (error) {
      this.#takeBack()
      throw error
    }
    try {
      if (this.#fsync) fs.fdatasyncSync(this.#descriptor)
    } catch (error) {
      this.#takeBack()
      // After a failed flush the system may have dropped what it could not write: only a fresh look can tell.
      this.#broken = this.#unknown(error)
      throw error
    }
    this.#size += bytes.length
  }

  #unknown(error: unknown): StorageError {
    return new StorageError({
      kind: "io",
      message: `${this.path}: an append failed and could not be taken back (${
        error instanceof Error ? error.message : String(error)
      }); open the session again`,
      path: this.path
    })
  }

  #takeBack(): void {
    try {
      fs.ftruncateSync(this.#descriptor, this.#size)
    } catch (error) {
      this.#broken = this.#unknown(error)
    }
  }

  close(): void {
    fs.closeSync(this.#descriptor)
  }
}
