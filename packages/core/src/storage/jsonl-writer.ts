/**
 * The one writer of a JSONL session: each commit is one group of lines, appended whole or not at all.
 *
 * The index follows behind, every so many commits, when a segment is full, and when the session is closed. Failing to write
 * it never fails a commit: what is stored is in the segments. The commit path is plain synchronous code.
 */
import * as zlib from "node:zlib"
import { type JsonValue, stored } from "../json/index.ts"
import { storageError } from "./database.ts"
import { header, sealed } from "./jsonl-format.ts"
import type { DocumentLine, Place, RecordLine } from "./jsonl-format.ts"
import type { DocumentRow } from "./jsonl-index.ts"
import { Appender } from "./jsonl-segments.ts"
import type { JsonlSession } from "./jsonl-session.ts"
import { numberOf } from "./jsonl-tail.ts"
import { documentWrites, refused, replay } from "./records.ts"
import type { DocumentWrite } from "./records.ts"
import type { Batch } from "./storage.ts"

/** Operations may outgrow a small base by this much before a fresh one is worth writing. Bytes. */
const minimumReplay = 16_384

export interface WriterOptions {
  readonly fsync: boolean
  readonly segmentBytes: number
  readonly maxBytes: number
  /** Commits from one checkpoint of the index to the next. */
  readonly checkpointEvery: number
}

/** The lines of one commit as bytes, in a buffer that is used again for the next. */
class GroupBuffer {
  #bytes = Buffer.allocUnsafe(65_536)
  #length = 0

  begin(): void {
    this.#length = 0
  }

  /** Adds a line; gives its offset and length in the group. */
  add(text: string): { readonly offset: number; readonly length: number } {
    const most = this.#length + text.length * 3 + 1
    if (most > this.#bytes.length) {
      const grown = Buffer.allocUnsafe(Math.max(most, this.#bytes.length * 2))
      this.#bytes.copy(grown, 0, 0, this.#length)
      this.#bytes = grown
    }
    const offset = this.#length
    const length = this.#bytes.write(text, offset, "utf8")
    this.#bytes[offset + length] = 10
    this.#length = offset + length + 1
    return { offset, length }
  }

  /** Valid until the next `begin`. */
  get bytes(): Buffer {
    return this.#bytes.subarray(0, this.#length)
  }

  /** Gives back what one large commit needed. */
  end(): void {
    if (this.#bytes.length > 1_048_576) this.#bytes = Buffer.allocUnsafe(65_536)
  }
}

interface PendingLine {
  /** Takes the line in, once it is stored. */
  readonly take: (place: Place) => void
  readonly offset: number
  readonly length: number
}

interface PreparedDocument {
  readonly line: DocumentLine
  readonly text: string
  readonly value: JsonValue
  /** What was known of the document before. */
  readonly row: DocumentRow | null
}

export class JsonlWriter {
  readonly session: JsonlSession
  readonly #options: WriterOptions
  readonly #buffer = new GroupBuffer()
  readonly #warn: (message: string) => void
  #appender: Appender
  /** Values of documents as committed; read when first needed, and again after a failure. */
  #documents = new Map<string, JsonValue>()
  #maxOrdinal: number
  #checkpointAfter: number
  #closed = false

  constructor(session: JsonlSession, options: WriterOptions, warn: (message: string) => void) {
    this.session = session
    this.#options = options
    this.#warn = warn
    const { offset, segment } = session.position
    this.#appender = new Appender(session.segments, segment, offset, options)
    this.#maxOrdinal = session.maxOrdinal()
    this.#checkpointAfter = options.checkpointEvery
  }

  #checkEntries(batch: Batch): void {
    const ids = new Set<string>()
    const ordinals = new Set<number>()
    const { index, position, tail } = this.session
    for (const { id, ordinal } of batch.entries) {
      const twice = ids.has(id) || ordinals.has(ordinal)
      ids.add(id)
      ordinals.add(ordinal)
      const number = numberOf(id)
      // Ids and ordinals grow, so most are above all that were there before.
      const isNew = ordinal > this.#maxOrdinal && number !== null && number > position.mark
      if (!twice && (isNew || !(tail.entries.has(id) || tail.ordinals.has(ordinal) || index.hasEntry(id, ordinal)))) {
        continue
      }
      throw refused(
        this.session.folder,
        `this commit was not stored: entry ${id} (ordinal ${ordinal}) exists, and entries never change`
      )
    }
  }

  #checkRequests(batch: Batch): void {
    const holders = new Map<string, string>()
    for (const { id, requestID } of batch.inputs) {
      if (requestID === null) continue
      const holder = holders.get(requestID) ?? this.session.holder(requestID)
      holders.set(requestID, id)
      if (holder !== null && holder !== id) {
        throw refused(this.session.folder, `this commit was not stored: request ${requestID} is of input ${holder}`)
      }
    }
  }

  #value(document: string): JsonValue {
    const known = this.#documents.get(document)
    return known !== undefined ? known : this.session.document(document)
  }

