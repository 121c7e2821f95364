/**
 * The catalogue of sessions: one SQLite file under the data directory that many processes use at once, each in short
 * transactions. Synchronous; `store.ts` gives it an Effect face.
 *
 * A session's place in the order is a counter that moves when work happens in it, so the order does not depend on clocks.
 *
 * The folder of each session that was ever opened holds its record too (`record-file.ts`), and a catalogue that is missing or
 * damaged is made anew from those, the damaged one set aside. The order is then that of the last change.
 */
import * as Schema from "effect/Schema"
import * as fs from "node:fs"
import * as nodePath from "node:path"
import type { LocationRef } from "../location/index.ts"
import { privateFolder } from "../location/index.ts"
import { Database, ensureFormat, StorageError, storageError } from "../storage/index.ts"
import type { Format } from "../storage/index.ts"
import { RecordFiles } from "./record-file.ts"
import { SessionRecord } from "./record.ts"

/** "BzlC" */
const format: Format = {
  applicationID: 0x427a6c43,
  version: 2,
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

/** Records that are remembered at most. */
const maxDecoded = 500

const decodeRecord = Schema.decodeUnknownSync(Schema.fromJsonString(SessionRecord))

const inodeOf = (path: string): number | null => fs.statSync(path, { throwIfNoEntry: false })?.ino ?? null

const isEmpty = (path: string): boolean => (fs.statSync(path, { throwIfNoEntry: false })?.size ?? 0) === 0

const isWhole = (database: Database): boolean => {
  try {
    return database.get("PRAGMA integrity_check(1)")?.integrity_check === "ok"
  } catch (error) {
    if (storageError(error, database.path).kind === "corrupt") return false
    throw error
  }
}

const search = (title: string): string => title.toLowerCase()

const nextPosition = (database: Database): number =>
  Number(database.get("SELECT coalesce(max(position), 0) + 1 AS next FROM sessions")?.next)

/** False when the id is taken. */
const insertRow = (database: Database, record: SessionRecord): boolean =>
  database.run(
    "INSERT INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING",
    record.id,
    nextPosition(database),
    record.location.directory,
    record.location.workspaceID,
    record.parentID,
    record.archived ? 1 : 0,
    search(record.title),
    JSON.stringify(record)
  ) > 0

const readable = (record: SessionRecord | StorageError): SessionRecord => {
  if (record instanceof StorageError) throw record
  return record
}

const columns = "id, position, record"

/** Lists that are kept. */
const maxLists = 32

/** Another text after each change, by this process or another one. */
const stateOf = (database: Database): string =>
  `${database.get("PRAGMA data_version")?.data_version} ${database.get("SELECT total_changes() AS own")?.own}`

/** What became of a catalogue that was not there, or was damaged. */
export interface Rebuilt {
  /** Number of sessions whose record was found in their folders. */
  readonly sessions: number
  /** Ids of sessions whose folders hold no record, so that they are not in the catalogue. */
  readonly without: ReadonlyArray<string>
  /** Where the damaged file is now; `null` when there was none. */
  readonly setAside: string | null
}

export class Catalogue {
  readonly path: string
  readonly #files: RecordFiles | null
  readonly #onRebuilt: (rebuilt: Rebuilt) => void
  #database: Database | null = null
  /** Of the file that is open: another one may have taken its place since. */
  #inode: number | null = null
  /** Records by their text, for the same few are read again and again. */
  readonly #decoded = new Map<string, SessionRecord>()
  /** Lists by what was asked for, as of one state of the file: many ask for the same one again and again. */
  readonly #lists = new Map<string, ReadonlyArray<CatalogueItem>>()
  #listed = ""

  /**
   * Opens `catalogue.db` in a directory; `null` is a catalogue in memory. One that is not there is made of the records in
   * the sessions' folders, and so is one that is found damaged, now or later; that is told to `onRebuilt`.
   */
  constructor(directory: string | null, onRebuilt: (rebuilt: Rebuilt) => void = () => {}) {
    this.#onRebuilt = onRebuilt
    if (directory === null) {
      this.path = ":memory:"
      this.#files = null
    } else {
      privateFolder(directory)
      const folder = fs.realpathSync(directory)
      this.path = nodePath.join(folder, "catalogue.db")
      this.#files = new RecordFiles(folder)
    }
    this.#use(() => {})
  }

  /** Every use of the file. One that turns out to be damaged is set aside, and the step runs again with a new one. */
  #use<A>(step: (database: Database) => A): A {
    try {
      return step(this.#opened())
    } catch (error) {
      if (this.#files === null || storageError(error, this.path).kind !== "corrupt") throw error
      this.close()
      this.#database = this.#locked(() => this.#openWhole())
      return step(this.#database)
    }
  }

  /** A file that has been put in the place of the open one, or is gone, is opened anew. */
  #opened(): Database {
    if (this.#files !== null && this.#database !== null && inodeOf(this.path) !== this.#inode) this.close()
    return this.#database ??= this.#files !== null && isEmpty(this.path)
      ? this.#locked(() => this.#openOrMake(null))
      : this.#open(null)
  }

  /** One process at a time makes a file or sets one aside, so that none does so with what another has just made. */
  #locked<A>(step: () => A): A {
    const lock = new Database(`${this.path}.lock`, { locking: true, busyMilliseconds: 10_000 })
    try {
      lock.exec("BEGIN EXCLUSIVE")
      return step()
    } finally {
      lock.close()
    }
  }

  #openWhole(): Database {
    try {
      const database = this.#openOrMake(null)
      if (isWhole(database)) return database
      database.close()
    } catch (error) {
      if (storageError(error, this.path).kind !== "corrupt") throw error
    }
    const aside = `${this.path}.damaged-${new Date().toISOString().replaceAll(":", "")}`
    for (const part of ["-wal", "-shm", ""]) {
      if (fs.existsSync(this.path + part)) fs.renameSync(this.path + part, aside + part)
    }
    return this.#openOrMake(aside)
  }

  #openOrMake(setAside: string | null): Database {
    if (isEmpty(this.path)) {
      // Of a file that somebody has removed: with another file they would be read as its damage.
      for (const part of ["-wal", "-shm"]) fs.rmSync(this.path + part, { force: true })
    }
    return this.#open(setAside)
  }

  #open(setAside: string | null): Database {
    const database = new Database(this.path, { busyMilliseconds: 5_000 })
    try {
      let rebuilt: Rebuilt | null = null
      ensureFormat(database, format, {
        create: true,
        fill: (empty) => {
          const { records, without } = this.#files?.all() ?? { records: [], without: [] }
          for (const record of records) insertRow(empty, record)
          rebuilt = { sessions: records.length, without, setAside }
        },
        migrate: (older) => this.#writeRecordFiles(older)
      })
      this.#inode = inodeOf(this.path)
      if (rebuilt !== null) this.#onRebuilt(rebuilt)
      return database
    } catch (error) {
      database.close()
      throw error
    }
  }

  /** Version 1 kept the records in the catalogue alone. */
  #writeRecordFiles(database: Database): void {
    database.transaction(() => {
      for (const row of database.all(`SELECT ${columns} FROM sessions`)) {
        const { record } = this.#decode(row)
        if (!(record instanceof StorageError)) this.#files?.change(null, record, { sync: false })
      }
      database.exec(`PRAGMA user_version = ${format.version}`)
    })
  }

  #decode(row: Record<string, unknown>): CatalogueItem {
    const id = String(row.id)
    const position = Number(row.position)
    try {
      const text = String(row.record)
      const record = this.#decoded.get(text) ?? decodeRecord(text)
      if (this.#decoded.size >= maxDecoded) this.#decoded.clear()
      this.#decoded.set(text, record)
      return { id, position, record }
    } catch {
      const record = this.#files?.read(id) ?? null
      if (record !== null) return { id, position, record }
      const message =
        `${this.path}: the record of session ${id} cannot be read back; remove that session, or restore the file from a backup`
      return { id, position, record: new StorageError({ kind: "corrupt", message, path: this.path }) }
    }
  }

  /** A session's row; one that only the session's folder knows is put in. */
  #row(database: Database, id: string): Record<string, unknown> | undefined {
    const find = () => database.get(`SELECT ${columns} FROM sessions WHERE id = ?`, id)
    const row = find()
    if (row !== undefined) return row
    const record = this.#files?.read(id) ?? null
    if (record === null) return undefined
    insertRow(database, record)
    return find()
  }

  get(id: string): SessionRecord | null {
    const row = this.#use((database) => this.#row(database, id))
    return row === undefined ? null : readable(this.#decode(row).record)
  }

  /** Puts new records in, all in one transaction; false for each whose id is taken. */
  insert(records: ReadonlyArray<SessionRecord>): ReadonlyArray<boolean> {
    return this.#use((database) =>
      database.transaction(() =>
        records.map((record) => {
          // Also by a session that only its folder knows.
          const isKept = this.#files !== null && this.#files.read(record.id) !== null
          return isKept && this.#row(database, record.id) !== undefined ? false : insertRow(database, record)
        })
      )
    )
  }

  /** Puts a session's record into its folder, if that has been made and does not hold it yet. */
  keep(id: string): void {
    const files = this.#files
    files?.sweep(id)
    if (files === null || files.has(id)) return
    this.#use((database) =>
      database.transaction(() => {
        const row = this.#row(database, id)
        const record = row === undefined ? null : this.#decode(row).record
        // Not waiting for the disk: what a loss of power takes is the second copy of what holds nothing yet.
        if (record !== null && !(record instanceof StorageError)) files.change(null, record, { sync: false })
      })
    )
  }

  /** Changes a record by what is in the file now, whoever wrote it. `null` when there is none. */
  update(
    id: string,
    options: { readonly active: boolean },
    change: (record: SessionRecord) => SessionRecord
  ): SessionRecord | null {
    const changed = this.#use((database) =>
      database.transaction(() => {
        const row = this.#row(database, id)
        if (row === undefined) return null
        const { position, record: before } = this.#decode(row)
        if (before instanceof StorageError) return before
        const after = change(before)
        database.run(
          "UPDATE sessions SET position = ?, parent = ?, archived = ?, search = ?, record = ? WHERE id = ?",
          options.active ? nextPosition(database) : position,
          after.parentID,
          after.archived ? 1 : 0,
          search(after.title),
          JSON.stringify(after),
          id
        )
        this.#files?.change(before, after, { sync: true })
        return after
      })
    )
    return changed === null ? null : readable(changed)
  }

  /** Also of a session whose record is damaged. */
  has(id: string): boolean {
    return this.#use((database) => this.#row(database, id)) !== undefined
  }

  delete(id: string): boolean {
    return this.#use((database) => database.run("DELETE FROM sessions WHERE id = ?", id)) > 0
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
    const query = `SELECT ${columns} FROM sessions ${condition} ORDER BY position DESC LIMIT ?`
    const asked = JSON.stringify([query, values, filter.limit])
    return this.#use((database) => {
      const state = `${this.#inode} ${stateOf(database)}`
      if (state !== this.#listed || this.#lists.size >= maxLists) {
        this.#lists.clear()
        this.#listed = state
      }
      const known = this.#lists.get(asked)
      if (known !== undefined) return known
      const items = database.all(query, ...values, filter.limit).map((row) => this.#decode(row))
      this.#lists.set(asked, items)
      return items
    })
  }

  close(): void {
    const database = this.#database
    this.#database = null
    try {
      database?.close()
    } catch {
      // A damaged file may not close in order; nothing more is wanted of it.
    }
  }
}
