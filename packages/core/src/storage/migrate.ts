/**
 * Brings a session of an older format up to date, when it is opened for writing: first a backup beside it, then all steps
 * at once or none.
 *
 * A value that cannot be read, or that a step cannot take over, is set aside and counted; it is never guessed. The backup
 * stays until somebody removes it, and is a session that the older Bezel opens.
 */
import * as fs from "node:fs"
import type { JsonValue } from "../json/index.ts"
import type { Database, Format, Migration, StoredSort } from "./database.ts"
import { StorageError } from "./storage.ts"

/** What a migration did. */
export interface MigrationReport {
  readonly path: string
  readonly from: number
  readonly to: number
  readonly backup: string
  /** How many stored values were set aside. */
  readonly setAside: number
}

export const migrationMessage = ({ backup, from, path, setAside, to }: MigrationReport): string =>
  `${path}: brought from format ${from} to ${to}; as it was, it is kept in ${backup}${
    setAside === 0 ? "" : `; ${setAside} damaged ${setAside === 1 ? "record was" : "records were"} set aside`
  }`

/** The steps from a version to today's; one that is missing means that the version is too old. */
export const stepsFrom = (
  path: string,
  version: number,
  target: number,
  migrations: ReadonlyArray<Migration>
): ReadonlyArray<Migration> => {
  const steps: Array<Migration> = []
  for (let from = version; from < target; from++) {
    const step = migrations.find((migration) => migration.from === from)
    if (step === undefined) {
      throw new StorageError({
        kind: "older_version",
        message:
          `${path}: this file has format ${version}, which this Bezel cannot bring to format ${target} any more; open it once with a Bezel in between`,
        path
      })
    }
    steps.push(step)
  }
  return steps
}

/** A stored text through all steps; throws when it cannot be taken over. */
export const migrated = (steps: ReadonlyArray<Migration>, sort: StoredSort, value: JsonValue): JsonValue => {
  let result = value
  for (const step of steps) result = step.value?.(sort, result) ?? result
  return result
}

/** A name beside a file or folder that is not taken. */
export const freeName = (wanted: string): string => {
  let name = wanted
  for (let number = 2; fs.existsSync(name); number++) name = `${wanted}-${number}`
  return name
}

interface StoredColumn {
  readonly table: string
  readonly column: string
  readonly sort: StoredSort
}

const columns: ReadonlyArray<StoredColumn> = [
  { table: "conversations", column: "record", sort: "conversation" },
  { table: "entries", column: "record", sort: "entry" },
  { table: "tasks", column: "record", sort: "task" },
  { table: "inputs", column: "record", sort: "input" },
  { table: "commits", column: "events", sort: "events" }
]

/** Keeps what is taken out of its table, so that a person can still look at it. */
export const setAsideTable = `
  CREATE TABLE IF NOT EXISTS set_aside (
    source TEXT NOT NULL, id INTEGER NOT NULL, value, why TEXT NOT NULL
  )`

const parse = (text: unknown): JsonValue => JSON.parse(String(text))

const reason = (error: unknown): string => error instanceof Error ? error.message : String(error)

class SqliteMigration {
  readonly database: Database
  readonly steps: ReadonlyArray<Migration>
  setAside = 0

  constructor(database: Database, steps: ReadonlyArray<Migration>) {
    this.database = database
    this.steps = steps
  }

  put(table: string, id: number, value: unknown, why: string): void {
    this.database.exec(setAsideTable)
    this.database.run("INSERT INTO set_aside VALUES (?, ?, ?, ?)", table, id, String(value), why)
    this.database.run(`DELETE FROM ${table} WHERE rowid = ?`, id)
    this.setAside++
  }

  column({ column, sort, table }: StoredColumn): void {
    for (const { id } of this.database.all(`SELECT rowid AS id FROM ${table} ORDER BY rowid`)) {
      const rowid = Number(id)
      const value = this.database.get(`SELECT ${column} AS value FROM ${table} WHERE rowid = ?`, rowid)?.value
      try {
        const text = JSON.stringify(migrated(this.steps, sort, parse(value)))
        if (text !== value) this.database.run(`UPDATE ${table} SET ${column} = ? WHERE rowid = ?`, text, rowid)
      } catch (error) {
        this.put(table, rowid, value, reason(error))
      }
    }
  }

  /** A change that cannot be taken over takes those that build on it along, up to the next base. */
  documents(): void {
    const broken = new Set<string>()
    const rows = this.database.all(
      "SELECT rowid AS id, document, base FROM document_states ORDER BY document, sequence"
    )
    for (const { base, document, id } of rows) {
      const rowid = Number(id)
      const name = String(document)
      const value = this.database.get("SELECT value FROM document_states WHERE rowid = ?", rowid)?.value
      if (base === 1) broken.delete(name)
      if (broken.has(name)) {
        this.put("document_states", rowid, value, "it builds on a change that was set aside")
        continue
      }
      try {
        const text = JSON.stringify(migrated(this.steps, base === 1 ? "base" : "operations", parse(value)))
        if (text !== value) this.database.run("UPDATE document_states SET value = ? WHERE rowid = ?", text, rowid)
      } catch (error) {
        broken.add(name)
        this.put("document_states", rowid, value, reason(error))
      }
    }
  }
}

const backUp = (database: Database, version: number): string => {
  const backup = freeName(`${database.path}.v${version}`)
  // Made first, so that it is private from the start.
  fs.closeSync(fs.openSync(backup, "wx", 0o600))
  try {
    database.run("VACUUM INTO ?", backup)
  } catch (error) {
    fs.rmSync(backup, { force: true })
    throw error
  }
  return backup
}

/** Brings a session's SQLite file up to date. */
export const migrateSqlite = (database: Database, format: Format, version: number): MigrationReport => {
  const steps = stepsFrom(database.path, version, format.version, format.migrations ?? [])
  const backup = backUp(database, version)
  try {
    return database.transaction(() => {
      for (const step of steps) if (step.schema !== undefined) database.exec(step.schema)
      const migration = new SqliteMigration(database, steps)
      for (const column of columns) migration.column(column)
      migration.documents()
      database.exec(`PRAGMA user_version = ${format.version}`)
      return { path: database.path, from: version, to: format.version, backup, setAside: migration.setAside }
    })
  } catch (error) {
    // Nothing has changed, so the backup is one of nothing.
    fs.rmSync(backup, { force: true })
    throw error
  }
}
