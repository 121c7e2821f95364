/**
 * What a JSONL session reads from: segments, their index, and in memory what came after the index's checkpoint.
 *
 * A line is checked against its checksum whenever it is read, so nothing is shown that was not written. Where commits are
 * missing, what is whole can be read; a document whose newest base lies before the gap cannot, since what the gap did to it
 * is unknown.
 */
import * as fs from "node:fs"
import * as zlib from "node:zlib"
import type { JsonValue, Operation } from "../json/index.ts"
import {
  damagedError,
  jsonlVersion,
  newerVersion,
  parseHeader,
  scanSegment,
  ScanState,
  verified
} from "./jsonl-format.ts"
import type { Damage, Place, Scanned } from "./jsonl-format.ts"
import type { EntryRow, GapRow, InputRow, JsonlIndex, SegmentRow, StateRow, TaskRow } from "./jsonl-index.ts"
import { Segments } from "./jsonl-segments.ts"
import { JsonlTail } from "./jsonl-tail.ts"
import { decodeStored, notFound, replay } from "./records.ts"
import { StorageError } from "./storage.ts"
import type { ConversationRecord, EntryRecord, EntryScan, HistoryItem, InputRecord, TaskRecord } from "./storage.ts"

const newline = 10

/** Files of which a few milliseconds more could change without another time of change. Milliseconds. */
const clockGrain = 30

/** How far a segment was read. */
export interface Position {
  sequence: number
  nextID: number
  mark: number
  segment: number
  offset: number
  line: number
  /** Checksum of the segment up to `offset`. */
  sum: number
}

const start = (): Position => ({ sequence: 0, nextID: 1, mark: 0, segment: 0, offset: 0, line: 1, sum: 0 })

/** What reading on found besides whole commits. */
export interface Progress {
  readonly damage: ReadonlyArray<Damage>
  /** Of the newest segment: what stands after its last whole commit. */
  readonly last: Scanned | null
}

export class JsonlSession {
  readonly folder: string
  readonly segments: Segments
  index: JsonlIndex
  tail = new JsonlTail()
  position: Position = start()
  /** Of the segments that were read since the checkpoint. */
  touched: Map<number, SegmentRow> = new Map()
  /** Version of the format that is read; others are refused. */
  readonly version: number
  /** A line that was not what was stored, once one was read. */
  lineDamage: StorageError | null = null
  #gaps: ReadonlyArray<GapRow> | undefined

  constructor(folder: string, index: JsonlIndex, version = jsonlVersion) {
    this.folder = folder
    this.segments = new Segments(folder)
    this.index = index
    this.version = version
  }

  /** Whether the index is of these segments: each is there, and holds what was indexed. Says which it compared. */
  indexFits(): boolean {
    const rows = this.index.segments()
    const checkpoint = this.index.checkpoint()
    if (rows.length === 0) return checkpoint.sequence === 0 && this.segments.list().length === 0
    const active = rows.at(-1)
    if (active?.segment !== checkpoint.segment || active.size !== checkpoint.offset) return false
    const numbers = this.segments.list().filter((segment) => segment <= active.segment)
    if (numbers.length !== rows.length) return false
    return rows.every((row) => {
      const stat = this.segments.stat(row.segment)
      if (stat === null || stat.size < row.size) return false
      if (row !== active && row.identity !== null && row.identity === stat.identity && row.size === stat.size) {
        return true
      }
      return zlib.crc32(this.segments.read(row.segment, 0, row.size)) === row.sum
    })
  }

  /** Begins again with an empty index. */
  restart(index: JsonlIndex): void {
    this.index = index
    this.resume()
  }

  /** Goes on from the index's checkpoint. */
  resume(): void {
    const checkpoint = this.index.checkpoint()
    const active = this.index.segments().at(-1)
    this.tail = new JsonlTail()
    this.touched = new Map()
    this.#gaps = undefined
    this.position = active === undefined
      ? { ...start(), nextID: checkpoint.nextID }
      : { ...checkpoint, sum: active.sum }
  }

