/**
 * The catalogue of sessions: one SQLite file under the data directory that many processes use at once, each in short
 * transactions. Synchronous; `store.ts` gives it an Effect face.
 *
 * A session's place in the order is a counter that moves when work happens in it, so the order does not depend on clocks.
 */
import * as Schema from "effect/Schema"
import * as fs from "node:fs"
import * as nodePath from "node:path"
import type { LocationRef } from "../location/index.ts"
import { Database, ensureFormat, privateFolder, StorageError } from "../storage/index.ts"
import type { Format } from "../storage/index.ts"
import { SessionRecord } from "./record.ts"

/** "BzlC" */
const format: Format = {
  applicationID: 0x427a6c43,
  version: 1,
  schema: `
    CREATE TABLE sessions (
      id TEXT PRIMARY KEY, position INTEGER NOT NULL UNIQUE, directory TEXT NOT NULL, workspace TEXT, parent TEXT,
      archived INTEGER NOT NULL, search TEXT NOT NULL, record TEXT NOT NULL
    );
    CREATE INDEX sessions_directory ON sessions (directory, position);
    CREATE INDEX sessions_parent ON sessions (parent, position);
  `
}

export interface CatalogueFilter {
  readonly location?: LocationRef
  /** `null`: only sessions without a parent. */
  readonly parentID?: string | null
  /** Part of the title, in any case. */
  readonly text?: string
  readonly archived?: boolean
  /** Exclusive. */
  readonly before?: number
  readonly limit: number
}

export interface CatalogueItem {
  readonly id: string
  readonly position: number
  /** What is wrong with a record that cannot be read back. */
  readonly record: SessionRecord | StorageError
}

const decodeRecord = Schema.decodeUnknownSync(Schema.fromJsonString(SessionRecord))

const search = (title: string): string => title.toLowerCase()

export class Catalogue {
  readonly path: string
  readonly #database: Database

  /** Opens `catalogue.db` in a directory, created when it is not there; `null` is a catalogue in memory. */
  constructor(directory: string | null) {
    if (directory === null) this.path = ":memory:"
    else {
      privateFolder(directory)
      this.path = nodePath.join(fs.realpathSync(directory), "catalogue.db")
    }
    this.#database = new Database(this.path, { busyMilliseconds: 5_000 })
    try {
      ensureFormat(this.#database, format, { create: true })
    } catch (error) {
      this.#database.close()
      throw error
    }
  }

  #decode(row: Record<string, unknown>): CatalogueItem {
    const id = String(row.id)
    const position = Number(row.position)
    try {
      return { id, position, record: decodeRecord(row.record) }
    } catch {
      const message =
        `${this.path}: the record of session ${id} cannot be read back; remove that session, or restore the file from a backup`
      return { id, position, record: new StorageError({ kind: "corrupt", message, path: this.path }) }
    }
  }

  #read(row: Record<string, unknown>): SessionRecord {
    const { record } = this.#decode(row)
    if (record instanceof StorageError) throw record
    return record
  }

  #next(): number {
    return Number(this.#database.get("SELECT coalesce(max(position), 0) + 1 AS next FROM sessions")?.next)
  }

  get(id: string): SessionRecord | null {
    const row = this.#database.get("SELECT id, position, record FROM sessions WHERE id = ?", id)
    return row === undefined ? null : this.#read(row)
  }

  /** False when the id is taken. */
  insert(record: SessionRecord): boolean {
    return this.#database.transaction(() =>
      this.#database.run(
        "INSERT INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING",
        record.id,
        this.#next(),
        record.location.directory,
        record.location.workspaceID,
        record.parentID,
        record.archived ? 1 : 0,
        search(record.title),
        JSON.stringify(record)
      ) > 0
    )
  }

  /** Changes a record by what is in the file now, whoever wrote it. `null` when there is none. */
  update(
    id: string,
    options: { readonly active: boolean },
    change: (record: SessionRecord) => SessionRecord
  ): SessionRecord | null {
    return this.#database.transaction(() => {
      const row = this.#database.get("SELECT id, position, record FROM sessions WHERE id = ?", id)
      if (row === undefined) return null
      const changed = change(this.#read(row))
      this.#database.run(
        "UPDATE sessions SET position = ?, parent = ?, archived = ?, search = ?, record = ? WHERE id = ?",
        options.active ? this.#next() : Number(row.position),
        changed.parentID,
        changed.archived ? 1 : 0,
        search(changed.title),
        JSON.stringify(changed),
        id
      )
      return changed
    })
  }

  /** Also of a session whose record is damaged. */
  has(id: string): boolean {
    return this.#database.get("SELECT 1 FROM sessions WHERE id = ?", id) !== undefined
  }

  delete(id: string): boolean {
    return this.#database.run("DELETE FROM sessions WHERE id = ?", id) > 0
  }

  list(filter: CatalogueFilter): ReadonlyArray<CatalogueItem> {
    const conditions: Array<string> = []
    const values: Array<string | number> = []
    const where = (condition: string, ...operands: Array<string | number>): void => {
      conditions.push(condition)
      values.push(...operands)
    }
    if (filter.location !== undefined) {
      where("directory = ?", filter.location.directory)
      if (filter.location.workspaceID === null) where("workspace IS NULL")
      else where("workspace = ?", filter.location.workspaceID)
    }
    if (filter.parentID === null) where("parent IS NULL")
    else if (filter.parentID !== undefined) where("parent = ?", filter.parentID)
    if (filter.text !== undefined && filter.text !== "") where("instr(search, ?) > 0", search(filter.text))
    if (filter.archived !== undefined) where("archived = ?", filter.archived ? 1 : 0)
    if (filter.before !== undefined) where("position < ?", filter.before)
    const condition = conditions.length === 0 ? "" : `WHERE ${conditions.join(" AND ")}`
    return this.#database.all(
      `SELECT id, position, record FROM sessions ${condition} ORDER BY position DESC LIMIT ?`,
      ...values,
      filter.limit
    )
      .map((row) => this.#decode(row))
  }

  close(): void {
    this.#database.close()
  }
}
