/**
 * One SQLite file through `node:sqlite`: opened with this program's settings, private to its user, its faults typed.
 *
 * Everything is synchronous, because SQLite is; callers wrap calls in `attempt`. Files are 0600 (their `-wal` and `-shm`
 * inherit it). A file is never opened through `fs` here once it exists: closing a descriptor of a database would drop the
 * locks that this process holds on it.
 */
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import type * as NodeSqlite from "node:sqlite"
import type { DatabaseSync, SQLInputValue, StatementSync } from "node:sqlite"
import type { JsonValue } from "../json/index.ts"
import { StorageError } from "./storage.ts"

/** `process`: what was acknowledged survives the death of the process. `power`: also the machine's. */
export type Durability = "process" | "power"

type Sqlite = typeof NodeSqlite

let loaded: Sqlite | undefined

/** Loads `node:sqlite` when first needed, without the notice on stderr that older releases of Node print. */
const sqlite = (): Sqlite => {
  if (loaded !== undefined) return loaded
  const emitWarning = process.emitWarning
  process.emitWarning = () => {}
  try {
    return loaded = process.getBuiltinModule("node:sqlite")
  } finally {
    process.emitWarning = emitWarning
  }
}

const isErrno = (error: unknown): error is NodeJS.ErrnoException => error instanceof Error && "code" in error

const sqliteCode = (error: unknown): number | undefined => {
  if (!isErrno(error) || error.code !== "ERR_SQLITE_ERROR" || !("errcode" in error)) return undefined
  return typeof error.errcode === "number" ? error.errcode & 0xff : undefined
}

/** Whether the fault is that another connection holds the lock. */
export const isBusy = (error: unknown): boolean => sqliteCode(error) === 5

/** Whether the fault is that a row with this key is there already. */
export const isTaken = (error: unknown): boolean => sqliteCode(error) === 19

type Kind = StorageError["kind"]

const kindOf = (error: unknown): Kind => {
  switch (sqliteCode(error)) {
    case 3:
      return "permission"
    case 8:
      return "read_only"
    case 11:
    case 26:
      return "corrupt"
    case 13:
      return "disk_full"
    case undefined:
      break
    default:
      return "io"
  }
  switch (isErrno(error) ? error.code : undefined) {
    case "ENOENT":
    case "ENOTDIR":
      return "not_found"
    case "EACCES":
    case "EPERM":
      return "permission"
    case "EROFS":
      return "read_only"
    case "ENOSPC":
    case "EDQUOT":
      return "disk_full"
    default:
      return "io"
  }
}

const advice: { readonly [kind in Kind]: string } = {
  not_found: "",
  corrupt: "; the file is damaged: restore it from a backup, or set it aside",
  newer_version: "; upgrade Bezel to read it",
  older_version: "; go on with the session once to bring it up to date",
  disk_full: "; make room on the disk, then try again",
  read_only: "; make the file and its folder writable",
  permission: "; check who owns the file and its folder",
  io: ""
}

/** A fault of `path` as a `StorageError`; one that is typed already stays as it is. */
export const storageError = (error: unknown, path: string): StorageError => {
  if (error instanceof StorageError) return error
  const kind = kindOf(error)
  const why = error instanceof Error ? error.message : String(error)
  return new StorageError({ kind, message: `${path}: ${why}${advice[kind]}`, path })
}

/** Runs a synchronous step on `path`; what it throws is a `StorageError`. */
export const attempt = <A>(path: string, evaluate: () => A): Effect.Effect<A, StorageError> =>
  Effect.suspend(() => {
    try {
      return Effect.succeed(evaluate())
    } catch (error) {
      return Effect.fail(storageError(error, path))
    }
  })

/** Whether the file was not there. */
const createPrivateFile = (path: string): boolean => {
  try {
    fs.closeSync(fs.openSync(path, "wx", 0o600))
    return true
  } catch (error) {
    if (!isErrno(error) || error.code !== "EEXIST") throw error
    return false
  }
}

/** Says that a folder or file is missing or forbidden in the words of the system, where SQLite only says "unable to open". */
const explain = (path: string): void => {
  fs.accessSync(path, fs.constants.R_OK)
}

export interface DatabaseOptions {
  readonly readOnly?: boolean
  readonly durability?: Durability
  /** How long to wait for another process's short transaction. Default 0. */
  readonly busyMilliseconds?: number
  /** Used as a lock alone: no journal beside it, no write-ahead log. */
  readonly locking?: boolean
  /** Upper bound of the file in KiB. */
  readonly maxKiB?: number
}

/**
 * Bytes of a page in a new file. A commit writes each page that it touches whole, and most touch three or more with some
 * hundred bytes for each: half of SQLite's own 4,096 makes them a fifth quicker. A file that is there keeps its size.
 */
const pageSize = 2_048
/** Pages of the log after which it is put into the file: the 4 MiB that are usual, for each time waits for the disk. */
const logPages = 2_000

type Row = Record<string, unknown>

/** An open database with a cache of its statements. */
export class Database {
  readonly path: string
  readonly #database: DatabaseSync
  readonly #statements = new Map<string, StatementSync>()

