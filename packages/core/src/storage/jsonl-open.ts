/**
 * Opens the files of a JSONL session: with their index where it fits, by reading every line where it does not. Synchronous.
 */
import * as fs from "node:fs"
import * as nodePath from "node:path"
import { privateFolder } from "../location/index.ts"
import { storageError } from "./database.ts"
import { header } from "./jsonl-format.ts"
import type { Damage } from "./jsonl-format.ts"
import { JsonlIndex } from "./jsonl-index.ts"
import type { Checkpoint } from "./jsonl-index.ts"
import { Appender, syncFolder } from "./jsonl-segments.ts"
import { JsonlSession } from "./jsonl-session.ts"
import { JsonlWriter } from "./jsonl-writer.ts"
import type { WriterOptions } from "./jsonl-writer.ts"
import { migrateJsonl, settleFolder } from "./migrate-jsonl.ts"
import type { JsonlFormat } from "./migrate-jsonl.ts"
import { migrationMessage } from "./migrate.ts"
import { StorageError } from "./storage.ts"

export const indexPath = (folder: string): string => nodePath.join(folder, "index.db")

const newIndexPath = (folder: string): string => nodePath.join(folder, "index.new.db")

/** A database, and what SQLite keeps beside it. */
const suffixes = ["", "-wal", "-shm"]

/** The index as it is, or `null` when there is none that can be read. */
export const openIndex = (folder: string, readOnly: boolean): JsonlIndex | null => {
  if (!fs.existsSync(indexPath(folder))) return null
  try {
    return new JsonlIndex(indexPath(folder), { readOnly })
  } catch (error) {
    // Without room or rights nothing else will do better; anything else is a file to make again.
    const { kind } = storageError(error, indexPath(folder))
    if (!readOnly && (kind === "permission" || kind === "read_only" || kind === "disk_full")) throw error
    return null
  }
}

/** Whether an index can be gone on from; one whose own file is damaged cannot. */
export const usable = (session: JsonlSession): boolean => {
  try {
    return session.indexFits()
  } catch (error) {
    if (storageError(error, session.folder).kind === "permission") throw error
    return false
  }
}

export const checkpointOf = (index: JsonlIndex): Checkpoint | null => {
  try {
    return index.checkpoint()
  } catch {
    return null
  }
}

interface Opened {
  readonly session: JsonlSession
  /** What an index that had to be given up knew. */
  readonly lost: Checkpoint | null
  /** The index is one that is being made, beside the one that does not fit. */
  readonly isNew: boolean
}

const newIndex = (folder: string): JsonlIndex => {
  for (const suffix of suffixes) fs.rmSync(`${newIndexPath(folder)}${suffix}`, { force: true })
  return new JsonlIndex(newIndexPath(folder))
}

/** Puts an index that was made in the place of the one before, of which nothing is needed any more. */
const adopt = (session: JsonlSession): void => {
  session.index.close()
  for (const suffix of suffixes) fs.rmSync(`${indexPath(session.folder)}${suffix}`, { force: true })
  fs.renameSync(newIndexPath(session.folder), indexPath(session.folder))
  session.index = new JsonlIndex(indexPath(session.folder))
}

/** The session with its index, or with an empty one to fill. */
const openSession = (folder: string, version: number): Opened => {
  const index = openIndex(folder, false)
  let lost: Checkpoint | null = null
  if (index !== null) {
    const session = new JsonlSession(folder, index, version)
    if (usable(session)) {
      session.resume()
      return { session, lost, isNew: false }
    }
    lost = checkpointOf(index)
    session.close()
  }
  return { session: new JsonlSession(folder, newIndex(folder), version), lost, isNew: true }
}

/**
 * Reads all that is whole; gives what is damaged. An end that was never confirmed is none; one that was is, whether its
 * confirmation is still there to see or an index remembers it.
 */
export const readWhole = (session: JsonlSession, known: Checkpoint | null): ReadonlyArray<Damage> => {
  const { position, segments } = session
  const { damage, last } = session.advance(() => session.checkpoint())
  if (last === null || !last.tail) return damage
  const remembered = known !== null && known.sequence > position.sequence && known.segment === position.segment &&
    (segments.stat(position.segment)?.size ?? 0) >= known.offset
  if (!last.confirmedTail && !remembered) return damage
  const first = position.sequence + 1
  const end: Damage = {
    segment: position.segment,
    line: last.line,
    lastLine: last.lastLine,
    first,
    last: Math.max(first, remembered ? known.sequence : 0)
  }
  session.noteGaps([end])
  return [...damage, end]
}

const recover = ({ isNew, lost, session }: Opened, warn: (message: string) => void): void => {
  const error = session.damaged(readWhole(session, lost))
  if (error !== null) throw error
  const { position } = session
  if (lost !== null && lost.sequence > position.sequence) {
    warn(
      `${session.folder}: the files end at commit ${position.sequence}, and commit ${lost.sequence} was stored once; what came between is gone`
    )
    // What is gone took its ids with it.
    position.nextID = Math.max(position.nextID, lost.nextID)
  }
  if (isNew) {
    session.checkpoint()
    adopt(session)
  }
}

/** Whether a fault is one of the index's own file, which can be made again. */
export const isIndexDamage = (error: unknown): boolean =>
  !(error instanceof StorageError) && storageError(error, "").kind === "corrupt"

/** Makes the index again from every line, for a session that is open. */
export const reindex = (session: JsonlSession): void => {
  session.index.close()
  session.restart(newIndex(session.folder))
  const error = session.damaged(readWhole(session, null))
  if (error !== null) throw error
  session.checkpoint()
  adopt(session)
}

/** Whether every line is what was stored: then it is the index that led to bytes that are not. */
export const isWhole = (folder: string, version: number): boolean => {
  const session = new JsonlSession(folder, new JsonlIndex(":memory:"), version)
  try {
    return readWhole(session, null).length === 0
  } finally {
    session.close()
  }
}

const openWhole = (folder: string, version: number, warn: (message: string) => void): JsonlSession => {
  const opened = openSession(folder, version)
  const { session } = opened
  try {
    try {
      recover(opened, warn)
    } catch (error) {
      if (!isIndexDamage(error)) throw error
      reindex(session)
    }
    return session
  } catch (error) {
    // An index that does not fit stays: it may be all that knows of a commit whose end is damaged.
    session.close()
    throw error
  }
}

export const prepareWriter = (
  folder: string,
  options: WriterOptions,
  format: JsonlFormat,
  warn: (message: string) => void
): JsonlWriter => {
  settleFolder(folder)
  privateFolder(folder)
  const report = migrateJsonl(folder, format)
  if (report !== null) warn(migrationMessage(report))
  const session = openWhole(folder, format.version, warn)
  try {
    const { position, segments } = session
    // A file that was made and never got its first line.
    for (const segment of segments.list()) if (segment > position.segment) fs.rmSync(segments.path(segment))
    if (position.segment === 0) {
      Appender.create(segments, 1, header(1, 0, session.version), options)
      if (options.fsync) syncFolder(nodePath.dirname(folder))
      session.advance()
    }
    const writer = new JsonlWriter(session, options, warn)
    if (session.tail.count > 0 || session.touched.size > 0) writer.checkpoint()
    return writer
  } catch (error) {
    session.close()
    throw error
  }
}
