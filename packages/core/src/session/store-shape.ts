/** What the session store offers, as types: requests, pages, and the operations on all sessions. */
import type * as Effect from "effect/Effect"
import type { JsonValue } from "../json/index.ts"
import type { LocationRef } from "../location/index.ts"
import type { Message, ModelRef } from "../model/index.ts"
import type { HistoryItem, SessionInUse, StorageError } from "../storage/index.ts"
import type {
  InvalidCursor,
  SessionExists,
  SessionPage,
  SessionRecord,
  SessionStatus,
  SessionUsage,
  UnknownMessage,
  UnknownSession
} from "./record.ts"

export interface CreateSession {
  readonly location: LocationRef
  readonly title?: string
  readonly parentID?: string | null
  readonly forkedFrom?: string
  readonly agent?: string | null
  readonly model?: ModelRef | null
  /** Names the session; default a fresh id. */
  readonly id?: string
}

export interface ListSessions {
  readonly location?: LocationRef
  /** `null`: only sessions that are nobody's child. */
  readonly parentID?: string | null
  /** Part of the title, in any case. */
  readonly text?: string
  /** Default: both. */
  readonly archived?: boolean
  /** Default 50, at most 1,000. */
  readonly limit?: number
  readonly cursor?: string
}

/** An entry of a transcript as a reader sees it; `model` is what the model sees of it. */
export interface SessionMessage {
  readonly id: string
  readonly conversationID: string
  readonly kind: string
  readonly data: JsonValue
  readonly model: ReadonlyArray<Message> | null
  readonly createdAt: number
}

export interface ReadMessages {
  /** Default: the session's main conversation. */
  readonly conversationID?: string
  /** Default 100, at most 1,000; a page also ends at about 1 MiB. */
  readonly limit?: number
  readonly cursor?: string
}

/** Oldest first; the first page is the end of the transcript. */
export interface MessagePage {
  readonly messages: ReadonlyArray<SessionMessage>
  /** Leads to what came before this page; `null` at the beginning. */
  readonly cursor: string | null
}

/** What whoever runs a session reports of it. Totals are absolute. */
export interface SessionReport {
  readonly status?: SessionStatus
  readonly usage?: SessionUsage
  readonly cost?: number
}

export interface SessionStoreShape {
  /** A new record, `starting`. Nothing is written into the session yet. */
  readonly create: (input: CreateSession) => Effect.Effect<SessionRecord, SessionExists | UnknownSession | StorageError>
  readonly get: (sessionID: string) => Effect.Effect<SessionRecord, UnknownSession | StorageError>
  /** Told by who has opened a session for writing: from now on its record is in its folder too. */
  readonly opened: (sessionID: string) => Effect.Effect<void, StorageError>
  /** By newest activity. A record that is damaged is left out, with a warning in the log. */
  readonly list: (input?: ListSessions) => Effect.Effect<SessionPage, InvalidCursor | StorageError>
  readonly messages: (
    sessionID: string,
    input?: ReadMessages
  ) => Effect.Effect<MessagePage, UnknownSession | InvalidCursor | StorageError>
  readonly message: (
    sessionID: string,
    messageID: string
  ) => Effect.Effect<SessionMessage, UnknownSession | UnknownMessage | StorageError>
  /** What the model would see now of a conversation (default: the main one), without system messages. */
  readonly context: (
    sessionID: string,
    conversationID?: string
  ) => Effect.Effect<ReadonlyArray<Message>, UnknownSession | StorageError>
  /** Commits with events after a sequence, oldest first; `limit` is 100 by default. */
  readonly history: (
    sessionID: string,
    after: number,
    limit?: number
  ) => Effect.Effect<ReadonlyArray<HistoryItem>, UnknownSession | StorageError>
  readonly rename: (sessionID: string, title: string) => Effect.Effect<SessionRecord, UnknownSession | StorageError>
  readonly switchAgent: (
    sessionID: string,
    agent: string | null
  ) => Effect.Effect<SessionRecord, UnknownSession | StorageError>
  readonly switchModel: (
    sessionID: string,
    model: ModelRef | null
  ) => Effect.Effect<SessionRecord, UnknownSession | StorageError>
  readonly archive: (
    sessionID: string,
    archived?: boolean
  ) => Effect.Effect<SessionRecord, UnknownSession | StorageError>
  /** What a runtime reports; a report is activity, and moves the session to the front of listings. */
  readonly report: (
    sessionID: string,
    report: SessionReport
  ) => Effect.Effect<SessionRecord, UnknownSession | StorageError>
  /** Deletes the session with all that is kept of it, and its children. Refused while it, or one of them, is in use. */
  readonly remove: (sessionID: string) => Effect.Effect<void, UnknownSession | StorageError | SessionInUse>
}