  /**
   * Reads whole commits behind the position. Nothing is changed; what is not confirmed is left where it is. `each` is
   * called behind every segment, so that the rows of a long history need not be in memory at once.
   */
  advance(each?: () => void): Progress {
    const { position } = this
    const state = new ScanState(position.sequence)
    let last: Scanned | null = null
    const numbers = position.segment === 0 ? this.segments.list() : this.#following()
    for (const segment of numbers) {
      const size = fs.statSync(this.segments.path(segment)).size
      if (segment > position.segment) {
        if (!this.#enter(segment, size, segment === numbers.at(-1), state)) break
      } else if (size < position.offset) throw this.#shorter(segment)
      const bytes = this.segments.read(segment, position.offset, size - position.offset)
      const from = { offset: position.offset, line: position.line }
      last = scanSegment(bytes, segment, from, state, (group) => {
        this.tail.addGroup(this.index, group)
        position.sequence = group.sequence
        position.nextID = Math.max(position.nextID, group.nextID)
      })
      position.sum = zlib.crc32(bytes.subarray(0, last.end - position.offset), position.sum)
      position.offset = last.end
      position.line = last.line
      position.mark = Math.max(position.mark, this.tail.mark)
      this.note()
      this.noteGaps(state.damage)
      // An index with a gap in it would pass for whole at the next opening.
      if (state.damage.length === 0) each?.()
    }
    position.sequence = Math.max(position.sequence, state.sequence)
    this.noteGaps(state.damage)
    return { damage: state.damage, last }
  }

  readonly #noted = new Set<Damage>()

  /** Remembers which commits are missing. */
  noteGaps(damage: ReadonlyArray<Damage>): void {
    for (const item of damage) {
      if (item.first > item.last || this.#noted.has(item)) continue
      this.#noted.add(item)
      const { first, last, lastLine, line, segment } = item
      this.tail.gaps.push({ first, last, line, lastLine, file: this.segments.path(segment) })
      this.#gaps = undefined
    }
  }

  /** The segment that is read now, and those behind it. */
  #following(): ReadonlyArray<number> {
    const numbers = [this.position.segment]
    while (this.segments.stat((numbers.at(-1) ?? 0) + 1) !== null) numbers.push((numbers.at(-1) ?? 0) + 1)
    return numbers
  }

  /** Begins a segment; false if it is one that was never finished. */
  #enter(segment: number, size: number, isLast: boolean, state: ScanState): boolean {
    const { position } = this
    const bytes = this.segments.read(segment, 0, Math.min(size, 4_096))
    const end = bytes.indexOf(newline)
    if (end < 0 && bytes.length === size && isLast) {
      // A file that was never finished is replaced by another of its name.
      this.segments.forget()
      return false
    }
    const header = parseHeader(bytes)
    if (header === null) {
      state.damage.push({ segment, line: 1, lastLine: 1, first: 1, last: 0 })
    } else {
      const path = this.segments.path(segment)
      if (header.version > this.version) throw newerVersion(path, header.version, this.version)
      state.expect(header.after, segment, 1)
    }
    // A damaged first line may have lost its end, so it is then a line like others.
    const begin = header === null ? 0 : end + 1
    position.segment = segment
    position.offset = begin
    position.line = header === null ? 1 : 2
    position.sum = zlib.crc32(bytes.subarray(0, begin))
    return true
  }

  /** Notes how far the segment of the position is known to be whole. */
  note(): void {
    const { offset, segment, sum } = this.position
    if (segment > 0) this.touched.set(segment, { segment, size: offset, sum, identity: null })
  }

