/**
 * Brings a journal of JSON lines from an older format up to date: written whole beside the old one, then put in its place
 * by two renames. Whatever ends the process in between, the next opening finds the old journal or the new one.
 */
import * as fs from "node:fs"
import * as nodePath from "node:path"
import { type JsonValue, stored } from "../json/index.ts"
import { privateFolder } from "../location/index.ts"
import type { Migration, StoredSort } from "./database.ts"
import {
  damagedError,
  groupText,
  header,
  jsonlVersion,
  newerVersion,
  parseHeader,
  scanSegment,
  ScanState
} from "./jsonl-format.ts"
import type { DocumentLine, Group, RecordLine } from "./jsonl-format.ts"
import { Segments } from "./jsonl-segments.ts"
import { freeName, migrated, stepsFrom } from "./migrate.ts"
import type { MigrationReport } from "./migrate.ts"

/** The version of a journal that is written, and how earlier ones become it. */
export interface JsonlFormat {
  readonly version: number
  readonly migrations: ReadonlyArray<Migration>
}

export const jsonlFormat: JsonlFormat = { version: jsonlVersion, migrations: [] }

/** A folder that is written to take the place of another. */
export const successorOf = (folder: string): string => `${folder}.new`

const predecessor = (folder: string): string => `${folder}.old`

/** Puts a folder that is complete in the place of another, which is kept under `kept`. */
export const replaceFolder = (folder: string, kept: string): void => {
  // The first rename says that the successor is complete: `settleFolder` goes on from here.
  fs.renameSync(folder, predecessor(folder))
  fs.renameSync(successorOf(folder), folder)
  fs.renameSync(predecessor(folder), kept)
}

/** Ends a replacement that a crash interrupted, and removes what was not complete. */
export const settleFolder = (folder: string): void => {
  const successor = successorOf(folder)
  const old = predecessor(folder)
  if (fs.existsSync(old)) {
    if (!fs.existsSync(folder)) fs.renameSync(successor, folder)
    fs.renameSync(old, freeName(`${folder}.replaced`))
  }
  fs.rmSync(successor, { recursive: true, force: true })
}

/** Whether there is a journal, also one whose replacement was interrupted. */
export const journalExists = (folder: string): boolean => fs.existsSync(folder) || fs.existsSync(predecessor(folder))

/** The version of the journal in a folder; `null` when it has no segment, or none whose first line can be read. */
export const versionOf = (segments: Segments): number | null => {
  for (const segment of segments.list()) {
    const found = parseHeader(segments.read(segment, 0, 4_096))
    if (found !== null) return found.version
  }
  return null
}

/** Writes a file that is on the disk when this returns. */
export const writeDurably = (path: string, content: string | Uint8Array): void => {
  fs.writeFileSync(path, content, { mode: 0o600, flag: "wx", flush: true })
}

const sortOf = (record: RecordLine): StoredSort | null =>
  "conversation" in record
    ? "conversation"
    : "entry" in record
    ? "entry"
    : "task" in record
    ? "task"
    : "input" in record
    ? "input"
    : null

class JsonlMigration {
  readonly steps: ReadonlyArray<Migration>
  readonly aside: Array<string> = []
  /** Documents whose changes cannot be taken over before their next base. */
  readonly #broken = new Set<string>()

  constructor(steps: ReadonlyArray<Migration>) {
    this.steps = steps
  }

  #put(sequence: number, record: JsonValue | RecordLine, why: string): void {
    this.aside.push(`${JSON.stringify({ commit: sequence, why, record })}\n`)
  }

  #document(line: DocumentLine): DocumentLine {
    if (line.base !== undefined) {
      const base = migrated(this.steps, "base", line.base)
      this.#broken.delete(line.document)
      return { document: line.document, retained: line.retained, base }
    }
    if (this.#broken.has(line.document)) throw new Error("it builds on a change that was set aside")
    const operations = migrated(this.steps, "operations", line.operations ?? [])
    return { document: line.document, retained: line.retained, operations }
  }

  #record(record: RecordLine): RecordLine {
    if ("document" in record) return this.#document(record)
    const sort = sortOf(record)
    if (sort === null) return record
    const value = stored<{ readonly [sort: string]: JsonValue }>(record)[sort] ?? null
    return stored<RecordLine>({ [sort]: migrated(this.steps, sort, value) })
  }

  group(group: Group): string {
    const records: Array<RecordLine> = []
    for (const { record } of group.records) {
      try {
        records.push(this.#record(record))
      } catch (error) {
        if ("document" in record) this.#broken.add(record.document)
        this.#put(group.sequence, record, error instanceof Error ? error.message : String(error))
      }
    }
    let { events } = group
    try {
      const value = migrated(this.steps, "events", events)
      events = Array.isArray(value) ? value : []
    } catch (error) {
      events = []
      this.#put(group.sequence, group.events, error instanceof Error ? error.message : String(error))
    }
    return groupText({ ...group, records, events })
  }
}

/** Brings a journal up to date if it is older; refuses a newer one, and one that is damaged. `null`: nothing was to do. */
export const migrateJsonl = (folder: string, format: JsonlFormat): MigrationReport | null => {
  const segments = new Segments(folder)
  try {
    const version = versionOf(segments)
    if (version === null || version === format.version) return null
    if (version > format.version) throw newerVersion(folder, version, format.version)
    const migration = new JsonlMigration(stepsFrom(folder, version, format.version, format.migrations))
    const successor = successorOf(folder)
    fs.rmSync(successor, { recursive: true, force: true })
    privateFolder(successor)
    const state = new ScanState(0)
    for (const segment of segments.list()) {
      const bytes = fs.readFileSync(segments.path(segment))
      const first = parseHeader(bytes)
      let text = header(segment, state.sequence, format.version)
      const offset = first === null ? 0 : bytes.indexOf(10) + 1
      if (first !== null) state.expect(first.after, segment, 1)
      const from = { offset, line: first === null ? 1 : 2 }
      const scanned = scanSegment(bytes.subarray(offset), segment, from, state, (group) => {
        text += migration.group(group)
      })
      // A confirmation that does not hold is no unfinished end.
      if (scanned.confirmedTail) state.expect(state.sequence + 1, segment, scanned.line)
      const [damage] = state.damage
      if (damage !== undefined) throw damagedError(segments.path(segment), damage, state.damage.length - 1)
      writeDurably(nodePath.join(successor, nodePath.basename(segments.path(segment))), text)
    }
    if (migration.aside.length > 0) writeDurably(nodePath.join(successor, "set-aside.jsonl"), migration.aside.join(""))
    const backup = freeName(`${folder}.v${version}`)
    replaceFolder(folder, backup)
    return { path: folder, from: version, to: format.version, backup, setAside: migration.aside.length }
  } finally {
    segments.close()
  }
}
