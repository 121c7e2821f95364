/**
 * Storage of one session: apply a batch atomically, give one sequence per commit, answer indexed reads.
 *
 * It is mechanical. It never runs kind code, never interprets what it stores, and never reads the whole history to open.
 * What a commit acknowledged is readable for ever; a batch is stored whole or not at all. Every backend passes the
 * conformance suite beside this file.
 */
import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type { JsonValue } from "../json/index.ts"
import type { Operation } from "../json/index.ts"
import type { Message } from "../model/index.ts"

/** Identifies a record within its session: a letter for its sort and a number that is never used again, such as `e12`. */
export type RecordID = string

export interface ConversationRecord {
  readonly id: RecordID
  /** A fork inherits its parent's transcript up to and including entry `at` (`null`: nothing). */
  readonly parent: { readonly conversation: RecordID; readonly at: RecordID | null } | null
  /** The task that owns a sub-agent's conversation. */
  readonly owner: RecordID | null
  readonly createdAt: number
}

export interface EntryEdit {
  readonly entry: RecordID
  /** `null` omits what the entry contributes, else it is replaced. */
  readonly model: ReadonlyArray<Message> | null
}

/**
 * Where a context starts. `after`: here, followed by the entries after that one (`null`: after this one). `at`: with all that
 * was active at that entry, itself included, followed by the entries after this one.
 */
export type EntryHead = { readonly after: RecordID | null } | { readonly at: RecordID }

export interface EntryRecord {
  readonly id: RecordID
  /** Position in the session's order of entries; strictly increasing. */
  readonly ordinal: number
  readonly conversation: RecordID
  readonly kind: string
  readonly data: JsonValue
  /** What the model sees of it, or `null` for nothing. */
  readonly model: ReadonlyArray<Message> | null
  readonly head: EntryHead | null
  readonly edits: ReadonlyArray<EntryEdit> | null
  /** Milliseconds since the epoch, by this machine's clock. Order is `ordinal`, never this. */
  readonly createdAt: number
}

export type TaskStatus = "pending" | "running" | "completed" | "failed" | "aborted" | "orphaned"

export interface TaskRecord {
  readonly id: RecordID
  readonly ordinal: number
  readonly conversation: RecordID
  readonly kind: string
  readonly status: TaskStatus
  readonly input: JsonValue
  readonly checkpoint: JsonValue
  readonly after: ReadonlyArray<RecordID>
  readonly background: boolean
  /** Set once an abort has been asked for, durably. */
  readonly abort: { readonly reason: string } | null
  readonly result: JsonValue
  readonly failure: JsonValue
  readonly createdAt: number
}

export type InputStatus = "queued" | "placed" | "done" | "unanswered"

/** What an input has its turn configured with. */
export interface InputConfig {
  readonly agent?: string
  readonly model?: { readonly provider: string; readonly model: string }
}

export interface InputRecord {
  readonly id: RecordID
  readonly ordinal: number
  readonly conversation: RecordID
  readonly requestID: string | null
  readonly status: InputStatus
  readonly whenBusy: "followUp" | "steer" | "reject"
  readonly content: JsonValue
  readonly config?: InputConfig
  /** The entry that answered it, once `done`. */
  readonly answer: RecordID | null
  readonly reason: "terminated" | "aborted" | "failed" | "stale" | null
  readonly createdAt: number
}

/** A change of one document: a fresh base, or operations on what is there. A document that was never written is `null`. */
export interface DocumentChange {
  readonly document: string
  readonly base?: JsonValue
  readonly operations?: ReadonlyArray<Operation>
  /** Keep earlier states readable (`documentAt`); otherwise a base may drop what came before. */
  readonly retained: boolean
}

/** Everything that one commit writes. Records are whole; one with a known id replaces the earlier (entries never do). */
export interface Batch {
  readonly conversations: ReadonlyArray<ConversationRecord>
  readonly entries: ReadonlyArray<EntryRecord>
  readonly tasks: ReadonlyArray<TaskRecord>
  readonly inputs: ReadonlyArray<InputRecord>
  readonly documents: ReadonlyArray<DocumentChange>
  /** What `history` shows of this commit; empty for streaming frames. */
  readonly events: ReadonlyArray<JsonValue>
  /** The next number for ids and ordinals; stored so that none is ever used twice. */
  readonly nextID: number
  readonly at: number
}

