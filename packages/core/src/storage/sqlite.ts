/**
 * A session in one SQLite file, in write-ahead mode: one writer, readers beside it that see whole commits.
 *
 * Records are JSON text in rows that carry what they are looked up by. Opening reads one row, whatever the length of the
 * history. A document is a base and the operations since; when the operations outgrow the base, the commit writes a fresh
 * base instead, so that reading one stays within a small factor of its size. A fresh base makes what came before it
 * obsolete unless the document is retained.
 *
 * Whoever opens for writing must hold the session's lease (`lease.ts`); this file does not check that.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { JsonValue, Operation } from "../json/index.ts"
import { attempt, Database, ensureFormat, isTaken, storageError } from "./database.ts"
import type { Durability, Format, FormatOptions } from "./database.ts"
import { migrateSqlite, migrationMessage } from "./migrate.ts"
import type { MigrationReport } from "./migrate.ts"
import { decodeStored, documentWrites, isLiveInput, isLiveTask, notFound, refused, replay } from "./records.ts"
import type { DocumentWrite } from "./records.ts"
import { sqliteFormat } from "./sqlite-format.ts"
import type {
  Batch,
  ConversationRecord,
  EntryRecord,
  EntryScan,
  HistoryItem,
  InputRecord,
  Storage,
  StorageError,
  StorageReader,
  TaskRecord
} from "./storage.ts"

/** Operations may outgrow a small base by this much before a fresh one is worth writing. UTF-16 units. */
const minimumReplay = 16_384

/** A text that SQLite could not hold as it is, such as a lone surrogate, as one that it can. */
const key = (text: string): string => JSON.stringify(text)

/** A base and what follows it, in one statement: one state of the file. Parameters are not numbered, for older Nodes. */
const states = `
  SELECT base, value FROM document_states
  WHERE document = ? AND sequence <= ? AND sequence >= (
    SELECT max(sequence) FROM document_states WHERE document = ? AND base = 1 AND sequence <= ?
  ) ORDER BY sequence`

/** The newest commit is the newest row of `commits`, or, if it had no events, the row of `state`. */
const newestState = `
  SELECT sequence, next_id FROM state UNION ALL
  SELECT * FROM (SELECT sequence, next_id FROM commits ORDER BY sequence DESC LIMIT 1)
  ORDER BY sequence DESC, next_id DESC LIMIT 1`

const kindsOf = `
  WITH RECURSIVE kinds (kind) AS (
    SELECT min(kind) FROM entries WHERE conversation = ? UNION ALL
    SELECT (SELECT min(kind) FROM entries WHERE conversation = ? AND kind > kinds.kind) FROM kinds WHERE kind IS NOT NULL
  ) SELECT kind FROM kinds WHERE kind IS NOT NULL`

/** Finds an entry whose id does not say where it is; in the words of its index, so that it is used. */
const byForeignID = "id = ? AND id <> 'e' || ordinal"
const anyForeignID = "SELECT 1 FROM entries WHERE id <> 'e' || ordinal LIMIT 1"

/** The ordinal that an id names, if it is written as those of this program are. */
const ordinalIn = (id: string): number | null => /^e[1-9]\d{0,14}$/.test(id) ? Number(id.slice(1)) : null

class SessionDatabase {
  readonly database: Database
  readonly path: string

  constructor(database: Database) {
    this.database = database
    this.path = database.path
  }

  record<A>(row: Record<string, unknown> | undefined, what: string): A | null {
    return row === undefined ? null : decodeStored<A>(row.record, this.path, what)
  }

  records<A>(rows: ReadonlyArray<Record<string, unknown>>, what: string): ReadonlyArray<A> {
    return rows.map((row) => decodeStored<A>(row.record, this.path, `${what} ${String(row.id)}`))
  }

  state(): { readonly sequence: number; readonly nextID: number } {
    const row = this.database.get(newestState)
    return { sequence: Number(row?.sequence), nextID: Number(row?.next_id) }
  }

  /** The row of an entry, by its id; most ids say where it is. */
  entry(id: string, columns: string): Record<string, unknown> | undefined {
    const ordinal = ordinalIn(id)
    const row = ordinal === null
      ? undefined
      : this.database.get(`SELECT ${columns} FROM entries WHERE ordinal = ? AND id = ?`, ordinal, id)
    return row ?? this.database.get(`SELECT ${columns} FROM entries WHERE ${byForeignID}`, id)
  }

