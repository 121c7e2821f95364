/**
 * A session in memory, for tests and for sessions that nobody wants to keep. It passes the same conformance suite as the
 * files do; records are kept as text, so that what is read back is never the object that was written.
 */
import type * as Effect from "effect/Effect"
import type { JsonValue } from "../json/index.ts"
import { attempt } from "./database.ts"
import { decodeStored, documentWrites, isLiveInput, isLiveTask, notFound, refused, replay } from "./records.ts"
import type {
  Batch,
  ConversationRecord,
  EntryRecord,
  EntryScan,
  HistoryItem,
  InputRecord,
  Storage,
  StorageError,
  TaskRecord
} from "./storage.ts"

interface StoredEntry {
  readonly id: string
  readonly ordinal: number
  readonly sequence: number
  readonly conversation: string
  readonly kind: string
  readonly head: boolean
  readonly text: string
}

interface StoredItem {
  readonly ordinal: number
  readonly live: boolean
  readonly text: string
}

interface DocumentState {
  readonly sequence: number
  readonly value: JsonValue
}

const place = "memory"

/** One session's records. Several storages may be over the same ones, as a reader is beside a writer. */
export class MemorySession {
  #sequence = 0
  #nextID = 1
  #conversations = new Map<string, string>()
  /** By ordinal. */
  #entries: Array<StoredEntry> = []
  #entriesByID = new Map<string, StoredEntry>()
  #tasks = new Map<string, StoredItem>()
  #inputs = new Map<string, StoredItem>()
  #requests = new Map<string, string>()
  #documents = new Map<string, { readonly first: number; readonly states: ReadonlyArray<DocumentState> }>()
  #history: Array<{ readonly sequence: number; readonly at: number; readonly text: string }> = []

  #commit(batch: Batch): number {
    const sequence = this.#sequence + 1
    // First everything that can fail, then everything that changes.
    const entries: Array<StoredEntry> = []
    for (const entry of batch.entries) {
      const taken = this.#entriesByID.has(entry.id) ||
        [...this.#entries, ...entries].some((other) => other.ordinal === entry.ordinal || other.id === entry.id)
      if (taken) {
        throw refused(
          null,
          `this commit was not stored: entry ${entry.id} (ordinal ${entry.ordinal}) exists, and entries never change`
        )
      }
      const { conversation, id, kind, ordinal } = entry
      entries.push({
        id,
        ordinal,
        sequence,
        conversation,
        kind,
        head: entry.head !== null,
        text: JSON.stringify(entry)
      })
    }
    const documents = documentWrites(batch).map((write) => {
      const known = this.#documents.get(write.document)
      const base = write.base !== undefined ? write.base : known?.states.at(-1)?.value ?? null
      let value: JsonValue
      try {
        value = replay(base, write.operations, place, write.document)
      } catch (error) {
        throw refused(null, `this commit was not stored: ${error instanceof Error ? error.message : String(error)}`)
      }
      const state: DocumentState = { sequence, value: decodeStored(JSON.stringify(value), place, "a document") }
      return {
        document: write.document,
        first: known?.first ?? sequence,
        states: write.retained ? [...known?.states ?? [], state] : [state]
      }
    })
    const conversations = batch.conversations.map((record) => [record.id, JSON.stringify(record)] as const)
    const tasks = batch.tasks.map((task) =>
      [task.id, { ordinal: task.ordinal, live: isLiveTask(task), text: JSON.stringify(task) }] as const
    )
    const inputs = batch.inputs.map((input) =>
      [input.id, { ordinal: input.ordinal, live: isLiveInput(input), text: JSON.stringify(input) }] as const
    )
    for (const { id, requestID } of batch.inputs) {
      const holder = requestID === null ? undefined : this.#requests.get(requestID)
      if (holder !== undefined && holder !== id) {
        throw refused(null, `this commit was not stored: request ${requestID} is of input ${holder}`)
      }
    }

    for (const [id, text] of conversations) this.#conversations.set(id, text)
    for (const entry of entries) {
      this.#entries.push(entry)
      this.#entriesByID.set(entry.id, entry)
    }
    if (entries.length > 0) this.#entries.sort((left, right) => left.ordinal - right.ordinal)
    for (const [id, task] of tasks) this.#tasks.set(id, task)
    for (const [id, input] of inputs) this.#inputs.set(id, input)
    for (const { id, requestID } of batch.inputs) if (requestID !== null) this.#requests.set(requestID, id)
    for (const { document, first, states } of documents) this.#documents.set(document, { first, states })
    if (batch.events.length > 0) this.#history.push({ sequence, at: batch.at, text: JSON.stringify(batch.events) })
    this.#nextID = Math.max(this.#nextID, batch.nextID)
    this.#sequence = sequence
    return sequence
  }

