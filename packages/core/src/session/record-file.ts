/**
 * A session's record in its own folder, `<data>/sessions/<id>/record.json` (0600): what the catalogue is made anew from.
 *
 * A session has a folder once it is opened for writing; until then it holds nothing but its record, and that is in the
 * catalogue alone: making a folder costs more than all else that a new session needs. It is written within the catalogue's
 * transaction, so that of two processes the later one's stays. Its status and time of change may be behind: what only moves
 * those is not written. What cannot be read here counts as not there.
 */
import * as Schema from "effect/Schema"
import * as fs from "node:fs"
import * as nodePath from "node:path"
import { isSessionID, sessionsFolder } from "../storage/index.ts"
import { SessionRecord } from "./record.ts"

const decode = Schema.decodeUnknownSync(Schema.fromJsonString(SessionRecord))

/** What a file is worth being written for. */
const kept = (record: SessionRecord): string => JSON.stringify({ ...record, status: "idle", updatedAt: 0 })

export class RecordFiles {
  readonly #sessions: string

  /** Of a data directory. */
  constructor(directory: string) {
    this.#sessions = sessionsFolder(directory)
  }

  #folder(id: string): string | null {
    return isSessionID(id) ? nodePath.join(this.#sessions, id) : null
  }

  read(id: string): SessionRecord | null {
    const folder = this.#folder(id)
    if (folder === null || !fs.existsSync(folder)) return null
    try {
      const record = decode(fs.readFileSync(nodePath.join(folder, "record.json"), "utf8"))
      return record.id === id ? record : null
    } catch {
      return null
    }
  }

  has(id: string): boolean {
    const folder = this.#folder(id)
    return folder !== null && fs.existsSync(nodePath.join(folder, "record.json"))
  }

  /** Removes what earlier versions left beside a record when they were killed: a file by the number of their process. */
  sweep(id: string): void {
    const folder = this.#folder(id)
    if (folder === null || !fs.existsSync(folder)) return
    for (const name of fs.readdirSync(folder)) {
      if (/^record\.json\.\d+$/.test(name)) fs.rmSync(nodePath.join(folder, name), { force: true })
    }
  }

  /** Never makes a folder: one that is gone belonged to a session that is being removed. */
  change(before: SessionRecord | null, record: SessionRecord, options: { readonly sync: boolean }): void {
    const folder = this.#folder(record.id)
    if (folder === null || !fs.existsSync(folder)) return
    const isSame = before !== null && kept(before) === kept(record)
    if (isSame && this.has(record.id)) return
    this.#write(folder, record, options.sync)
  }

  #write(folder: string, record: SessionRecord, sync: boolean): void {
    // One name for all: whoever writes has the catalogue to itself, and takes over what a crash has left.
    const temporary = nodePath.join(folder, "record.json.tmp")
    const file = fs.openSync(temporary, "w", 0o600)
    try {
      fs.writeFileSync(file, JSON.stringify(record))
      if (sync) fs.fsyncSync(file)
    } finally {
      fs.closeSync(file)
    }
    fs.renameSync(temporary, nodePath.join(folder, "record.json"))
  }

  /** Every record that can be read, by time of change, and the ids of folders that have none. */
  all(): { readonly records: ReadonlyArray<SessionRecord>; readonly without: ReadonlyArray<string> } {
    const records: Array<SessionRecord> = []
    const without: Array<string> = []
    for (const id of fs.existsSync(this.#sessions) ? fs.readdirSync(this.#sessions).sort() : []) {
      if (!isSessionID(id)) continue
      const record = this.read(id)
      if (record === null) without.push(id)
      else records.push(record)
    }
    return { records: records.sort((a, b) => a.updatedAt - b.updatedAt), without }
  }
}
