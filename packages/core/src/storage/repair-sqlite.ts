/**
 * What is wrong in a session's SQLite file, and copying what is whole of it into a new one.
 *
 * Rows are read from both ends of each table, so that a damaged page costs what is on it and not what lies behind it. A
 * record that is no JSON any more is set aside with its row. Changes of a document that build on one that is gone go with it.
 */
import * as fs from "node:fs"
import type { JsonValue, Operation } from "../json/index.ts"
import { Database, ensureFormat, storageError } from "./database.ts"
import { freeName, setAsideTable } from "./migrate.ts"
import { replay } from "./records.ts"
import type { Findings } from "./repair.ts"
import { sqliteFormat } from "./sqlite-format.ts"
import { SessionWriter } from "./sqlite.ts"
import { StorageError } from "./storage.ts"
import type { Batch, ConversationRecord, InputRecord, TaskRecord } from "./storage.ts"

type Row = Record<string, unknown>

interface Table {
  readonly name: string
  /** The column with JSON. */
  readonly json: string | null
  readonly what: string
}

const tables: ReadonlyArray<Table> = [
  { name: "commits", json: "events", what: "the events of commit" },
  { name: "conversations", json: "record", what: "conversation" },
  { name: "entries", json: "record", what: "entry" },
  { name: "tasks", json: "record", what: "task" },
  { name: "inputs", json: "record", what: "input" },
  { name: "documents", json: null, what: "document" },
  // Whether a change can be used depends on those before it: see `documents`.
  { name: "document_states", json: null, what: "a change of document" }
]

interface SetAside {
  readonly table: string
  readonly id: number
  readonly value: string
  readonly why: string
}

const parses = (text: unknown): boolean => {
  try {
    JSON.parse(String(text))
    return typeof text === "string"
  } catch {
    return false
  }
}

const text = (value: unknown): string => typeof value === "string" ? value : String(value)

const nameOf = (key: unknown): string => {
  try {
    return String(JSON.parse(String(key)))
  } catch {
    return String(key)
  }
}

/** All that could be read of a file. */
class Salvage {
  readonly database: Database
  readonly faults: Array<string> = []
  readonly aside: Array<SetAside> = []
  readonly rows = new Map<string, ReadonlyArray<Row>>()
  /** Whether rows may be gone that nobody can count. */
  lost = false
  /** Position in the rows of documents behind which some are gone. */
  #cut = -1

  constructor(database: Database) {
    this.database = database
  }