  #scan(scan: EntryScan): ReadonlyArray<EntryRecord> {
    const found = this.#entries.filter((entry) =>
      entry.conversation === scan.conversation &&
      (scan.after === undefined || entry.ordinal > scan.after) &&
      (scan.before === undefined || entry.ordinal < scan.before) &&
      (scan.kind === undefined || entry.kind === scan.kind) &&
      (scan.heads !== true || entry.head)
    )
    if (scan.newestFirst === true) found.reverse()
    return found.slice(0, scan.limit).map((entry) => decodeStored<EntryRecord>(entry.text, place, `entry ${entry.id}`))
  }

  #documentAt(document: string, sequence: number): JsonValue {
    const known = this.#documents.get(document)
    if (known === undefined || sequence < known.first) return null
    const state = known.states.findLast((item) => item.sequence <= sequence)
    if (state === undefined) throw notFound(null, `document "${document}" is not kept as it was at commit ${sequence}`)
    return state.value
  }

  storage(): Storage {
    const read = <A>(evaluate: () => A): Effect.Effect<A, StorageError> => attempt(place, evaluate)
    const parse = <A>(text: string | undefined): A | null =>
      text === undefined ? null : decodeStored<A>(text, place, "a record")
    const live = <A>(items: ReadonlyMap<string, StoredItem>): ReadonlyArray<A> =>
      [...items.values()].filter((item) => item.live).sort((left, right) => left.ordinal - right.ordinal)
        .map((item) => decodeStored<A>(item.text, place, "a record"))
    return {
      sequence: read(() => this.#sequence),
      nextID: read(() => this.#nextID),
      conversation: (id) => read(() => parse<ConversationRecord>(this.#conversations.get(id))),
      conversations: read(() =>
        [...this.#conversations.values()].map((text) => decodeStored<ConversationRecord>(text, place, "a conversation"))
      ),
      entry: (id) => read(() => parse<EntryRecord>(this.#entriesByID.get(id)?.text)),
      entries: (scan) => read(() => this.#scan(scan)),
      task: (id) => read(() => parse<TaskRecord>(this.#tasks.get(id)?.text)),
      liveTasks: read(() => live<TaskRecord>(this.#tasks)),
      input: (id) => read(() => parse<InputRecord>(this.#inputs.get(id)?.text)),
      inputByRequest: (requestID) =>
        read(() => parse<InputRecord>(this.#inputs.get(this.#requests.get(requestID) ?? "")?.text)),
      liveInputs: read(() => live<InputRecord>(this.#inputs)),
      document: (document) => read(() => this.#documentAt(document, this.#sequence)),
      documentAt: (document, sequence) => read(() => this.#documentAt(document, sequence)),
      sequenceOf: (entry) => read(() => this.#entriesByID.get(entry)?.sequence ?? null),
      history: (after, limit) =>
        read(() =>
          this.#history.filter((item) => item.sequence > after).slice(0, limit).map((item): HistoryItem => ({
            sequence: item.sequence,
            at: item.at,
            events: decodeStored<ReadonlyArray<JsonValue>>(item.text, place, "events")
          }))
        ),
      commit: (batch) => attempt(place, () => this.#commit(batch))
    }
  }
}

/** A storage of its own, empty, in memory. */
export const makeMemoryStorage = (): Storage => new MemorySession().storage()