  #documentLine(write: DocumentWrite): PreparedDocument {
    const { document, retained } = write
    const { folder, index, tail } = this.session
    let value = write.base !== undefined ? write.base : this.#value(document)
    try {
      value = replay(value, write.operations, folder, document)
    } catch (error) {
      throw refused(folder, `this commit was not stored: ${error instanceof Error ? error.message : String(error)}`)
    }
    const row = tail.documentRow(index, document)
    if (write.base === undefined && row !== null) {
      const line: DocumentLine = { document, retained, operations: stored<JsonValue>(write.operations) }
      const text = JSON.stringify(line)
      if (row.replaySize + text.length <= Math.max(minimumReplay, row.baseSize)) return { line, row, text, value }
    }
    const line: DocumentLine = { document, retained, base: value }
    return { line, row, text: JSON.stringify(line), value }
  }

  /** Goes to a new segment when this one is full. */
  #rotate(): void {
    const { position, segments } = this.session
    if (this.#appender.size < this.#options.segmentBytes) return
    const segment = position.segment + 1
    const first = header(segment, position.sequence, this.session.version)
    Appender.create(segments, segment, first, this.#options)
    const next = new Appender(segments, segment, Buffer.byteLength(first), this.#options)
    this.#appender.close()
    this.#appender = next
    position.segment = segment
    position.offset = next.size
    position.line = 2
    position.sum = zlib.crc32(first)
    this.session.note()
  }

  #append(batch: Batch, sequence: number): void {
    const { position, tail } = this.session
    const buffer = this.#buffer
    buffer.begin()
    const lines: Array<PendingLine> = []
    const add = (record: Exclude<RecordLine, DocumentLine>, text: string): void => {
      lines.push({ take: (place) => tail.add(record, place, sequence), ...buffer.add(text) })
    }
    for (const conversation of batch.conversations) {
      add({ conversation }, `{"conversation":${JSON.stringify(conversation)}}`)
    }
    for (const entry of batch.entries) add({ entry }, `{"entry":${JSON.stringify(entry)}}`)
    for (const task of batch.tasks) add({ task }, `{"task":${JSON.stringify(task)}}`)
    for (const input of batch.inputs) add({ input }, `{"input":${JSON.stringify(input)}}`)
    const values = new Map<string, JsonValue>()
    for (const write of documentWrites(batch)) {
      const { line, row, text, value } = this.#documentLine(write)
      lines.push({ take: (place) => tail.addDocument(row, line, place, sequence), ...buffer.add(text) })
      values.set(write.document, value)
    }
    const nextID = Math.max(position.nextID, batch.nextID)
    const confirming = buffer.add(sealed(
      `{"commit":${sequence},"records":${lines.length},"nextID":${nextID},"at":${JSON.stringify(batch.at)},"events":${
        JSON.stringify(batch.events)
      }`,
      zlib.crc32(buffer.bytes)
    ))
    this.#rotate()
    const { bytes } = buffer
    const base = position.offset
    this.#appender.append(bytes)

    // Stored. From here on nothing may fail.
    const placeOf = ({ length, offset }: { readonly offset: number; readonly length: number }): Place => ({
      segment: position.segment,
      offset: base + offset,
      length,
      sum: zlib.crc32(bytes.subarray(offset, offset + length))
    })
    for (const line of lines) line.take(placeOf(line))
    tail.end(sequence, batch.events.length > 0, placeOf(confirming))
    position.sum = zlib.crc32(bytes, position.sum)
    position.offset = base + bytes.length
    position.line += lines.length + 1
    position.sequence = sequence
    position.nextID = nextID
    this.session.note()
    buffer.end()
    for (const [document, value] of values) {
      // A document that ended, such as a task's, is not worth remembering.
      if (value === null) this.#documents.delete(document)
      else this.#documents.set(document, value)
    }
    this.#maxOrdinal = Math.max(this.#maxOrdinal, tail.maxOrdinal)
    position.mark = Math.max(position.mark, tail.mark)
  }

  commit(batch: Batch): number {
    if (this.#closed) throw refused(this.session.folder, `${this.session.folder}: this session was closed`)
    const sequence = this.session.position.sequence + 1
    try {
      this.#checkEntries(batch)
      this.#checkRequests(batch)
      this.#append(batch, sequence)
    } catch (error) {
      // What is in the files decides; nothing remembered here does.
      this.#documents = new Map()
      throw error
    }
    if (this.session.tail.count >= this.#checkpointAfter) this.checkpoint()
    return sequence
  }

  /** Goes on with an index that was made again. */
  reindexed(): void {
    this.#documents = new Map()
    this.#maxOrdinal = this.session.maxOrdinal()
  }

  /** Brings the index up to date. A failure is told and made up for later. */
  checkpoint(): void {
    const { session } = this
    try {
      session.checkpoint()
      this.#checkpointAfter = this.#options.checkpointEvery
    } catch (error) {
      this.#checkpointAfter = session.tail.count + this.#options.checkpointEvery
      this.#warn(`the index of a session is behind: ${storageError(error, session.folder).message}`)
    }
  }

  close(): void {
    if (this.#closed) return
    this.#closed = true
    this.checkpoint()
    try {
      this.session.settle()
    } catch (error) {
      this.#warn(`the index of a session is behind: ${storageError(error, this.session.folder).message}`)
    }
    this.#appender.close()
    this.session.close()
  }
}
