/**
 * How commits are written as lines of JSON, and read back without ever guessing.
 *
 * A segment file starts with a header line. A commit is a group of lines: one for each record, then the line that confirms
 * it, which has the commit's number, how many records stand before it, and a checksum over the whole group:
 *
 *     {"bezel":"session","version":1,"segment":1,"after":0,"sum":"9c2f00aa"}
 *     {"entry":{"id":"e4",…}}
 *     {"commit":1,"records":1,"nextID":5,"at":1700000000000,"events":[],"sum":"51ab9e03"}
 *
 * Without its confirming line a group was never acknowledged and counts as nothing. Commit numbers have no gaps, so a
 * missing number says that something acknowledged is gone, whatever became of its bytes. Lines end with a single LF; no
 * other character ends one. `scanSegment` is plain synchronous code: it runs over every byte when an index is rebuilt.
 */
import * as zlib from "node:zlib"
import type { JsonValue } from "../json/index.ts"
import { StorageError } from "./storage.ts"
import type { ConversationRecord, EntryRecord, InputRecord, TaskRecord } from "./storage.ts"

/** Written by this program. */
export const jsonlVersion = 1

/** Where a line is: without its newline, with the checksum of its bytes. */
export interface Place {
  readonly segment: number
  readonly offset: number
  readonly length: number
  readonly sum: number
}

/** A document's change as it is stored. */
export interface DocumentLine {
  readonly document: string
  readonly retained: boolean
  readonly base?: JsonValue
  readonly operations?: JsonValue
}

/** Stands where commits were that could not be kept. */
export interface GapLine {
  readonly first: number
  readonly last: number
  /** The damaged file and its lines, as they were found. */
  readonly file: string
  readonly line: number
  readonly lastLine: number
}

export type RecordLine =
  | { readonly conversation: ConversationRecord }
  | { readonly entry: EntryRecord }
  | { readonly task: TaskRecord }
  | { readonly input: InputRecord }
  | DocumentLine
  | { readonly gap: GapLine }

export interface PlacedLine {
  readonly place: Place
  readonly record: RecordLine
}

/** One whole, confirmed commit. */
export interface Group {
  readonly sequence: number
  /** The first commit that it stands for: its own, but for a gap. */
  readonly first: number
  readonly nextID: number
  readonly at: number
  readonly events: ReadonlyArray<JsonValue>
  /** The confirming line. */
  readonly place: Place
  readonly records: ReadonlyArray<PlacedLine>
  /** In bytes of the segment. */
  readonly start: number
  readonly end: number
  /** Number of its first line, from 1. */
  readonly line: number
}

/** What is wrong in a segment, and which commits are gone with it (`first > last`: none). */
export interface Damage {
  readonly segment: number
  /** From 1; both inclusive. */
  readonly line: number
  readonly lastLine: number
  readonly first: number
  readonly last: number
}

/** Bytes of `,"sum":"00000000"}` */
const sumLength = 18

const hex = (sum: number): string => sum.toString(16).padStart(8, "0")

/** A line with its checksum as last member, over `before` and all of the line but that member. */
export const sealed = (open: string, before?: number): string => `${open},"sum":"${hex(zlib.crc32(open, before))}"}`

