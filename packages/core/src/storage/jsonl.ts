/**
 * A session as JSON lines: a folder with segment files that people can read and search with any tool, and an index.
 *
 * What is promised: a commit is there whole or not at all; an unconfirmed end, as a crash leaves, counts as nothing and is
 * cut before the next append; anything else that is not as it was written is `corrupt` with its file and line. A damaged
 * session can be read where it is whole; it cannot be written before it was repaired (`repair.ts`), since every further
 * commit would build on a guess. Opening reads the index and at most one segment, whatever the length of the history; the
 * whole history is read when the index is absent or does not fit, and segments whose time of change is not the one
 * noted, as in a copy, are compared once.
 *
 * How the files are written is said in `jsonl-format.ts`. Whoever opens for writing must hold the session's lease
 * (`lease.ts`); this file does not check that.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as fs from "node:fs"
import * as nodePath from "node:path"
import { attempt, privateFolder, storageError } from "./database.ts"
import { damageMessage, header } from "./jsonl-format.ts"
import type { Damage } from "./jsonl-format.ts"
import { JsonlIndex } from "./jsonl-index.ts"
import type { Checkpoint } from "./jsonl-index.ts"
import { Appender } from "./jsonl-segments.ts"
import { JsonlSession } from "./jsonl-session.ts"
import { JsonlWriter } from "./jsonl-writer.ts"
import type { WriterOptions } from "./jsonl-writer.ts"
import { notFound } from "./records.ts"
import { StorageError } from "./storage.ts"
import type { Storage, StorageReader } from "./storage.ts"

export interface JsonlOptions {
  /** Every commit is on the disk before it is acknowledged. Default false: it survives the process, not the machine. */
  readonly fsync?: boolean
  /** A segment that has grown to this size is followed by a new one. Default 2 MiB. */
  readonly segmentBytes?: number
  /** Upper bound of one file in bytes; a commit that would pass it fails as on a full disk. */
  readonly maxBytes?: number
}

/** A reader that also tells what is missing. */
export interface JsonlReader extends StorageReader {
  /** What is damaged, as far as reading has come across it, in words; empty when nothing is. */
  readonly damage: Effect.Effect<ReadonlyArray<string>, StorageError>
}

const writerOptions = (options: JsonlOptions): WriterOptions => ({
  fsync: options.fsync === true,
  segmentBytes: options.segmentBytes ?? 2_097_152,
  maxBytes: options.maxBytes ?? Number.MAX_SAFE_INTEGER,
  checkpointEvery: 2_000
})

const indexPath = (folder: string): string => nodePath.join(folder, "index.db")

const removeIndex = (folder: string): void => {
  for (const suffix of ["", "-wal", "-shm"]) fs.rmSync(`${indexPath(folder)}${suffix}`, { force: true })
}