  constructor(path: string, options: DatabaseOptions = {}) {
    this.path = path
    const readOnly = options.readOnly === true
    const isNew = !readOnly && path !== ":memory:" && createPrivateFile(path)
    try {
      this.#database = new (sqlite().DatabaseSync)(path, { readOnly, timeout: options.busyMilliseconds ?? 0 })
    } catch (error) {
      explain(path)
      throw error
    }
    try {
      if (options.locking === true) this.#database.exec("PRAGMA journal_mode = MEMORY")
      else if (!readOnly) {
        const power = options.durability === "power"
        // A new file holds nothing yet: what need not survive the machine is not waited for.
        if (isNew && !power) this.#database.exec("PRAGMA synchronous = OFF")
        this.#database.exec(`PRAGMA page_size = ${pageSize}; PRAGMA journal_mode = WAL`)
        this.#database.exec(`PRAGMA synchronous = ${power ? "FULL" : "NORMAL"}`)
        this.#database.exec(`PRAGMA wal_autocheckpoint = ${logPages}`)
      }
      if (options.maxKiB !== undefined) {
        const pages = Math.trunc(options.maxKiB * 1024 / Number(this.get("PRAGMA page_size")?.page_size))
        this.#database.exec(`PRAGMA max_page_count = ${pages}`)
      }
    } catch (error) {
      this.#database.close()
      throw error
    }
  }

  #statement(sql: string): StatementSync {
    let statement = this.#statements.get(sql)
    if (statement === undefined) {
      statement = this.#database.prepare(sql)
      this.#statements.set(sql, statement)
    }
    return statement
  }

  exec(sql: string): void {
    this.#database.exec(sql)
  }

  run(sql: string, ...values: Array<SQLInputValue>): number {
    return Number(this.#statement(sql).run(...values).changes)
  }

  get(sql: string, ...values: Array<SQLInputValue>): Row | undefined {
    return this.#statement(sql).get(...values)
  }

  all(sql: string, ...values: Array<SQLInputValue>): Array<Row> {
    return this.#statement(sql).all(...values)
  }

  /** Runs all of `evaluate` or nothing of it. */
  transaction<A>(evaluate: () => A): A {
    this.run("BEGIN IMMEDIATE")
    return this.#finish(evaluate)
  }

  /** Several reads of one state. */
  snapshot<A>(evaluate: () => A): A {
    this.run("BEGIN")
    return this.#finish(evaluate)
  }

  #finish<A>(evaluate: () => A): A {
    try {
      const result = evaluate()
      this.run("COMMIT")
      return result
    } catch (error) {
      // SQLite may have rolled back already, as it does when the disk is full.
      if (this.#database.isOpen && this.#database.isTransaction) this.#database.exec("ROLLBACK")
      throw error
    }
  }

  close(): void {
    this.#statements.clear()
    if (this.#database.isOpen) this.#database.close()
  }
}

/** What is stored as JSON: `base` and `operations` are of documents, `events` of commits. */
export type StoredSort = "conversation" | "entry" | "task" | "input" | "base" | "operations" | "events"

/** How one version of a format becomes the next. */
export interface Migration {
  readonly from: number
  /** Statements that change the tables, for a format that has tables. */
  readonly schema?: string
  /** What is stored as the next version has it. What it throws for is set aside. */
  readonly value?: (sort: StoredSort, value: JsonValue) => JsonValue
}

export interface Format {
  /** Marks the file as one of ours, in its header. */
  readonly applicationID: number
  /** Written by this program; older ones are migrated, newer ones refused. */
  readonly version: number
  readonly schema: string
  /** From each earlier version that can still be read to the next. */
  readonly migrations?: ReadonlyArray<Migration>
}

const pragma = (database: Database, name: "user_version" | "application_id"): number =>
  Number(database.get(`PRAGMA ${name}`)?.[name])

export interface FormatOptions {
  /** Makes the tables in an empty file. */
  readonly create: boolean
  /** Fills the new tables, in the transaction that makes them. */
  readonly fill?: (database: Database) => void
  /** Brings a file of an older version up to date. */
  readonly migrate?: (database: Database, format: Format, version: number) => void
}

/**
 * Makes sure that a file has this format: creates it in an empty file, has an older one migrated, refuses a newer one by
 * name, and refuses a file of another program.
 */
export const ensureFormat = (database: Database, format: Format, options: FormatOptions): void => {
  const refuse = (kind: Kind, message: string): never => {
    throw new StorageError({ kind, message: `${database.path}: ${message}${advice[kind]}`, path: database.path })
  }
  const check = (): boolean => {
    const version = pragma(database, "user_version")
    const application = pragma(database, "application_id")
    if (application === format.applicationID) {
      if (version > format.version) {
        refuse("newer_version", `this file has format ${version}, and this Bezel reads up to ${format.version}`)
      }
      if (version < format.version) {
        if (options.migrate === undefined) {
          refuse("older_version", `this file has format ${version}, and this Bezel reads ${format.version}`)
        }
        options.migrate?.(database, format, version)
      }
      return true
    }
    if (application !== 0 || database.get("SELECT 1 FROM sqlite_schema LIMIT 1") !== undefined) {
      refuse("corrupt", "this file is not Bezel's")
    }
    return false
  }
  if (check()) return
  if (!options.create) refuse("not_found", "nothing has been stored here yet")
  database.transaction(() => {
    // Another process may have been faster.
    if (check()) return
    database.exec(format.schema)
    options.fill?.(database)
    database.exec(`PRAGMA application_id = ${format.applicationID}; PRAGMA user_version = ${format.version}`)
  })
}