  #fault(message: string): void {
    this.faults.push(`${this.database.path}: ${message}`)
  }

  #check(): void {
    try {
      const found = this.database.all("PRAGMA quick_check(5)").map((row) => text(Object.values(row)[0]))
      if (found.length === 1 && found[0] === "ok") return
      this.#fault(`SQLite says: ${found.join("; ").slice(0, 300)}`)
    } catch (error) {
      this.#fault(error instanceof Error ? error.message : String(error))
    }
  }

  /** Rows from one end of a table until one cannot be read. */
  #walk(
    table: Table,
    order: "ASC" | "DESC",
    until: number | null
  ): { readonly rows: Array<Row>; readonly whole: boolean } {
    const rows: Array<Row> = []
    const compare = order === "ASC" ? ">" : "<"
    let last: number | null = null
    try {
      for (;;) {
        const bound = last === null ? "" : `WHERE rowid ${compare} ${last}`
        const page = this.database.all(
          `SELECT rowid AS rowid_, * FROM ${table.name} NOT INDEXED ${bound} ORDER BY rowid ${order} LIMIT ${pageRows}`
        )
        for (const row of page) {
          const id = Number(row.rowid_)
          if (until !== null && id <= until) return { rows, whole: true }
          rows.push(row)
          last = id
        }
        if (page.length < pageRows) return { rows, whole: true }
      }
    } catch {
      return { rows, whole: false }
    }
  }

  #table(table: Table): void {
    const forward = this.#walk(table, "ASC", null)
    const rows = forward.rows
    if (!forward.whole) {
      this.lost = true
      if (table.name === "document_states") this.#cut = rows.length
      const backward = this.#walk(table, "DESC", rows.length === 0 ? null : Number(rows.at(-1)?.rowid_))
      rows.push(...backward.rows.toReversed())
      this.#fault(`table ${table.name} is damaged; ${rows.length} of its rows can be read`)
    }
    this.rows.set(
      table.name,
      rows.filter((row) => {
        if (table.json === null || parses(row[table.json])) return true
        const id = Number(row.rowid_)
        this.#fault(`${table.what} ${text(table.name === "commits" ? row.sequence : row.id)} cannot be read back`)
        this.aside.push({ table: table.name, id, value: text(row[table.json]), why: "it is no JSON" })
        return false
      })
    )
  }

  /** Values of documents; takes out changes that no longer have what they build on. */
  documents(): Findings["documents"] {
    const values = new Map<string, { readonly value: JsonValue; readonly upTo: number }>()
    const broken = new Set<string>()
    const kept: Array<Row> = []
    const rows = this.rows.get("document_states") ?? []
    for (const [position, row] of rows.entries()) {
      // Behind rows that cannot be read, any document may lack a change.
      if (position === this.#cut) { for (const document of values.keys()) broken.add(document) }
      const document = text(row.document)
      const isBase = row.base === 1
      const known = values.get(document)
      try {
        const value = JSON.parse(text(row.value))
        if (!isBase && (known === undefined || broken.has(document))) {
          throw new Error("it builds on a change that is gone")
        }
        const next = isBase
          ? value
          : replay(known?.value ?? null, value as ReadonlyArray<Operation>, this.database.path, document)
        if (isBase) broken.delete(document)
        values.set(document, { value: next, upTo: Number(row.sequence) })
        kept.push(row)
      } catch (error) {
        const why = error instanceof Error ? error.message : String(error)
        if (!broken.has(document)) this.#fault(`a change of document "${nameOf(document)}" cannot be read back`)
        broken.add(document)
        this.aside.push({ table: "document_states", id: Number(row.rowid_), value: text(row.value), why })
      }
    }
    if (this.#cut === rows.length) { for (const document of values.keys()) broken.add(document) }
    this.rows.set("document_states", kept)
    return [...values].map(([document, { upTo, value }]) => ({
      document: nameOf(document),
      value,
      upTo: broken.has(document) ? upTo : null
    }))
  }

  read(): void {
    this.#check()
    for (const table of tables) this.#table(table)
  }
}

const pageRows = 500

const parsed = <A>(rows: ReadonlyArray<Row> | undefined): ReadonlyArray<A> =>
  (rows ?? []).map((row) => JSON.parse(text(row.record)) as A)

const numberIn = (id: unknown): number => Number(/^[a-z](\d{1,15})$/.exec(text(id))?.[1] ?? 0)

const stateOf = (salvage: Salvage): { readonly sequence: number; readonly nextID: number } => {
  let sequence = 0
  let nextID = 1
  try {
    const row = salvage.database.get("SELECT sequence, next_id FROM state")
    sequence = Number(row?.sequence ?? 0)
    nextID = Number(row?.next_id ?? 1)
  } catch {
    salvage.lost = true
  }
  for (const table of tables) {
    for (const row of salvage.rows.get(table.name) ?? []) {
      sequence = Math.max(sequence, Number(row.sequence ?? 0))
      nextID = Math.max(nextID, Number(row.next_id ?? 1), Number(row.ordinal ?? 0) + 1, numberIn(row.id) + 1)
    }
  }
  return { sequence, nextID }
}

const unreadable = (fault: string): Findings => ({
  faults: [fault],
  unreadable: true,
  losses: [],
  setAside: 0,
  sequence: 0,
  nextID: 1,
  entries: 0,
  conversations: [],
  tasks: [],
  inputs: [],
  documents: []
})

const findingsOf = (salvage: Salvage): Findings => {
  salvage.read()
  const documents = salvage.documents()
  const { nextID, sequence } = stateOf(salvage)
  return {
    faults: salvage.faults,
    unreadable: false,
    losses: salvage.lost ? [{ file: salvage.database.path, line: 0, lastLine: 0, first: 1, last: 0 }] : [],
    setAside: salvage.aside.length,
    sequence,
    nextID,
    entries: salvage.rows.get("entries")?.length ?? 0,
    conversations: parsed<ConversationRecord>(salvage.rows.get("conversations")),
    tasks: parsed<TaskRecord>(salvage.rows.get("tasks")?.filter((row) => row.live === 1)),
    inputs: parsed<InputRecord>(salvage.rows.get("inputs")?.filter((row) => row.live === 1)),
    documents
  }
}

/** Reads every row; changes nothing. */
export const inspectSqlite = (path: string): Findings => {
  let database: Database | undefined
  try {
    database = new Database(path, { readOnly: true, busyMilliseconds: 1_000 })
    ensureFormat(database, sqliteFormat, { create: false, migrate: () => {} })
    return database.snapshot(() => findingsOf(new Salvage(database as Database)))
  } catch (error) {
    const fault = storageError(error, path)
    if (fault.kind === "corrupt") return unreadable(fault.message)
    // A file that was made and never written to.
    if (fault.kind === "not_found" && fs.existsSync(path)) return { ...unreadable(""), faults: [], unreadable: false }
    throw fault
  } finally {
    database?.close()
  }
}

const fill = (target: Database, salvage: Salvage, findings: Findings): void => {
  target.transaction(() => {
    for (const { name } of tables) {
      const columns = target.all(`PRAGMA table_info(${name})`).map((row) => text(row.name))
      const sql = `INSERT OR IGNORE INTO ${name} (${columns.join(", ")}) VALUES (${columns.map(() => "?").join(", ")})`
      for (const row of salvage.rows.get(name) ?? []) {
        target.run(
          sql,
          ...columns.map((column) => {
            const value = row[column]
            if (typeof value === "number" || typeof value === "string") return value
            return column in row ? null : 0
          })
        )
      }
    }
    // A document that lost its own row is found by its states.
    target.exec(`
      INSERT OR IGNORE INTO documents SELECT document, min(sequence), 1, 0, 0 FROM document_states GROUP BY document;
      DELETE FROM documents WHERE document NOT IN (SELECT document FROM document_states)`)
    target.run("UPDATE state SET sequence = ?, next_id = ?", findings.sequence, findings.nextID)
    if (salvage.aside.length > 0) target.exec(setAsideTable)
    for (const { id, table, value, why } of salvage.aside) {
      target.run("INSERT INTO set_aside VALUES (?, ?, ?, ?)", table, id, value, why)
    }
  })
}

const beside = ["", "-wal", "-shm"]

/** Writes the file anew beside the damaged one, ends it with a closing commit, and puts it in its place. */
export const rewriteSqlite = (path: string, findings: Findings, closing: Batch | null, stamp: string): string => {
  const kept = freeName(`${path}.damaged-${stamp}`)
  const next = `${path}.new`
  // Copied while nothing here has it open: closing any descriptor of a database would drop its locks.
  for (const suffix of beside) {
    fs.rmSync(`${next}${suffix}`, { force: true })
    if (!fs.existsSync(`${path}${suffix}`)) continue
    fs.copyFileSync(`${path}${suffix}`, `${kept}${suffix}`)
    fs.chmodSync(`${kept}${suffix}`, 0o600)
  }
  const source = new Database(path, { readOnly: true, busyMilliseconds: 1_000 })
  const target = new Database(next, { durability: "power" })
  try {
    ensureFormat(target, sqliteFormat, { create: true })
    const salvage = new Salvage(source)
    const found = findingsOf(salvage)
    if (found.sequence < findings.sequence) {
      throw new StorageError({
        kind: "io",
        message: `${path}: the file changed while it was repaired; try again`,
        path
      })
    }
    fill(target, salvage, findings)
    if (closing !== null) new SessionWriter(target).commit(closing)
    target.exec("PRAGMA wal_checkpoint(TRUNCATE)")
  } finally {
    source.close()
    target.close()
  }
  // The log of the damaged file must not be taken for that of the new one.
  for (const suffix of ["-wal", "-shm"]) {
    fs.rmSync(`${path}${suffix}`, { force: true })
    fs.rmSync(`${next}${suffix}`, { force: true })
  }
  fs.renameSync(next, path)
  return kept
}
