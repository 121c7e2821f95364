/**
 * The index of a JSONL session: where each record's line is, and what is looked up by. Derived from the segments, written
 * behind them, never needed: an index that is absent, damaged or does not fit is built again from the lines.
 *
 * It is a SQLite file, so a session opens without reading its history and readers of other processes share it. It holds
 * places and checksums, no content: a line that is not what was stored is told, never shown.
 */
import { Database, ensureFormat } from "./database.ts"
import type { Format } from "./database.ts"
import type { Place } from "./jsonl-format.ts"
import type { JsonlTail } from "./jsonl-tail.ts"
import type { EntryScan } from "./storage.ts"

/** The columns of a place, in the order of every table. */
const placed = ({ length, offset, segment, sum }: Place): readonly [number, number, number, number] => [
  segment,
  offset,
  length,
  sum
]

/** "BzlI" */
const format: Format = {
  applicationID: 0x427a6c49,
  version: 1,
  schema: `
    CREATE TABLE state (
      id INTEGER PRIMARY KEY CHECK (id = 1), sequence INTEGER NOT NULL, next_id INTEGER NOT NULL, mark INTEGER NOT NULL,
      segment INTEGER NOT NULL, offset INTEGER NOT NULL, line INTEGER NOT NULL
    );
    INSERT INTO state VALUES (1, 0, 1, 0, 1, 0, 0);
    CREATE TABLE segments (segment INTEGER PRIMARY KEY, size INTEGER NOT NULL, sum INTEGER NOT NULL, identity TEXT);
    CREATE TABLE commits (sequence INTEGER PRIMARY KEY, segment INTEGER NOT NULL, offset INTEGER NOT NULL, length INTEGER NOT NULL, sum INTEGER NOT NULL);
    CREATE TABLE conversations (
      id TEXT PRIMARY KEY, segment INTEGER NOT NULL, offset INTEGER NOT NULL, length INTEGER NOT NULL, sum INTEGER NOT NULL
    );
    CREATE TABLE entries (
      ordinal INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, sequence INTEGER NOT NULL, conversation TEXT NOT NULL,
      kind TEXT NOT NULL, head INTEGER NOT NULL,
      segment INTEGER NOT NULL, offset INTEGER NOT NULL, length INTEGER NOT NULL, sum INTEGER NOT NULL
    );
    CREATE INDEX entries_kind ON entries (conversation, kind, ordinal);
    CREATE INDEX entries_conversation ON entries (conversation, ordinal);
    CREATE INDEX entries_head ON entries (conversation, ordinal) WHERE head = 1;
    CREATE TABLE tasks (
      id TEXT PRIMARY KEY, ordinal INTEGER NOT NULL, live INTEGER NOT NULL,
      segment INTEGER NOT NULL, offset INTEGER NOT NULL, length INTEGER NOT NULL, sum INTEGER NOT NULL
    );
    CREATE INDEX tasks_live ON tasks (ordinal) WHERE live = 1;
    CREATE TABLE inputs (
      id TEXT PRIMARY KEY, ordinal INTEGER NOT NULL, live INTEGER NOT NULL, request TEXT UNIQUE,
      segment INTEGER NOT NULL, offset INTEGER NOT NULL, length INTEGER NOT NULL, sum INTEGER NOT NULL
    );
    CREATE INDEX inputs_live ON inputs (ordinal) WHERE live = 1;
    CREATE TABLE documents (
      document TEXT PRIMARY KEY, first INTEGER NOT NULL, retained INTEGER NOT NULL, base_size INTEGER NOT NULL, replay_size INTEGER NOT NULL
    );
    CREATE TABLE document_states (
      document TEXT NOT NULL, sequence INTEGER NOT NULL, base INTEGER NOT NULL,
      segment INTEGER NOT NULL, offset INTEGER NOT NULL, length INTEGER NOT NULL, sum INTEGER NOT NULL,
      UNIQUE (document, sequence)
    );
    CREATE INDEX document_bases ON document_states (document, sequence) WHERE base = 1;
    CREATE TABLE gaps (first INTEGER PRIMARY KEY, last INTEGER NOT NULL, file TEXT NOT NULL, line INTEGER NOT NULL, last_line INTEGER NOT NULL);
  `
}