/** The index as it is, or `null` when there is none that can be read. */
const openIndex = (folder: string, readOnly: boolean): JsonlIndex | null => {
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
const usable = (session: JsonlSession): boolean => {
  try {
    return session.indexFits()
  } catch (error) {
    if (storageError(error, session.folder).kind === "permission") throw error
    return false
  }
}

const checkpointOf = (index: JsonlIndex): Checkpoint | null => {
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
}

/** The session with its index, or with an empty one to fill. */
const openSession = (folder: string): Opened => {
  const index = openIndex(folder, false)
  if (index !== null) {
    const session = new JsonlSession(folder, index)
    if (usable(session)) {
      session.resume()
      return { session, lost: null }
    }
    const lost = checkpointOf(index)
    session.close()
    removeIndex(folder)
    return { session: new JsonlSession(folder, new JsonlIndex(indexPath(folder))), lost }
  }
  removeIndex(folder)
  return { session: new JsonlSession(folder, new JsonlIndex(indexPath(folder))), lost: null }
}

/** Reads all that is whole; fails when that is not all that was acknowledged. */
const recover = ({ lost, session }: Opened, warn: (message: string) => void): void => {
  const { position, segments } = session
  const { damage, last } = session.advance(() => session.checkpoint())
  const found: Array<Damage> = [...damage]
  if (last !== null && last.tail) {
    const known = lost !== null && lost.sequence > position.sequence && lost.segment === position.segment &&
      (segments.stat(position.segment)?.size ?? 0) >= lost.offset
    if (last.confirmedTail || known) {
      const first = position.sequence + 1
      found.push({
        segment: position.segment,
        line: last.line,
        lastLine: last.lastLine,
        first,
        last: Math.max(first, lost?.sequence ?? 0)
      })
    }
  }
  const error = session.damaged(found)
  if (error !== null) throw error
  if (lost !== null && lost.sequence > position.sequence) {
    warn(
      `${session.folder}: the files end at commit ${position.sequence}, and commit ${lost.sequence} was stored once; what came between is gone`
    )
    // What is gone took its ids with it.
    position.nextID = Math.max(position.nextID, lost.nextID)
  }
}

const prepareWriter = (folder: string, options: WriterOptions, warn: (message: string) => void): JsonlWriter => {
  privateFolder(folder)
  const opened = openSession(folder)
  const { session } = opened
  try {
    recover(opened, warn)
    const { position, segments } = session
    for (const segment of segments.list()) {
      if (segment > position.segment) fs.rmSync(segments.path(segment))
    }
    if (position.segment === 0) {
      const first = header(1, 0, session.version)
      Appender.create(segments, 1, first, options)
      session.advance()
    }
    const writer = new JsonlWriter(session, options, warn)
    if (session.tail.count > 0 || session.touched.size > 0) writer.checkpoint()
    return writer
  } catch (error) {
    const { kind } = storageError(error, folder)
    session.close()
    // An index with a gap in it would pass for whole at the next opening.
    if (kind === "corrupt") removeIndex(folder)
    throw error
  }
}

const reads = (
  read: <A>(evaluate: (session: JsonlSession) => A) => Effect.Effect<A, StorageError>
): StorageReader => ({
  sequence: read((session) => session.position.sequence),
  nextID: read((session) => session.position.nextID),
  conversation: (id) => read((session) => session.conversation(id)),
  conversations: read((session) => session.conversations()),
  entry: (id) => read((session) => session.entry(id)),
  entries: (scan) => read((session) => session.entries(scan)),
  task: (id) => read((session) => session.task(id)),
  liveTasks: read((session) => session.liveTasks()),
  input: (id) => read((session) => session.input(id)),
  inputByRequest: (requestID) => read((session) => session.inputByRequest(requestID)),
  liveInputs: read((session) => session.liveInputs()),
  document: (document) => read((session) => session.document(document)),
  documentAt: (document, sequence) => read((session) => session.documentAt(document, sequence)),
  sequenceOf: (entry) => read((session) => session.entryRow(entry)?.sequence ?? null),
  history: (after, limit) => read((session) => session.history(after, limit))
})

const warnings = (messages: ReadonlyArray<string>): Effect.Effect<void> =>
  Effect.forEach(messages, (message) => Effect.logWarning(message), { discard: true })

/** Opens a session's folder for writing, and creates it if it is not there; closed with the scope. */
export const openJsonl = (
  folder: string,
  options: JsonlOptions = {}
): Effect.Effect<Storage, StorageError, Scope.Scope> =>
  Effect.gen(function*() {
    const messages: Array<string> = []
    const told = Effect.suspend(() => warnings(messages.splice(0)))
    const warn = (message: string): void => void messages.push(message)
    const writer = yield* Effect.acquireRelease(
      attempt(folder, () => prepareWriter(folder, writerOptions(options), warn)),
      (writer) =>
        Effect.andThen(
          Effect.suspend(() => {
            try {
              writer.close()
              return Effect.void
            } catch (error) {
              return Effect.logWarning(storageError(error, folder).message)
            }
          }),
          told
        )
    )
    yield* told
    /** Damage that a read comes across stops the writing too. */
    let damaged: StorageError | null = null
    const storage = reads((evaluate) =>
      attempt(folder, () => {
        try {
          return evaluate(writer.session)
        } catch (error) {
          if (error instanceof StorageError && error.kind === "corrupt") damaged = error
          throw error
        }
      })
    )
    return {
      ...storage,
      commit: (batch) =>
        attempt(folder, () => {
          if (damaged !== null) throw damaged
          const sequence = writer.commit(batch)
          return sequence
        })
    }
  })

/** Commits that a reader keeps in memory before it looks whether the writer's index has come nearer. */
const readerTail = 5_000

class ReaderState {
  readonly folder: string
  session: JsonlSession
  damage: Array<string> = []
  /** Reads by an index of its own, made from every line. */
  #own = false
  readonly #warn: (message: string) => void

  constructor(folder: string, warn: (message: string) => void) {
    this.folder = folder
    this.#warn = warn
    const index = openIndex(folder, true)
    if (index !== null) {
      this.session = new JsonlSession(folder, index)
      try {
        const fits = index.snapshot(() => {
          if (!usable(this.session)) return false
          this.session.resume()
          return true
        })
        if (fits) {
          this.#advance()
          return
        }
      } catch (error) {
        this.session.close()
        throw error
      }
      this.session.close()
    }
    this.session = this.#readAll()
  }

  #readAll(): JsonlSession {
    this.#own = true
    const session = new JsonlSession(this.folder, new JsonlIndex(":memory:"))
    try {
      this.#note(session, session.advance(() => session.checkpoint()).damage)
      return session
    } catch (error) {
      session.close()
      throw error
    }
  }

  #note(session: JsonlSession, damage: ReadonlyArray<Damage>): void {
    for (const item of damage) {
      const message = damageMessage(session.segments.path(item.segment), item)
      this.damage.push(message)
      this.#warn(message)
    }
  }

  #advance(): void {
    const { session } = this
    if (!this.#own && session.tail.count > readerTail && session.index.checkpoint().sequence > session.position.sequence - readerTail) {
      session.resume()
    }
    this.#note(session, session.advance().damage)
    if (this.#own && session.tail.count > readerTail) session.checkpoint()
  }

  read<A>(evaluate: (session: JsonlSession) => A): A {
    try {
      return this.session.index.snapshot(() => {
        this.#advance()
        return evaluate(this.session)
      })
    } catch (error) {
      if (this.#own || !(error instanceof StorageError) || error.kind !== "corrupt") throw error
      // What is damaged is told, and the rest is found by the lines themselves.
      const session = this.#readAll()
      this.session.close()
      this.session = session
      return evaluate(session)
    }
  }
}

/** Opens a session's folder for reading beside whoever writes it. What is whole can be read, also when not all is. */
export const openJsonlReader = (folder: string): Effect.Effect<JsonlReader, StorageError, Scope.Scope> =>
  Effect.gen(function*() {
    const messages: Array<string> = []
    const told = Effect.suspend(() => warnings(messages.splice(0)))
    const state = yield* Effect.acquireRelease(
      attempt(folder, () => {
        if (!fs.existsSync(folder)) throw notFound(folder, `there is no session in ${folder}`)
        return new ReaderState(folder, (message) => void messages.push(message))
      }),
      (state) => attempt(folder, () => state.session.close()).pipe(Effect.ignore)
    )
    yield* told
    const read = <A>(evaluate: (session: JsonlSession) => A): Effect.Effect<A, StorageError> =>
      Effect.tap(attempt(folder, () => state.read(evaluate)), () => told)
    return { ...reads(read), damage: Effect.sync(() => [...state.damage]) }
  })
