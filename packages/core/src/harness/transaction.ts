/**
 * One commit being built: buffers every write, reads its own writes, and touches nothing until it has ended.
 *
 * Plain synchronous code (the commit line is a hot path). Document drafts come from `track`; after `finish` or `discard`
 * every draft is revoked, together with whatever was taken out of it.
 */
import { type JsonValue, type Operation, track, type Tracked } from "../json/index.ts"
import type { Message } from "../model/index.ts"
import type {
  Batch,
  ConversationRecord,
  DocumentChange,
  EntryEdit,
  EntryHead,
  EntryRecord,
  InputRecord,
  RecordID,
  TaskRecord
} from "../storage/index.ts"
import { HarnessError } from "./api.ts"
import {
  type RewindableDocument,
  rewindableDocument,
  type SessionDocument,
  sessionDocument,
  type StickyDocument,
  stickyDocument
} from "./documents.ts"
import type { ConversationState, SessionState } from "./state.ts"
import type { ViewEvent } from "./view.ts"

export interface NewEntry {
  readonly id?: RecordID
  readonly kind: string
  readonly data?: JsonValue
  readonly model?: ReadonlyArray<Message> | null
  readonly head?: EntryHead
  readonly edits?: ReadonlyArray<EntryEdit>
}

export interface NewTask {
  readonly kind: string
  readonly input: JsonValue
  readonly after?: ReadonlyArray<RecordID>
  readonly background?: boolean
}

/** What a commit did to one conversation, for its envelope. */
export interface ConversationChange {
  readonly conversation: ConversationState
  readonly entries: Array<EntryRecord>
  readonly events: Array<ViewEvent>
  sticky: { readonly value: StickyDocument; readonly operations: ReadonlyArray<Operation> } | null
  rewindable: { readonly value: RewindableDocument; readonly operations: ReadonlyArray<Operation> } | null
  readonly tasks: Array<TaskRecord>
  /** What the new entries continue, where that is not the transcript as it was. */
  continues?: ReadonlyArray<EntryRecord>
}

export interface FinishedTransaction {
  readonly batch: Batch
  readonly changes: ReadonlyArray<ConversationChange>
  readonly session: { readonly value: SessionDocument; readonly operations: ReadonlyArray<Operation> } | null
  readonly isEmpty: boolean
}

interface Touched {
  readonly change: ConversationChange
  sticky: Tracked<StickyDocument> | null
  rewindable: Tracked<RewindableDocument> | null
}

export class Transaction {
  readonly #state: SessionState
  readonly #at: number
  readonly #touched = new Map<RecordID, Touched>()
  readonly #tasks = new Map<RecordID, TaskRecord>()
  readonly #inputs = new Map<RecordID, InputRecord>()
  readonly #conversations = new Map<RecordID, ConversationRecord>()
  #session: Tracked<SessionDocument> | null = null
  #poisoned: HarnessError | null = null
  #closed = false

  constructor(state: SessionState, at: number) {
    this.#state = state
    this.#at = at
  }

  /** Milliseconds since the epoch at which this commit began. */
  get now(): number {
    return this.#at
  }

  /** A fresh id; never handed out again, even if this commit comes to nothing. */
  id(letter: "c" | "e" | "i" | "t"): RecordID {
    return `${letter}${this.#state.nextID++}`
  }

  /** Whether the id may be of a task that this commit, or an earlier one, has created. */
  isTaskID(id: RecordID): boolean {
    const number = Number(id.slice(1))
    return id.startsWith("t") && Number.isInteger(number) && number > 0 && number < this.#state.nextID
  }

  /** Makes the whole commit fail with this, also when the builder goes on. */
  poison(error: HarnessError): void {
    this.#poisoned ??= error
  }

  get poisoned(): HarnessError | null {
    return this.#poisoned
  }

  session(): SessionDocument {
    this.#assertOpen()
    this.#session ??= track(this.#state.session)
    return this.#session.draft
  }

  sticky(conversation: ConversationState): StickyDocument {
    const touched = this.#touch(conversation)
    touched.sticky ??= track(conversation.sticky)
    return touched.sticky.draft
  }

  /** Whether a turn runs in a conversation, as this commit has it; cheaper than a draft of it. */
  inTurn(conversation: ConversationState): boolean {
    const tracked = this.#touched.get(conversation.record.id)?.sticky
    return (tracked == null ? conversation.sticky : tracked.draft).turn !== null
  }

  rewindable(conversation: ConversationState): RewindableDocument {
    const touched = this.#touch(conversation)
    touched.rewindable ??= track(conversation.rewindable)
    return touched.rewindable.draft
  }

  appendEntry(conversation: ConversationState, entry: NewEntry): EntryRecord {
    const ordinal = this.#state.nextID++
    const record: EntryRecord = {
      id: entry.id ?? `e${ordinal}`,
      ordinal,
      conversation: conversation.record.id,
      kind: entry.kind,
      data: entry.data ?? null,
      model: entry.model ?? null,
      head: entry.head ?? null,
      edits: entry.edits ?? null,
      createdAt: this.#at
    }
    this.#touch(conversation).change.entries.push(record)
    this.emit(conversation, { type: "entry.added", id: record.id, kind: record.kind })
    return record
  }

