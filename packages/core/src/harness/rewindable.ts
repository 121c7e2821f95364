/**
 * The rewindable document of a conversation as it was at an entry: what a fork there begins with, and what a namespace can
 * read back. Only this document is kept as of every commit; sticky and session-wide state is about the present alone.
 */
import * as Effect from "effect/Effect"
import type { JsonValue } from "../json/index.ts"
import type { ConversationRecord, EntryRecord, RecordID, StorageError, StorageReader } from "../storage/index.ts"
import { rewindableDocument } from "./documents.ts"

/** As of the end of a commit; `null` while nothing had been written. Before a fork was made, it is its parent's. */
export const rewindableAt = (
  storage: StorageReader,
  record: ConversationRecord,
  sequence: number
): Effect.Effect<JsonValue, StorageError> =>
  Effect.gen(function*() {
    const own = yield* storage.documentAt(rewindableDocument(record.id), sequence)
    const { parent } = record
    if (own !== null || parent === null) return own
    const above = yield* storage.conversation(parent.conversation)
    const forked = parent.at === null ? null : yield* storage.sequenceOf(parent.at)
    return above === null || forked === null ? null : yield* rewindableAt(storage, above, Math.min(sequence, forked))
  })

/** The commit of an entry that is part of a conversation, inherited ones included; `null` for any other. */
export const sequenceInLineage = Effect.fnUntraced(function*(
  storage: StorageReader,
  record: ConversationRecord,
  id: RecordID
): Effect.fn.Return<number | null, StorageError> {
  const entry = yield* storage.entry(id)
  if (entry === null) return null
  let bound = Infinity
  let lineage: ConversationRecord | null = record
  while (lineage !== null) {
    if (entry.conversation === lineage.id) return entry.ordinal <= bound ? yield* storage.sequenceOf(id) : null
    const { parent }: ConversationRecord = lineage
    if (parent === null || parent.at === null) return null
    const at: EntryRecord | null = yield* storage.entry(parent.at)
    bound = Math.min(bound, at?.ordinal ?? 0)
    lineage = yield* storage.conversation(parent.conversation)
  }
  return null
})
