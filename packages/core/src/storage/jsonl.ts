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
import { attempt, storageError } from "./database.ts"
import { isIndexDamage, isWhole, prepareWriter, reindex } from "./jsonl-open.ts"
import { ReaderState } from "./jsonl-reader.ts"
import type { JsonlSession } from "./jsonl-session.ts"
import type { WriterOptions } from "./jsonl-writer.ts"
import { jsonlFormat } from "./migrate-jsonl.ts"
import type { JsonlFormat } from "./migrate-jsonl.ts"
import { notFound } from "./records.ts"
import type { Storage, StorageError, StorageReader } from "./storage.ts"

export interface JsonlOptions {
  /** Every commit is on the disk before it is acknowledged. Default false: it survives the process, not the machine. */
  readonly fsync?: boolean
  /** A segment that has grown to this size is followed by a new one. Default 2 MiB. */
  readonly segmentBytes?: number
  /** Upper bound of one file in bytes; a commit that would pass it fails as on a full disk. */
  readonly maxBytes?: number
  /** A later format than today's, for showing what a migration does. */
  readonly format?: JsonlFormat
}

/** A reader that also tells what is missing. */
export interface JsonlReader extends StorageReader {
  /** What is damaged, as far as reading has come across it, in words; empty when nothing is. */
  readonly damage: Effect.Effect<ReadonlyArray<string>, StorageError>
}

export const writerOptions = (options: JsonlOptions): WriterOptions => ({
  fsync: options.fsync === true,
  segmentBytes: options.segmentBytes ?? 2_097_152,
  maxBytes: options.maxBytes ?? Number.MAX_SAFE_INTEGER,
  checkpointEvery: 2_000
})

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
      attempt(folder, () => prepareWriter(folder, writerOptions(options), options.format ?? jsonlFormat, warn)),
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
    const use = <A>(evaluate: () => A): Effect.Effect<A, StorageError> =>
      attempt(folder, () => {
        try {
          return evaluate()
        } catch (error) {
          const { session } = writer
          const isMisled = error === session.lineDamage && isWhole(folder, session.version)
          if (!isMisled && !isIndexDamage(error)) throw error
          session.lineDamage = null
          // Whatever the index could not take has not been stored yet.
          reindex(session)
          writer.reindexed()
          return evaluate()
        }
      })
    return {
      ...reads((evaluate) => use(() => evaluate(writer.session))),
      commit: (batch) =>
        use(() => {
          // Damage that a read came across stops the writing too.
          if (writer.session.lineDamage !== null) throw writer.session.lineDamage
          return writer.commit(batch)
        })
    }
  })

/** Opens a session's folder for reading beside whoever writes it. What is whole can be read, also when not all is. */
export const openJsonlReader = (
  folder: string,
  options: Pick<JsonlOptions, "format"> = {}
): Effect.Effect<JsonlReader, StorageError, Scope.Scope> =>
  Effect.gen(function*() {
    const messages: Array<string> = []
    const told = Effect.suspend(() => warnings(messages.splice(0)))
    const state = yield* Effect.acquireRelease(
      attempt(folder, () => {
        if (!fs.existsSync(folder)) throw notFound(folder, `there is no session in ${folder}`)
        return new ReaderState(
          folder,
          (options.format ?? jsonlFormat).version,
          (message) => void messages.push(message)
        )
      }),
      (state) => attempt(folder, () => state.session.close()).pipe(Effect.ignore)
    )
    yield* told
    const read = <A>(evaluate: (session: JsonlSession) => A): Effect.Effect<A, StorageError> =>
      Effect.tap(attempt(folder, () => state.read(evaluate)), () => told)
    return { ...reads(read), damage: Effect.sync(() => [...state.damage]) }
  })