export interface EntryScan {
  readonly conversation: RecordID
  /** Exclusive bounds by ordinal. */
  readonly after?: number
  readonly before?: number
  readonly kind?: string
  readonly heads?: boolean
  /** Newest first; the default is oldest first. */
  readonly newestFirst?: boolean
  readonly limit?: number
}

export interface HistoryItem {
  readonly sequence: number
  readonly at: number
  readonly events: ReadonlyArray<JsonValue>
}

/** The reads of a session's storage. A reader beside the writer sees whole commits only. */
export interface StorageReader {
  /** Sequence of the newest commit; 0 before the first. */
  readonly sequence: Effect.Effect<number, StorageError>
  readonly nextID: Effect.Effect<number, StorageError>
  readonly conversation: (id: RecordID) => Effect.Effect<ConversationRecord | null, StorageError>
  readonly conversations: Effect.Effect<ReadonlyArray<ConversationRecord>, StorageError>
  readonly entry: (id: RecordID) => Effect.Effect<EntryRecord | null, StorageError>
  readonly entries: (scan: EntryScan) => Effect.Effect<ReadonlyArray<EntryRecord>, StorageError>
  readonly task: (id: RecordID) => Effect.Effect<TaskRecord | null, StorageError>
  /** Tasks that are pending or running, by ordinal. */
  readonly liveTasks: Effect.Effect<ReadonlyArray<TaskRecord>, StorageError>
  readonly input: (id: RecordID) => Effect.Effect<InputRecord | null, StorageError>
  readonly inputByRequest: (requestID: string) => Effect.Effect<InputRecord | null, StorageError>
  /** Inputs that are queued or placed, by ordinal. */
  readonly liveInputs: Effect.Effect<ReadonlyArray<InputRecord>, StorageError>
  readonly document: (document: string) => Effect.Effect<JsonValue, StorageError>
  /** The document as of the end of commit `sequence`. */
  readonly documentAt: (document: string, sequence: number) => Effect.Effect<JsonValue, StorageError>
  /** The commit that wrote an entry. */
  readonly sequenceOf: (entry: RecordID) => Effect.Effect<number | null, StorageError>
  readonly history: (after: number, limit: number) => Effect.Effect<ReadonlyArray<HistoryItem>, StorageError>
}

export interface Storage extends StorageReader {
  /** Applies the batch atomically and gives its sequence: the previous one plus 1. */
  readonly commit: (batch: Batch) => Effect.Effect<number, StorageError>
}

/** A fault of a session's storage. `message` says what happened, where (`path`), and what to do. */
export class StorageError extends Schema.TaggedError<StorageError>()("StorageError", {
  kind: Schema.Literals([
    "not_found",
    /** What is stored cannot be read back; `message` names file and place. */
    "corrupt",
    /** Written by a newer Bezel. */
    "newer_version",
    /** Written by an older Bezel, and not yet brought up to date: that is done when it is opened for writing. */
    "older_version",
    "disk_full",
    "read_only",
    "permission",
    /** Anything else of the operating system; whether the batch was stored is unknown. */
    "io"
  ]),
  message: Schema.String,
  path: Schema.NullOr(Schema.String)
}) {}

/** Another process holds this session's writer lease. */
export class SessionInUse extends Schema.TaggedError<SessionInUse>()("SessionInUse", {
  sessionID: Schema.String,
  holder: Schema.Struct({ pid: Schema.Int, startedAt: Schema.String, command: Schema.String })
}) {
  override get message(): string {
    const { command, pid, startedAt } = this.holder
    const who = pid === 0 ? "another process" : `process ${pid} (${command}, since ${startedAt})`
    return `the session ${this.sessionID} is in use by ${who}; wait until it has ended, or go on there`
  }
}

/** Where sessions are kept: opens one for writing (exclusive, for the life of the scope) or for reading beside its writer. */
export interface SessionFiles {
  readonly write: (sessionID: string) => Effect.Effect<Storage, StorageError | SessionInUse, Scope.Scope>
  readonly read: (sessionID: string) => Effect.Effect<StorageReader, StorageError, Scope.Scope>
  /** Deletes all that is kept of a session; refuses one that is in use. */
  readonly remove: (sessionID: string) => Effect.Effect<void, StorageError | SessionInUse>
  /** A folder of the session's own for artifacts; 0700, made on demand. */
  readonly folder: (sessionID: string) => Effect.Effect<string, StorageError>
}