  #settled(segments: ReadonlyArray<SegmentRow>): ReadonlyArray<SegmentRow> {
    return segments.map((row) => {
      if (row.identity !== null || row.segment >= this.position.segment) return row
      const stat = this.segments.stat(row.segment)
      if (stat === null || stat.size !== row.size || stat.modifiedAt + clockGrain > Date.now()) return row
      return { ...row, identity: stat.identity }
    })
  }

  #shorter(segment: number): StorageError {
    const path = this.segments.path(segment)
    return new StorageError({
      kind: "corrupt",
      message: `${path}: the file is shorter than it was; open the session again`,
      path
    })
  }

  /** What every operation that would have to guess fails with; `null` when nothing is damaged. */
  damaged(damage: ReadonlyArray<Damage>): StorageError | null {
    const [first] = damage
    return first === undefined ? null : damagedError(this.segments.path(first.segment), first, damage.length - 1)
  }

  /** Brings the index up to the position. */
  checkpoint(): void {
    const { position } = this
    this.index.flush(this.tail, position, this.#settled([...this.touched.values()]))
    this.touched = new Map()
    this.tail = new JsonlTail()
  }

  /** Files that are complete and that no write can have changed unseen since need no comparing at the next opening. */
  settle(): void {
    for (const row of this.#settled(this.index.segments().filter((row) => row.identity === null))) {
      if (row.identity !== null) this.index.setIdentity(row.segment, row.identity)
    }
  }

  /** The number of the line at an offset, from 1. */
  #lineAt(place: Place): number {
    const size = this.segments.stat(place.segment)?.size ?? 0
    const bytes = this.segments.read(place.segment, 0, Math.max(0, Math.min(place.offset, size)))
    let line = 1
    for (let at = bytes.indexOf(newline); at >= 0; at = bytes.indexOf(newline, at + 1)) line++
    return line
  }

  line(place: Place, what: string): string {
    const { length, offset, segment, sum } = place
    // Places are as good as the index that they are from.
    const isPlace = offset >= 0 && length >= 0 && length < 2 ** 30
    const bytes = isPlace ? this.segments.read(segment, offset, length) : null
    const text = bytes?.length === length ? verified(bytes, sum) : null
    if (text !== null) return text
    const path = this.segments.path(place.segment)
    const line = this.#lineAt(place)
    throw this.lineDamage = new StorageError({
      kind: "corrupt",
      message:
        `${path}: line ${line} is damaged, so ${what} cannot be read back; run \`bezel session repair\` with the session's id`,
      path
    })
  }

  /** The record in a line; the type is what was written there. */
  record<A>(place: Place, member: string, what: string): A {
    const path = this.segments.path(place.segment)
    return decodeStored<Record<string, A>>(this.line(place, what), path, what)[member] as A
  }

  maxOrdinal(): number {
    return Math.max(this.index.maxOrdinal(), this.tail.maxOrdinal)
  }

  conversation(id: string): ConversationRecord | null {
    const place = this.tail.conversations.get(id) ?? this.index.conversation(id)
    return place === null ? null : this.record(place, "conversation", `conversation ${id}`)
  }

  conversations(): ReadonlyArray<ConversationRecord> {
    const places = new Map(this.index.conversations().map(({ id, place }) => [id, place]))
    for (const [id, place] of this.tail.conversations) places.set(id, place)
    return [...places].map(([id, place]) => this.record(place, "conversation", `conversation ${id}`))
  }

  entryRow(id: string): EntryRow | null {
    return this.index.entry(id) ?? this.tail.entries.get(id) ?? null
  }

  #entryOf(row: EntryRow): EntryRecord {
    return this.record(row.place, "entry", `entry ${row.id}`)
  }

  entry(id: string): EntryRecord | null {
    const row = this.entryRow(id)
    return row === null ? null : this.#entryOf(row)
  }

  entries(scan: EntryScan): ReadonlyArray<EntryRecord> {
    const { after = -Infinity, before = Infinity, limit } = scan
    const rows = [...this.index.entries(scan)]
    const known = new Set(this.tail.entries.size === 0 ? [] : rows.map((row) => row.id))
    for (const row of this.tail.entries.values()) {
      if (row.conversation !== scan.conversation || row.ordinal <= after || row.ordinal >= before) continue
      if (scan.kind !== undefined && row.kind !== scan.kind) continue
      if (scan.heads === true && !row.head) continue
      if (!known.has(row.id)) rows.push(row)
    }
    rows.sort((left, right) => scan.newestFirst === true ? right.ordinal - left.ordinal : left.ordinal - right.ordinal)
    return rows.slice(0, limit).map((row) => this.#entryOf(row))
  }

  #taskOf(row: TaskRow): TaskRecord {
    return this.record(row.place, "task", `task ${row.id}`)
  }

  task(id: string): TaskRecord | null {
    const row = this.tail.tasks.get(id) ?? this.index.task(id)
    return row === null ? null : this.#taskOf(row)
  }

  liveTasks(): ReadonlyArray<TaskRecord> {
    return live(this.index.liveTasks(), this.tail.tasks).map((row) => this.#taskOf(row))
  }

  #inputOf(row: InputRow): InputRecord {
    return this.record(row.place, "input", `input ${row.id}`)
  }

  input(id: string): InputRecord | null {
    const row = this.tail.inputs.get(id) ?? this.index.input(id)
    return row === null ? null : this.#inputOf(row)
  }

  /** The id of the input that a request names. */
  holder(request: string): string | null {
    const known = this.tail.requests.get(request)
    return known ?? this.index.inputByRequest(request)?.id ?? null
  }

  inputByRequest(request: string): InputRecord | null {
    const id = this.holder(request)
    return id === null ? null : this.input(id)
  }

  liveInputs(): ReadonlyArray<InputRecord> {
    return live(this.index.liveInputs(), this.tail.inputs).map((row) => this.#inputOf(row))
  }

  gaps(): ReadonlyArray<GapRow> {
    return this.#gaps ??= [...this.index.gaps(), ...this.tail.gaps]
  }

  #states(document: string, sequence: number): ReadonlyArray<StateRow> {
    const change = this.tail.documents.get(document)
    const states = change?.fresh === true ? [] : [...this.index.states(document, sequence)]
    const last = states.at(-1)?.sequence ?? 0
    for (const state of change?.states ?? []) {
      if (state.sequence > last && state.sequence <= sequence) states.push(state)
    }
    return states.slice(Math.max(0, states.findLastIndex((state) => state.base)))
  }

  /** A document as far as it is known: `upTo` names the commit after which it is not, `null` when it is known to the end. */
  lastKnown(document: string): { readonly value: JsonValue; readonly upTo: number | null } {
    const from = this.#states(document, Number.MAX_SAFE_INTEGER)[0]?.sequence ?? 0
    const gap = this.gaps().find((item) => item.first > from)
    const upTo = gap === undefined ? null : gap.first - 1
    return { value: this.document(document, upTo ?? Number.MAX_SAFE_INTEGER), upTo }
  }

  /** Names of the documents that there are. */
  documents(): ReadonlyArray<string> {
    return [...new Set([...this.index.documents(), ...this.tail.documents.keys()])]
  }

  document(document: string, sequence = Number.MAX_SAFE_INTEGER): JsonValue {
    const states = this.#states(document, sequence)
    const from = states[0]?.sequence ?? Number.MAX_SAFE_INTEGER
    const gap = this.gaps().find((item) => item.first > from && item.first <= sequence)
    if (gap !== undefined) {
      throw new StorageError({
        kind: "corrupt",
        message: `${gap.file}: ${
          gap.line === gap.lastLine ? `line ${gap.line}` : `lines ${gap.line}–${gap.lastLine}`
        }, now gone, may have changed document "${document}", so what it was is not known`,
        path: gap.file
      })
    }
    let value: JsonValue = null
    for (const { base, place } of states) {
      const what = base ? `document "${document}"` : `a change of document "${document}"`
      if (base) value = this.record<JsonValue>(place, "base", what)
      else {
        const operations = this.record<ReadonlyArray<Operation>>(place, "operations", what)
        value = replay(value, operations, this.segments.path(place.segment), document)
      }
    }
    return value
  }

  documentAt(document: string, sequence: number): JsonValue {
    const change = this.tail.documents.get(document)
    const row = change?.row ?? this.index.document(document)
    if (row === null || sequence < row.first) return null
    const kept = change?.fresh === true ? null : this.index.oldestState(document)
    const oldest = kept ?? change?.states[0]?.sequence ?? row.first
    if (sequence < oldest) {
      throw notFound(
        this.folder,
        `document "${document}" is not kept as it was at commit ${sequence}; the oldest state kept is of commit ${oldest}`
      )
    }
    return this.document(document, sequence)
  }

  history(after: number, limit: number): ReadonlyArray<HistoryItem> {
    const items = [...this.index.commits(after, limit)]
    const last = items.at(-1)?.sequence ?? after
    for (const item of this.tail.commits) {
      if (items.length >= limit) break
      if (item.sequence > last) items.push(item)
    }
    return items.map(({ place, sequence }) => {
      const what = `the events of commit ${sequence}`
      const path = this.segments.path(place.segment)
      const { at, events } = decodeStored<HistoryItem>(this.line(place, what), path, what)
      return { sequence, at, events }
    })
  }

  close(): void {
    this.segments.close()
    this.index.close()
  }
}

/** Rows that are live now, where newer ones override those of the index. */
const live = <Row extends TaskRow>(
  indexed: ReadonlyArray<Row>,
  newer: ReadonlyMap<string, Row>
): ReadonlyArray<Row> => {
  const rows = indexed.filter((row) => !newer.has(row.id))
  for (const row of newer.values()) if (row.live) rows.push(row)
  return rows.sort((left, right) => left.ordinal - right.ordinal)
}