  /** The kinds of entries that a conversation has, found by jumping from one to the next in their index. */
  #kinds(conversation: string): ReadonlyArray<string> {
    return this.database.all(kindsOf, conversation, conversation).map((row) => String(row.kind))
  }

  /** Entries are indexed by kind, so a scan of all kinds is one of each, put in order. */
  entries(scan: EntryScan): ReadonlyArray<EntryRecord> {
    if (scan.kind !== undefined || scan.heads === true) {
      return this.#scan(scan, scan.kind === undefined ? null : key(scan.kind))
    }
    const found = this.database.snapshot(() => this.#kinds(scan.conversation).map((kind) => this.#scan(scan, kind)))
    const [first] = found
    if (first !== undefined && found.length === 1) return first
    const sign = scan.newestFirst === true ? -1 : 1
    const merged = found.flat().sort((left, right) => sign * (left.ordinal - right.ordinal))
    return scan.limit === undefined ? merged : merged.slice(0, scan.limit)
  }

  #scan(scan: EntryScan, kind: string | null): ReadonlyArray<EntryRecord> {
    const conditions = ["conversation = ?"]
    const values: Array<string | number> = [scan.conversation]
    if (scan.after !== undefined) {
      conditions.push("ordinal > ?")
      values.push(scan.after)
    }
    if (scan.before !== undefined) {
      conditions.push("ordinal < ?")
      values.push(scan.before)
    }
    if (kind !== null) {
      conditions.push("kind = ?")
      values.push(kind)
    }
    if (scan.heads === true) conditions.push("head = 1")
    values.push(scan.limit ?? -1)
    const order = scan.newestFirst === true ? "DESC" : "ASC"
    const rows = this.database.all(
      `SELECT id, record FROM entries WHERE ${conditions.join(" AND ")} ORDER BY ordinal ${order} LIMIT ?`,
      ...values
    )
    return this.records(rows, "entry")
  }

  document(document: string, sequence: number): JsonValue {
    let value: JsonValue = null
    for (const row of this.database.all(states, key(document), sequence, key(document), sequence)) {
      if (row.base === 1) value = decodeStored<JsonValue>(row.value, this.path, `document "${document}"`)
      else {
        const operations = decodeStored<ReadonlyArray<Operation>>(
          row.value,
          this.path,
          `a change of document "${document}"`
        )
        value = replay(value, operations, this.path, document)
      }
    }
    return value
  }

  documentAt(document: string, sequence: number): JsonValue {
    return this.database.snapshot(() => {
      const row = this.database.get(
        "SELECT first, (SELECT min(sequence) FROM document_states s WHERE s.document = d.document) AS oldest FROM documents d WHERE document = ?",
        key(document)
      )
      if (row === undefined || sequence < Number(row.first)) return null
      if (sequence < Number(row.oldest)) {
        throw notFound(
          this.path,
          `document "${document}" is not kept as it was at commit ${sequence}; the oldest state kept is of commit ${
            Number(row.oldest)
          }`
        )
      }
      return this.document(document, sequence)
    })
  }

  history(after: number, limit: number): ReadonlyArray<HistoryItem> {
    return this.database.all(
      "SELECT sequence, at, events FROM commits WHERE sequence > ? ORDER BY sequence LIMIT ?",
      after,
      limit
    ).map((row) => ({
      sequence: Number(row.sequence),
      at: Number(row.at),
      events: decodeStored<ReadonlyArray<JsonValue>>(
        row.events,
        this.path,
        `the events of commit ${String(row.sequence)}`
      )
    }))
  }

  reader(): StorageReader {
    const read = <A>(evaluate: () => A): Effect.Effect<A, StorageError> => attempt(this.path, evaluate)
    const byID = <A>(table: string, what: string) => (id: string): Effect.Effect<A | null, StorageError> =>
      read(() => this.record<A>(this.database.get(`SELECT record FROM ${table} WHERE id = ?`, id), `${what} ${id}`))
    return {
      sequence: read(() => this.state().sequence),
      nextID: read(() => this.state().nextID),
      conversation: byID<ConversationRecord>("conversations", "conversation"),
      conversations: read(() =>
        this.records<ConversationRecord>(
          this.database.all("SELECT id, record FROM conversations ORDER BY rowid"),
          "conversation"
        )
      ),
      entry: (id) => read(() => this.record<EntryRecord>(this.entry(id, "record"), `entry ${id}`)),
      entries: (scan) => read(() => this.entries(scan)),
      task: byID<TaskRecord>("tasks", "task"),
      liveTasks: read(() =>
        this.records<TaskRecord>(
          this.database.all("SELECT id, record FROM tasks WHERE live = 1 ORDER BY ordinal"),
          "task"
        )
      ),
      input: byID<InputRecord>("inputs", "input"),
      inputByRequest: (requestID) =>
        read(() =>
          this.record<InputRecord>(
            this.database.get("SELECT record FROM inputs WHERE request = ?", key(requestID)),
            `the input of request ${requestID}`
          )
        ),
      liveInputs: read(() =>
        this.records<InputRecord>(
          this.database.all("SELECT id, record FROM inputs WHERE live = 1 ORDER BY ordinal"),
          "input"
        )
      ),
      document: (document) => read(() => this.document(document, Number.MAX_SAFE_INTEGER)),
      documentAt: (document, sequence) => read(() => this.documentAt(document, sequence)),
      sequenceOf: (entry) =>
        read(() => {
          const row = this.entry(entry, "sequence")
          return row === undefined ? null : Number(row.sequence)
        }),
      history: (after, limit) => read(() => this.history(after, limit))
    }
  }
}