/** Behind which whole group the index ends. */
export interface Checkpoint {
  readonly sequence: number
  readonly nextID: number
  /** Greatest number in an entry's id. */
  readonly mark: number
  readonly segment: number
  readonly offset: number
  /** Number of the line at `offset`. */
  readonly line: number
}

export interface SegmentRow {
  readonly segment: number
  /** Of what is indexed of it. */
  readonly size: number
  /** Checksum of those bytes. */
  readonly sum: number
  /** The file as it was when it was last known to be whole; `null`: compare its bytes. */
  readonly identity: string | null
}

export interface EntryRow {
  readonly id: string
  readonly ordinal: number
  readonly sequence: number
  readonly conversation: string
  readonly kind: string
  readonly head: boolean
  readonly place: Place
}

export interface TaskRow {
  readonly id: string
  readonly ordinal: number
  readonly live: boolean
  readonly place: Place
}

export interface InputRow extends TaskRow {
  readonly request: string | null
}

export interface DocumentRow {
  /** The commit that wrote it first. */
  readonly first: number
  readonly retained: boolean
  readonly baseSize: number
  readonly replaySize: number
}

export interface StateRow {
  readonly sequence: number
  readonly base: boolean
  readonly place: Place
}

export interface GapRow {
  readonly first: number
  readonly last: number
  readonly file: string
  readonly line: number
  readonly lastLine: number
}

type Row = Record<string, unknown>

/** A text that SQLite could not hold as it is, such as a lone surrogate, as one that it can. */
const key = (text: string): string => JSON.stringify(text)

const unkey = (text: unknown): string => String(JSON.parse(String(text)))

const placeOf = (row: Row): Place => ({
  segment: Number(row.segment),
  offset: Number(row.offset),
  length: Number(row.length),
  sum: Number(row.sum)
})

const entryOf = (row: Row): EntryRow => ({
  id: String(row.id),
  ordinal: Number(row.ordinal),
  sequence: Number(row.sequence),
  conversation: String(row.conversation),
  kind: unkey(row.kind),
  head: row.head === 1,
  place: placeOf(row)
})

const taskOf = (row: Row): TaskRow => ({
  id: String(row.id),
  ordinal: Number(row.ordinal),
  live: row.live === 1,
  place: placeOf(row)
})

const inputOf = (row: Row): InputRow => ({
  ...taskOf(row),
  request: row.request === null || row.request === undefined ? null : unkey(row.request)
})

/** The rows of one session's index. */
export class JsonlIndex {
  readonly #database: Database