  /** For a head that goes back to entries which are not active: the transcript that it continues. */
  continueFrom(conversation: ConversationState, transcript: ReadonlyArray<EntryRecord>): void {
    this.#touch(conversation).change.continues = transcript
  }

  createTask(conversation: ConversationState, task: NewTask): TaskRecord {
    const ordinal = this.#state.nextID++
    const record: TaskRecord = {
      id: `t${ordinal}`,
      ordinal,
      conversation: conversation.record.id,
      kind: task.kind,
      status: "pending",
      input: task.input,
      checkpoint: null,
      after: task.after ?? [],
      background: task.background ?? false,
      abort: null,
      result: null,
      failure: null,
      createdAt: this.#at
    }
    this.putTask(conversation, record)
    return record
  }

  putTask(conversation: ConversationState, record: TaskRecord): void {
    this.#tasks.set(record.id, record)
    const tasks = this.#touch(conversation).change.tasks
    const known = tasks.findIndex((task) => task.id === record.id)
    if (known < 0) tasks.push(record)
    else tasks[known] = record
  }

  /** A task as this commit sees it; `undefined` once it has ended. */
  task(id: RecordID): TaskRecord | undefined {
    return this.#tasks.get(id) ?? this.#state.tasks.get(id)
  }

  putInput(conversation: ConversationState, record: InputRecord): void {
    this.#touch(conversation)
    this.#inputs.set(record.id, record)
  }

  /** A live input as this commit sees it. */
  input(id: RecordID): InputRecord | undefined {
    return this.#inputs.get(id) ?? this.#state.inputs.get(id)
  }

  putConversation(record: ConversationRecord): void {
    this.#conversations.set(record.id, record)
  }

  emit(conversation: ConversationState, event: ViewEvent): void {
    this.#touch(conversation).change.events.push(event)
  }

  /** Ends the build: revokes all drafts and gives what is to be stored. */
  finish(): FinishedTransaction {
    this.#closed = true
    const documents: Array<DocumentChange> = []
    for (const touched of this.#touched.values()) {
      const { conversation } = touched.change
      const id = conversation.record.id
      touched.change.sticky = flush(touched.sticky)
      touched.change.rewindable = flush(touched.rewindable)
      documentChange(documents, stickyDocument(id), touched.change.sticky, conversation.storedSticky, false)
      documentChange(documents, rewindableDocument(id), touched.change.rewindable, conversation.storedRewindable, true)
    }
    const session = flush(this.#session)
    documentChange(documents, sessionDocument, session, this.#state.storedSession, false)
    const changes = [...this.#touched.values()].map((touched) => touched.change)
    const batch: Batch = {
      conversations: [...this.#conversations.values()],
      entries: changes.flatMap((change) => change.entries),
      tasks: [...this.#tasks.values()],
      inputs: [...this.#inputs.values()],
      documents,
      events: changes.flatMap((change) =>
        change.events.map((event) => ({ conversation: change.conversation.record.id, ...event }))
      ),
      nextID: this.#state.nextID,
      at: this.#at
    }
    const isEmpty = batch.conversations.length === 0 && batch.entries.length === 0 && batch.tasks.length === 0 &&
      batch.inputs.length === 0 && batch.documents.length === 0 && batch.events.length === 0
    return { batch, changes, session, isEmpty }
  }

  /** Ends the build without a trace. */
  discard(): void {
    this.#closed = true
    for (const touched of this.#touched.values()) {
      touched.sticky?.revoke()
      touched.rewindable?.revoke()
    }
    this.#session?.revoke()
  }

  #assertOpen(): void {
    if (this.#closed) {
      throw new HarnessError({
        code: "draft_revoked",
        message: "A transaction was used after its commit had ended; begin another commit."
      })
    }
  }

  #touch(conversation: ConversationState): Touched {
    this.#assertOpen()
    const id = conversation.record.id
    const known = this.#touched.get(id)
    if (known !== undefined) return known
    const touched: Touched = {
      change: { conversation, entries: [], events: [], sticky: null, rewindable: null, tasks: [] },
      sticky: null,
      rewindable: null
    }
    this.#touched.set(id, touched)
    return touched
  }
}

const flush = <T>(
  tracked: Tracked<T> | null
): { readonly value: T; readonly operations: ReadonlyArray<Operation> } | null => {
  if (tracked === null) return null
  const flushed = tracked.flush()
  tracked.revoke()
  return flushed.operations.length === 0 ? null : flushed
}

const documentChange = (
  documents: Array<DocumentChange>,
  document: string,
  change: { readonly value: unknown; readonly operations: ReadonlyArray<Operation> } | null,
  stored: boolean,
  retained: boolean
): void => {
  if (change === null) return
  if (stored) documents.push({ document, operations: change.operations, retained })
  else documents.push({ document, base: change.value as JsonValue, retained })
}