/** How long a document's base is, and all operations since, in UTF-16 units or nearly so. */
interface DocumentSize {
  readonly base: number
  readonly replay: number
  readonly retained: boolean
}

const sizeOf = `
  SELECT retained, base_size, (
    SELECT coalesce(sum(length(value)), 0) FROM document_states
    WHERE document = ? AND sequence > (SELECT max(sequence) FROM document_states WHERE document = ? AND base = 1)
  ) AS replay_size FROM documents WHERE document = ?`

export class SessionWriter extends SessionDatabase {
  /** Values of documents as committed; read from the file when first needed, and again after a failure. */
  #documents = new Map<string, JsonValue>()
  #sizes = new Map<string, DocumentSize>()
  #state: { readonly sequence: number; readonly nextID: number } | undefined
  /** Whether an entry has an id that does not say where it is; `undefined` until asked, and again after a failure. */
  #hasForeign: boolean | undefined

  #value(document: string): JsonValue {
    const known = this.#documents.get(document)
    return known !== undefined ? known : this.document(document, Number.MAX_SAFE_INTEGER)
  }

  /** What is stored of a document, or `undefined` for one that was never written. */
  #size(document: string, id: string): DocumentSize | undefined {
    const known = this.#sizes.get(document)
    if (known !== undefined) return known
    const row = this.database.get(sizeOf, id, id, id)
    if (row === undefined) return undefined
    return { base: Number(row.base_size), replay: Number(row.replay_size), retained: row.retained === 1 }
  }

  #writeDocument(write: DocumentWrite, sequence: number): JsonValue {
    const { database } = this
    const id = key(write.document)
    const size = this.#size(write.document, id)
    let value = write.base !== undefined ? write.base : this.#value(write.document)
    try {
      value = replay(value, write.operations, this.path, write.document)
    } catch (error) {
      throw refused(this.path, `this commit was not stored: ${error instanceof Error ? error.message : String(error)}`)
    }
    const operations = write.base === undefined && size !== undefined ? JSON.stringify(write.operations) : undefined
    const grown = (size?.replay ?? 0) + (operations?.length ?? 0)
    if (size !== undefined && operations !== undefined && grown <= Math.max(minimumReplay, size.base)) {
      database.run("INSERT INTO document_states VALUES (?, ?, 0, ?)", id, sequence, operations)
      if (size.retained !== write.retained) {
        database.run("UPDATE documents SET retained = ? WHERE document = ?", write.retained ? 1 : 0, id)
      }
      this.#sizes.set(write.document, { ...size, replay: grown, retained: write.retained })
      return value
    }
    const base = JSON.stringify(value)
    if (!write.retained) database.run("DELETE FROM document_states WHERE document = ?", id)
    database.run("INSERT INTO document_states VALUES (?, ?, 1, ?)", id, sequence, base)
    database.run(
      `INSERT INTO documents VALUES (?, ?, ?, ?, 0)
       ON CONFLICT (document) DO UPDATE SET retained = excluded.retained, base_size = excluded.base_size, replay_size = 0`,
      id,
      sequence,
      write.retained ? 1 : 0,
      base.length
    )
    this.#sizes.set(write.document, { base: base.length, replay: 0, retained: write.retained })
    return value
  }

  #writeEntry(entry: EntryRecord, sequence: number): void {
    const exists = (): StorageError =>
      refused(
        this.path,
        `this commit was not stored: entry ${entry.id} (ordinal ${entry.ordinal}) exists, and entries never change`
      )
    // An id that says where its entry is can only be taken by one that does not; the ordinal guards itself.
    const placed = ordinalIn(entry.id) === entry.ordinal
    if (!placed) this.#hasForeign = true
    else this.#hasForeign ??= this.database.get(anyForeignID) !== undefined
    const taken = placed
      ? this.#hasForeign && this.database.get(`SELECT 1 FROM entries WHERE ${byForeignID}`, entry.id) !== undefined
      : this.entry(entry.id, "1") !== undefined
    if (taken) throw exists()
    try {
      this.database.run(
        "INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?)",
        entry.ordinal,
        entry.id,
        sequence,
        entry.conversation,
        key(entry.kind),
        entry.head === null ? 0 : 1,
        JSON.stringify(entry)
      )
    } catch (error) {
      throw isTaken(error) ? exists() : error
    }
  }

  #write(batch: Batch, sequence: number, nextID: number): ReadonlyMap<string, JsonValue> {
    const { database } = this
    for (const record of batch.conversations) {
      database.run(
        "INSERT INTO conversations VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET record = excluded.record",
        record.id,
        JSON.stringify(record)
      )
    }
    for (const entry of batch.entries) this.#writeEntry(entry, sequence)
    for (const task of batch.tasks) {
      database.run(
        "INSERT INTO tasks VALUES (?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET ordinal = excluded.ordinal, live = excluded.live, record = excluded.record",
        task.id,
        task.ordinal,
        isLiveTask(task) ? 1 : 0,
        JSON.stringify(task)
      )
    }
    for (const input of batch.inputs) {
      database.run(
        `INSERT INTO inputs VALUES (?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE
         SET ordinal = excluded.ordinal, live = excluded.live, request = excluded.request, record = excluded.record`,
        input.id,
        input.ordinal,
        isLiveInput(input) ? 1 : 0,
        input.requestID === null ? null : key(input.requestID),
        JSON.stringify(input)
      )
    }
    const documents = new Map<string, JsonValue>()
    for (const write of documentWrites(batch)) documents.set(write.document, this.#writeDocument(write, sequence))
    // One of the two says where the session is now.
    if (batch.events.length > 0) {
      database.run("INSERT INTO commits VALUES (?, ?, ?, ?)", sequence, batch.at, JSON.stringify(batch.events), nextID)
    } else {
      database.run("UPDATE state SET sequence = ?, next_id = ?", sequence, nextID)
    }
    return documents
  }

  commit(batch: Batch): number {
    const before = this.#state ?? this.state()
    const sequence = before.sequence + 1
    const nextID = Math.max(before.nextID, batch.nextID)
    try {
      const documents = this.database.transaction(() => this.#write(batch, sequence, nextID))
      for (const [document, value] of documents) {
        // A document that ended, such as a task's, is not worth remembering.
        if (value === null) {
          this.#documents.delete(document)
          this.#sizes.delete(document)
        } else this.#documents.set(document, value)
      }
      this.#state = { sequence, nextID }
      return sequence
    } catch (error) {
      // What is in the file decides; nothing remembered here does.
      this.#state = undefined
      this.#hasForeign = undefined
      this.#documents = new Map()
      this.#sizes = new Map()
      throw error
    }
  }

  storage(): Storage {
    return { ...this.reader(), commit: (batch) => attempt(this.path, () => this.commit(batch)) }
  }
}