export const header = (segment: number, after: number, version = jsonlVersion): string =>
  `${sealed(`{"bezel":"session","version":${version},"segment":${segment},"after":${after}`)}\n`

const numbers = /^\{"commit":(\d{1,16}),"records":(\d{1,9}),/
const sumSuffix = /^,"sum":"([0-9a-f]{8})"\}$/
const headerPattern = /^\{"bezel":"session","version":(\d{1,9}),"segment":(\d{1,9}),"after":(\d{1,16})[,}]/

const sumOf = (bytes: Buffer, start: number, end: number): boolean => {
  if (end - start < sumLength) return false
  const stored = sumSuffix.exec(bytes.toString("latin1", end - sumLength, end))?.[1]
  return stored !== undefined && zlib.crc32(bytes.subarray(start, end - sumLength)) === Number.parseInt(stored, 16)
}

/** A whole group as it is written, for those that write again what was read. */
export const groupText = (group: {
  readonly sequence: number
  readonly first: number
  readonly nextID: number
  readonly at: number
  readonly events: ReadonlyArray<JsonValue>
  readonly records: ReadonlyArray<RecordLine>
}): string => {
  const { at, events, first, nextID, records, sequence } = group
  const lines = records.map((record) => `${JSON.stringify(record)}\n`).join("")
  const gap = first === sequence ? "" : `,"first":${first}`
  const closing = `{"commit":${sequence},"records":${records.length},"nextID":${nextID},"at":${
    JSON.stringify(at)
  }${gap},"events":${JSON.stringify(events)}`
  return `${lines}${sealed(closing, zlib.crc32(lines))}\n`
}

export interface Header {
  readonly version: number
  readonly segment: number
  readonly after: number
}

/** The header of a segment, or `null` if its first line is none or is damaged. */
export const parseHeader = (bytes: Buffer): Header | null => {
  const end = bytes.indexOf(10)
  if (end < 0 || !sumOf(bytes, 0, end)) return null
  const match = headerPattern.exec(bytes.toString("latin1", 0, Math.min(end, 200)))
  if (match === null) return null
  return { version: Number(match[1]), segment: Number(match[2]), after: Number(match[3]) }
}

export const newerVersion = (path: string, version: number, known: number): StorageError =>
  new StorageError({
    kind: "newer_version",
    message:
      `${path}: this file has format ${version}, and this Bezel reads up to ${known}; upgrade Bezel to one that knows format ${version}`,
    path
  })

const parseLine = (bytes: Buffer, start: number, end: number): unknown => JSON.parse(bytes.toString("utf8", start, end))

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const hasID = (value: unknown): boolean => isObject(value) && typeof value.id === "string"

/** Whether a line that its checksum vouches for is one that this program reads; anything else is damage, too. */
const isRecordLine = (value: unknown): value is RecordLine => {
  if (!isObject(value)) return false
  if (typeof value.document === "string") return "base" in value || Array.isArray(value.operations)
  if (isObject(value.gap)) return typeof value.gap.first === "number" && typeof value.gap.last === "number"
  const record = value.entry ?? value.task ?? value.input
  return record === undefined
    ? hasID(value.conversation)
    : hasID(record) && isObject(record) && typeof record.ordinal === "number"
}

/** What is known so far, from one segment to the next. */
export class ScanState {
  /** Of the newest whole commit. */
  sequence: number
  readonly damage: Array<Damage> = []
  /** Lines that belong to no confirmed commit, at the end of what was read. */
  stray: { readonly segment: number; readonly line: number; readonly lastLine: number } | null = null
  /** Checksums by commit, to know a commit that is there twice. */
  readonly sums = new Map<number, number>()

  constructor(sequence: number) {
    this.sequence = sequence
  }

  /** Commits up to `upTo` should have come before this line. */
  expect(upTo: number, segment: number, line: number): void {
    if (upTo <= this.sequence) return
    const from = this.stray ?? { segment, line, lastLine: line }
    this.damage.push({ ...from, first: this.sequence + 1, last: upTo })
    this.sequence = upTo
    this.stray = null
  }

  /** Takes in a whole group; false if it is one that is known. */
  accept(group: Group, sum: number): boolean {
    const { first, line, sequence } = group
    if (sequence <= this.sequence) {
      if (this.sums.get(sequence) !== sum) {
        this.damage.push({
          segment: group.place.segment,
          line,
          lastLine: line + group.records.length,
          first: sequence,
          last: sequence - 1
        })
      }
      return false
    }
    this.expect(first - 1, group.place.segment, line)
    this.stray = null
    this.sequence = sequence
    this.sums.set(sequence, sum)
    return true
  }
}

export interface ScanFrom {
  readonly offset: number
  /** Number of the line at `offset`, from 1. */
  readonly line: number
}

export interface Scanned {
  /** Behind the last whole group; bytes after it are unconfirmed. */
  readonly end: number
  /** Number of the line at `end`. */
  readonly line: number
  /** Whether a line after `end` was a confirmation once: then it is damaged, and was not merely cut off. */
  readonly confirmedTail: boolean
  /** Whether there is anything after `end`. */
  readonly tail: boolean
  /** Number of the last line, whole or not. */
  readonly lastLine: number
}

interface OpenLine {
  readonly start: number
  readonly end: number
}

const readGroup = (
  bytes: Buffer,
  segment: number,
  shift: number,
  open: ReadonlyArray<OpenLine>,
  confirm: OpenLine,
  line: number
): { readonly group: Group; readonly sum: number } | null => {
  const match = numbers.exec(bytes.toString("latin1", confirm.start, Math.min(confirm.end, confirm.start + 64)))
  const count = Number(match?.[2])
  if (match === null || count > open.length) return null
  const lines = count === 0 ? [] : open.slice(-count)
  const start = lines[0]?.start ?? confirm.start
  if (!sumOf(bytes, start, confirm.end)) return null
  const placeOf = (item: OpenLine): Place => ({
    segment,
    offset: shift + item.start,
    length: item.end - item.start,
    sum: zlib.crc32(bytes.subarray(item.start, item.end))
  })
  try {
    const closing = parseLine(bytes, confirm.start, confirm.end)
    if (!isObject(closing)) return null
    const { at, commit, events, first, nextID } = closing
    if (typeof commit !== "number" || typeof nextID !== "number" || typeof at !== "number") return null
    const records: Array<PlacedLine> = []
    for (const item of lines) {
      const record = parseLine(bytes, item.start, item.end)
      if (!isRecordLine(record)) return null
      records.push({ place: placeOf(item), record })
    }
    const group: Group = {
      sequence: commit,
      first: typeof first === "number" ? first : commit,
      nextID,
      at,
      events: Array.isArray(events) ? events : [],
      place: placeOf(confirm),
      records,
      start: shift + start,
      end: shift + confirm.end + 1,
      line: line - count
    }
    return { group, sum: Number.parseInt(bytes.toString("latin1", confirm.end - 10, confirm.end - 2), 16) }
  } catch {
    return null
  }
}

/** Reads a segment's groups in order; `bytes` are those from `from` on, which is a place between two groups. Never throws. */
export const scanSegment = (
  bytes: Buffer,
  segment: number,
  from: ScanFrom,
  state: ScanState,
  visit: (group: Group) => void
): Scanned => {
  let open: Array<OpenLine> = []
  let { line } = from
  let offset = 0
  let end = 0
  let endLine = line
  let confirmedTail = false
  for (;;) {
    const newline = bytes.indexOf(10, offset)
    if (newline < 0) break
    const item: OpenLine = { start: offset, end: newline }
    offset = newline + 1
    const looksConfirming = bytes[item.start] === 0x7b &&
      bytes.toString("latin1", item.start, item.start + 10) === '{"commit":'
    const found = looksConfirming ? readGroup(bytes, segment, from.offset, open, item, line) : null
    if (found === null) {
      open.push(item)
      if (looksConfirming) confirmedTail = true
      line++
      continue
    }
    // Whatever stands between two whole groups: whether it matters is told by the commits' numbers.
    if (open.length > found.group.records.length) {
      state.stray ??= { segment, line: endLine, lastLine: found.group.line - 1 }
    }
    line++
    if (state.accept(found.group, found.sum)) visit(found.group)
    open = []
    end = offset
    endLine = line
    confirmedTail = false
  }
  const tail = end < bytes.length
  const lastLine = offset < bytes.length ? line : line - 1
  if (tail) state.stray ??= { segment, line: endLine, lastLine }
  return { end: from.offset + end, line: endLine, lastLine, confirmedTail, tail }
}

/** Reads JSON of a line that was found by its place; `null` if its bytes are not those that were stored. */
export const verified = (bytes: Buffer, sum: number): string | null =>
  zlib.crc32(bytes) === sum ? bytes.toString("utf8", 0, bytes.length) : null

export const damageMessage = (path: string, damage: Damage): string => {
  const lines = damage.line === damage.lastLine
    ? `line ${damage.line} is`
    : `lines ${damage.line}–${damage.lastLine} are`
  const lost = damage.first > damage.last
    ? ""
    : damage.first === damage.last
    ? `; commit ${damage.first} is gone`
    : `; commits ${damage.first}–${damage.last} are gone`
  return `${path}: ${lines} damaged${lost}`
}

/** What every operation that would have to guess says. */
export const damagedError = (path: string, damage: Damage, more: number): StorageError =>
  new StorageError({
    kind: "corrupt",
    message: `${damageMessage(path, damage)}${
      more > 0 ? ` (and ${more} more)` : ""
    }; what is whole can still be read; run \`bezel session repair\` with the session's id before it is continued`,
    path
  })