  /** `:memory:` is an index of this process alone. */
  constructor(path: string, options: { readonly readOnly?: boolean } = {}) {
    this.#database = new Database(path, { readOnly: options.readOnly === true, busyMilliseconds: 5_000 })
    try {
      ensureFormat(this.#database, format, { create: options.readOnly !== true })
    } catch (error) {
      this.#database.close()
      throw error
    }
  }

  checkpoint(): Checkpoint {
    const row = this.#database.get("SELECT * FROM state") ?? {}
    return {
      sequence: Number(row.sequence),
      nextID: Number(row.next_id),
      mark: Number(row.mark),
      segment: Number(row.segment),
      offset: Number(row.offset),
      line: Number(row.line)
    }
  }

  segments(): ReadonlyArray<SegmentRow> {
    return this.#database.all("SELECT * FROM segments ORDER BY segment").map((row) => ({
      segment: Number(row.segment),
      size: Number(row.size),
      sum: Number(row.sum),
      identity: row.identity === null ? null : String(row.identity)
    }))
  }

  setIdentity(segment: number, identity: string): void {
    this.#database.run("UPDATE segments SET identity = ? WHERE segment = ?", identity, segment)
  }

  /** Several reads of one state of the index. */
  snapshot<A>(evaluate: () => A): A {
    return this.#database.snapshot(evaluate)
  }

  conversation(id: string): Place | null {
    const row = this.#database.get("SELECT * FROM conversations WHERE id = ?", id)
    return row === undefined ? null : placeOf(row)
  }

  conversations(): ReadonlyArray<{ readonly id: string; readonly place: Place }> {
    return this.#database.all("SELECT * FROM conversations ORDER BY rowid")
      .map((row) => ({ id: String(row.id), place: placeOf(row) }))
  }

  entry(id: string): EntryRow | null {
    const row = this.#database.get("SELECT * FROM entries WHERE id = ?", id)
    return row === undefined ? null : entryOf(row)
  }

  hasEntry(id: string, ordinal: number): boolean {
    return this.#database.get("SELECT 1 FROM entries WHERE id = ? OR ordinal = ?", id, ordinal) !== undefined
  }

  maxOrdinal(): number {
    return Number(this.#database.get("SELECT max(ordinal) AS top FROM entries")?.top ?? -1)
  }

  countEntries(): number {
    return Number(this.#database.get("SELECT count(*) AS count FROM entries")?.count)
  }

  entries(scan: EntryScan): ReadonlyArray<EntryRow> {
    const conditions = ["conversation = ?"]
    const values: Array<string | number> = [scan.conversation]
    const where = (condition: string, value: string | number): void => {
      conditions.push(condition)
      values.push(value)
    }
    if (scan.after !== undefined) where("ordinal > ?", scan.after)
    if (scan.before !== undefined) where("ordinal < ?", scan.before)
    if (scan.kind !== undefined) where("kind = ?", key(scan.kind))
    if (scan.heads === true) conditions.push("head = 1")
    const order = scan.newestFirst === true ? "DESC" : "ASC"
    return this.#database.all(
      `SELECT * FROM entries WHERE ${conditions.join(" AND ")} ORDER BY ordinal ${order} LIMIT ?`,
      ...values,
      scan.limit ?? -1
    ).map(entryOf)
  }

  task(id: string): TaskRow | null {
    const row = this.#database.get("SELECT * FROM tasks WHERE id = ?", id)
    return row === undefined ? null : taskOf(row)
  }

  liveTasks(): ReadonlyArray<TaskRow> {
    return this.#database.all("SELECT * FROM tasks WHERE live = 1 ORDER BY ordinal").map(taskOf)
  }

  input(id: string): InputRow | null {
    const row = this.#database.get("SELECT * FROM inputs WHERE id = ?", id)
    return row === undefined ? null : inputOf(row)
  }

  inputByRequest(request: string): InputRow | null {
    const row = this.#database.get("SELECT * FROM inputs WHERE request = ?", key(request))
    return row === undefined ? null : inputOf(row)
  }

  liveInputs(): ReadonlyArray<InputRow> {
    return this.#database.all("SELECT * FROM inputs WHERE live = 1 ORDER BY ordinal").map(inputOf)
  }

  documents(): ReadonlyArray<string> {
    return this.#database.all("SELECT document FROM documents ORDER BY rowid").map((row) => unkey(row.document))
  }

  document(document: string): DocumentRow | null {
    const row = this.#database.get("SELECT * FROM documents WHERE document = ?", key(document))
    if (row === undefined) return null
    return {
      first: Number(row.first),
      retained: row.retained === 1,
      baseSize: Number(row.base_size),
      replaySize: Number(row.replay_size)
    }
  }

  /** The newest base at or before a commit, and what follows it up to that commit. */
  states(document: string, sequence: number): ReadonlyArray<StateRow> {
    const id = key(document)
    return this.#database.all(
      `SELECT * FROM document_states WHERE document = ? AND sequence <= ? AND sequence >= (
         SELECT max(sequence) FROM document_states WHERE document = ? AND base = 1 AND sequence <= ?
       ) ORDER BY sequence`,
      id,
      sequence,
      id,
      sequence
    ).map((row) => ({ sequence: Number(row.sequence), base: row.base === 1, place: placeOf(row) }))
  }

  oldestState(document: string): number | null {
    const row = this.#database.get(
      "SELECT min(sequence) AS oldest FROM document_states WHERE document = ?",
      key(document)
    )
    return row === undefined || row.oldest === null ? null : Number(row.oldest)
  }

  commits(after: number, limit: number): ReadonlyArray<{ readonly sequence: number; readonly place: Place }> {
    return this.#database.all("SELECT * FROM commits WHERE sequence > ? ORDER BY sequence LIMIT ?", after, limit)
      .map((row) => ({ sequence: Number(row.sequence), place: placeOf(row) }))
  }

  gaps(): ReadonlyArray<GapRow> {
    return this.#database.all("SELECT * FROM gaps ORDER BY first").map((row) => ({
      first: Number(row.first),
      last: Number(row.last),
      file: String(row.file),
      line: Number(row.line),
      lastLine: Number(row.last_line)
    }))
  }

  #flushDocuments(tail: JsonlTail): void {
    const database = this.#database
    for (const [document, change] of tail.documents) {
      const id = key(document)
      if (change.fresh) database.run("DELETE FROM document_states WHERE document = ?", id)
      for (const { base, place, sequence } of change.states) {
        database.run(
          "INSERT OR REPLACE INTO document_states VALUES (?, ?, ?, ?, ?, ?, ?)",
          id,
          sequence,
          base ? 1 : 0,
          ...placed(place)
        )
      }
      database.run(
        `INSERT INTO documents VALUES (?, ?, ?, ?, ?) ON CONFLICT (document) DO UPDATE
         SET retained = excluded.retained, base_size = excluded.base_size, replay_size = excluded.replay_size`,
        id,
        change.row.first,
        change.row.retained ? 1 : 0,
        change.row.baseSize,
        change.row.replaySize
      )
    }
  }

  /** Takes in what was committed since the last checkpoint: all of it or nothing. */
  flush(tail: JsonlTail, checkpoint: Checkpoint, segments: ReadonlyArray<SegmentRow>): void {
    const database = this.#database
    database.transaction(() => {
      for (const [id, place] of tail.conversations) {
        database.run(
          `INSERT INTO conversations VALUES (?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE
           SET segment = excluded.segment, offset = excluded.offset, length = excluded.length, sum = excluded.sum`,
          id,
          ...placed(place)
        )
      }
      for (const row of tail.entries.values()) {
        database.run(
          "INSERT OR IGNORE INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
          row.ordinal,
          row.id,
          row.sequence,
          row.conversation,
          key(row.kind),
          row.head ? 1 : 0,
          ...placed(row.place)
        )
      }
      for (const row of tail.tasks.values()) {
        database.run(
          "INSERT OR REPLACE INTO tasks VALUES (?, ?, ?, ?, ?, ?, ?)",
          row.id,
          row.ordinal,
          row.live ? 1 : 0,
          ...placed(row.place)
        )
      }
      for (const row of tail.inputs.values()) {
        database.run(
          "INSERT OR REPLACE INTO inputs VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
          row.id,
          row.ordinal,
          row.live ? 1 : 0,
          row.request === null ? null : key(row.request),
          ...placed(row.place)
        )
      }
      this.#flushDocuments(tail)
      for (const { place, sequence } of tail.commits) {
        database.run(
          "INSERT OR REPLACE INTO commits VALUES (?, ?, ?, ?, ?)",
          sequence,
          ...placed(place)
        )
      }
      for (const gap of tail.gaps) {
        database.run(
          "INSERT OR REPLACE INTO gaps VALUES (?, ?, ?, ?, ?)",
          gap.first,
          gap.last,
          gap.file,
          gap.line,
          gap.lastLine
        )
      }
      for (const row of segments) {
        database.run(
          "INSERT OR REPLACE INTO segments VALUES (?, ?, ?, ?)",
          row.segment,
          row.size,
          row.sum,
          row.identity
        )
      }
      database.run(
        "UPDATE state SET sequence = ?, next_id = max(next_id, ?), mark = max(mark, ?), segment = ?, offset = ?, line = ?",
        checkpoint.sequence,
        checkpoint.nextID,
        checkpoint.mark,
        checkpoint.segment,
        checkpoint.offset,
        checkpoint.line
      )
    })
  }

  close(): void {
    this.#database.close()
  }
}