export interface SqliteOptions {
  readonly durability?: Durability
  /** Upper bound of the file in KiB; a commit that would pass it fails as on a full disk. */
  readonly maxKiB?: number
  /** A later format than today's, for showing what a migration does. */
  readonly format?: Format
}

const open = (path: string, make: () => Database): Effect.Effect<Database, StorageError, Scope.Scope> =>
  Effect.acquireRelease(attempt(path, make), (database) =>
    Effect.suspend(() => {
      try {
        database.close()
        return Effect.void
      } catch (error) {
        return Effect.logWarning(storageError(error, path).message)
      }
    }))

const checked = (database: Database, format: Format, options: FormatOptions): Database => {
  try {
    ensureFormat(database, format, options)
    return database
  } catch (error) {
    database.close()
    throw error
  }
}

/** Opens a session's file for writing, and creates it if it is not there; closed with the scope. An older one is migrated. */
export const openSqlite = (
  path: string,
  options: SqliteOptions = {}
): Effect.Effect<Storage, StorageError, Scope.Scope> =>
  Effect.suspend(() => {
    const reports: Array<MigrationReport> = []
    const migrate = (database: Database, format: Format, version: number): void => {
      reports.push(migrateSqlite(database, format, version))
    }
    const make = (): Database =>
      checked(new Database(path, { ...options, busyMilliseconds: 5_000 }), options.format ?? sqliteFormat, {
        create: true,
        migrate
      })
    return Effect.tap(
      Effect.map(open(path, make), (database) => new SessionWriter(database).storage()),
      () => Effect.forEach(reports, (report) => Effect.logWarning(migrationMessage(report)), { discard: true })
    )
  })

/** Opens a session's file for reading beside whoever writes it. */
export const openSqliteReader = (
  path: string,
  options: Pick<SqliteOptions, "format"> = {}
): Effect.Effect<StorageReader, StorageError, Scope.Scope> =>
  Effect.map(
    open(path, () =>
      checked(new Database(path, { readOnly: true, busyMilliseconds: 1_000 }), options.format ?? sqliteFormat, {
        create: false
      })),
    (database) =>
      new SessionDatabase(database).reader()
  )
