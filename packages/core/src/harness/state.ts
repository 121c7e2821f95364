/**
 * What an open session holds in memory: the newest documents, live tasks and inputs, and the conversations in use.
 *
 * All of it is a copy of what storage has; only the commit line changes it, after storage has the change.
 */
import type * as Queue from "effect/Queue"
import type { ConversationRecord, EntryRecord, InputRecord, RecordID, TaskRecord } from "../storage/index.ts"
import type { HarnessError, SessionEvents } from "./api.ts"
import type { RewindableDocument, SessionDocument, StickyDocument } from "./documents.ts"
import type { ConversationView, Envelope } from "./view.ts"

export interface ConversationState {
  record: ConversationRecord
  rewindable: RewindableDocument
  sticky: StickyDocument
  /** Whether storage has a base of the document yet. */
  storedRewindable: boolean
  storedSticky: boolean
  /**
   * The active transcript, oldest first: a newest head with all that follows it. Read at the first demand; then it grows in
   * place with each commit, so whoever keeps it across one copies it.
   */
  transcript: Array<EntryRecord> | null
  /** Counts the commits that touched this conversation since it was loaded. */
  revision: number
  /** Kept while somebody watches; otherwise made when asked for. */
  view: ConversationView | null
  watchers: Set<Queue.Queue<Envelope, HarnessError>>
}

export interface SessionState {
  readonly sessionID: string
  nextID: number
  session: SessionDocument
  storedSession: boolean
  readonly conversations: Map<RecordID, ConversationState>
  /** Pending and running tasks. */
  readonly tasks: Map<RecordID, TaskRecord>
  /** Queued and placed inputs. */
  readonly inputs: Map<RecordID, InputRecord>
  /** Those who follow what happens in all conversations. */
  readonly listeners: Set<Queue.Queue<SessionEvents, HarnessError>>
}
