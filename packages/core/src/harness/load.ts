/**
 * Reads what an open session needs from storage: its state at open, a conversation at first use, a transcript at first
 * demand. None of it reads the whole history: a transcript starts at its newest head.
 */
import * as Effect from "effect/Effect"
import { stored } from "../json/index.ts"
import type { ConversationRecord, EntryRecord, RecordID, StorageError, StorageReader } from "../storage/index.ts"
import { activeEntries } from "./context.ts"
import {
  emptyRewindable,
  emptySession,
  emptySticky,
  type RewindableDocument,
  rewindableDocument,
  type SessionDocument,
  sessionDocument,
  type StickyDocument,
  stickyDocument
} from "./documents.ts"
import type { ConversationState, SessionState } from "./state.ts"
import type { ConversationConfig } from "./view.ts"

export const loadSession = Effect.fn("Harness.load")(function*(
  storage: StorageReader,
  sessionID: string
): Effect.fn.Return<SessionState, StorageError> {
  const session = yield* storage.document(sessionDocument)
  const tasks = yield* storage.liveTasks
  const inputs = yield* storage.liveInputs
  return {
    sessionID,
    nextID: yield* storage.nextID,
    session: session === null ? emptySession() : stored<SessionDocument>(session),
    storedSession: session !== null,
    conversations: new Map(),
    tasks: new Map(tasks.map((task) => [task.id, task])),
    inputs: new Map(inputs.map((input) => [input.id, input])),
    listeners: new Set()
  }
})

/** A conversation of which storage has nothing yet. */
export const newConversation = (record: ConversationRecord, defaults: ConversationConfig): ConversationState => ({
  record,
  rewindable: emptyRewindable(defaults),
  sticky: emptySticky(),
  storedRewindable: false,
  storedSticky: false,
  transcript: null,
  revision: 0,
  view: null,
  watchers: new Set()
})

export const loadConversation = Effect.fnUntraced(function*(
  storage: StorageReader,
  record: ConversationRecord,
  defaults: ConversationConfig
): Effect.fn.Return<ConversationState, StorageError> {
  const rewindable = yield* storage.document(rewindableDocument(record.id))
  const sticky = yield* storage.document(stickyDocument(record.id))
  const fresh = newConversation(record, defaults)
  return {
    ...fresh,
    ...(rewindable === null ? {} : { rewindable: stored<RewindableDocument>(rewindable) }),
    sticky: sticky === null ? fresh.sticky : { ...fresh.sticky, ...stored<StickyDocument>(sticky) },
    storedRewindable: rewindable !== null,
    storedSticky: sticky !== null
  }
})

/** One stretch of a conversation's lineage: entries of `conversation` up to and including ordinal `until`. */
interface Stretch {
  readonly conversation: RecordID
  readonly until: number | null
}

/** A conversation and the ancestors that it was forked from, oldest first, each up to its fork point. */
const lineage = Effect.fnUntraced(function*(
  storage: StorageReader,
  record: ConversationRecord,
  until: number | null
): Effect.fn.Return<ReadonlyArray<Stretch>, StorageError> {
  const stretches: Array<Stretch> = [{ conversation: record.id, until }]
  let parent = record.parent
  while (parent !== null) {
    if (parent.at === null) break
    const at = yield* storage.entry(parent.at)
    // A fork at an inherited entry ends the parent's own stretch before it begins.
    stretches.unshift({ conversation: parent.conversation, until: at?.ordinal ?? 0 })
    const record: ConversationRecord | null = yield* storage.conversation(parent.conversation)
    parent = record?.parent ?? null
  }
  return boundedBy(stretches)
})

/** An ancestor never shows more than its descendant's fork point allows. */
const boundedBy = (stretches: ReadonlyArray<Stretch>): ReadonlyArray<Stretch> => {
  const bounded: Array<Stretch> = []
  let bound: number | null = null
  for (const stretch of stretches.toReversed()) {
    const until: number | null = stretch.until === null
      ? bound
      : bound === null
      ? stretch.until
      : Math.min(bound, stretch.until)
    bounded.unshift({ conversation: stretch.conversation, until })
    bound = until
  }
  return bounded
}

const scanStretch = (
  storage: StorageReader,
  stretch: Stretch,
  after: number
): Effect.Effect<ReadonlyArray<EntryRecord>, StorageError> =>
  storage.entries({
    conversation: stretch.conversation,
    ...(after > 0 ? { after } : {}),
    ...(stretch.until === null ? {} : { before: stretch.until + 1 })
  })

/**
 * The active transcript of a conversation: its newest head, what that keeps and what follows, oldest first, inherited entries
 * included. With `until`, as it was at the entry of that ordinal.
 */
export const loadTranscript = Effect.fn("Harness.transcript")(function*(
  storage: StorageReader,
  record: ConversationRecord,
  until: number | null = null
): Effect.fn.Return<ReadonlyArray<EntryRecord>, StorageError> {
  const stretches = yield* lineage(storage, record, until)
  const start = yield* newestStart(storage, stretches)
  const entries: Array<EntryRecord> = []
  for (const stretch of stretches) entries.push(...yield* scanStretch(storage, stretch, start))
  return activeEntries(entries)
})

/** The newest head of a lineage, at or before an ordinal. */
const newestHead = Effect.fnUntraced(function*(
  storage: StorageReader,
  stretches: ReadonlyArray<Stretch>,
  until: number
): Effect.fn.Return<EntryRecord | null, StorageError> {
  for (const stretch of stretches.toReversed()) {
    const bound = Math.min(until, stretch.until ?? until)
    const [head] = yield* storage.entries({
      conversation: stretch.conversation,
      heads: true,
      newestFirst: true,
      limit: 1,
      ...(bound === Infinity ? {} : { before: bound + 1 })
    })
    if (head !== undefined) return head
  }
  return null
})

/** The ordinal behind which the active transcript lies: just before its newest head, or before what that head keeps. */
const newestStart = Effect.fnUntraced(function*(
  storage: StorageReader,
  stretches: ReadonlyArray<Stretch>
): Effect.fn.Return<number, StorageError> {
  let until = Infinity
  for (;;) {
    const head = yield* newestHead(storage, stretches, until)
    if (head === null || head.head === null) return 0
    if ("after" in head.head) {
      const kept = head.head.after === null ? null : yield* storage.entry(head.head.after)
      // The kept entry itself is read as well: the head's rule is stated by it.
      return Math.min(head.ordinal, kept?.ordinal ?? head.ordinal) - 1
    }
    // What was active at that entry starts where the head before it says, and that lies further back each time.
    const at = yield* storage.entry(head.head.at)
    until = Math.min(at?.ordinal ?? 0, head.ordinal - 1)
  }
})
