/**
 * Going back in a conversation, and forth again: each is one head entry, so that nothing of what was said is lost.
 *
 *     e1 … e5 e6 … e9 ──rewind to e6──▶ e1 … e5 R        the model and the view have e1 … e5
 *                     ──restore R────▶ e1 … e9 R'        as it was, as long as nothing was said after R
 *
 * Settings and rewindable state of plugins go with it: as they were before the entry, or just before the rewind.
 */
import * as Effect from "effect/Effect"
import {
  type ConversationConfig,
  type ConversationState,
  HarnessError,
  loadTranscript,
  rewindableAt,
  type Session,
  type Transaction
} from "../harness/index.ts"
import type { JsonValue } from "../json/index.ts"
import type { EntryRecord, StorageError } from "../storage/index.ts"
import { isBusy } from "./inbox.ts"
import { entryKinds } from "./kinds.ts"

type Rewinding = (entry: string, data: JsonValue) => Effect.Effect<string, HarnessError>

const fault = (error: StorageError): HarnessError =>
  new HarnessError({ code: "faulted", message: `This session could not be read: ${error.message}` })

export const rewinding = (
  session: Session,
  state: ConversationState
): { readonly rewind: Rewinding; readonly restore: Rewinding } => {
  const { line, storage } = session

  /** The rewindable document before the commit that wrote an entry, which a fork may have inherited. */
  const documentBefore = (entry: EntryRecord) =>
    Effect.mapError(
      Effect.flatMap(
        storage.sequenceOf(entry.id),
        (sequence) => rewindableAt(storage, state.record, (sequence ?? 1) - 1)
      ),
      fault
    )

  /** To how the conversation was just before an entry was written; `assertAllowed` looks when nothing can come between. */
  const goBefore = (entry: EntryRecord, data: JsonValue, assertAllowed: (active: ReadonlyArray<EntryRecord>) => void) =>
    Effect.gen(function*() {
      const earlier = yield* Effect.mapError(loadTranscript(storage, state.record, entry.ordinal - 1), fault)
      const newest = earlier.toSorted((left, right) => left.ordinal - right.ordinal).at(-1)
      const before = yield* documentBefore(entry)
      yield* session.transcript(state)
      return yield* line.commit((tx) => {
        assertIdle(state)
        assertAllowed(state.transcript ?? [])
        tx.continueFrom(state, earlier)
        const marked = tx.appendEntry(state, {
          kind: entryKinds.rewind,
          data,
          head: newest === undefined ? { after: null } : { at: newest.id }
        })
        setDocument(tx, state, before, session.options.defaults)
        tx.sticky(state).usage.context = 0
        tx.emit(state, { type: "head.moved", entry: marked.id })
        return marked.id
      })
    })

  const rewind: Rewinding = (from, data) =>
    Effect.gen(function*() {
      const entry = yield* Effect.mapError(storage.entry(from), fault)
      const missing = new HarnessError({
        code: "not_found",
        message: `This conversation has no entry "${from.slice(0, 200)}" to go back to.`
      })
      if (entry === null) return yield* missing
      return yield* goBefore(entry, data, (active) => {
        if (!active.some(({ id }) => id === from)) throw missing
      })
    })

  const restore: Rewinding = (marked, data) =>
    Effect.gen(function*() {
      const entry = yield* Effect.mapError(storage.entry(marked), fault)
      if (entry === null || entry.kind !== entryKinds.rewind || entry.conversation !== state.record.id) {
        return yield* new HarnessError({
          code: "not_found",
          message: `This conversation has no rewind "${marked.slice(0, 200)}" to undo.`
        })
      }
      return yield* goBefore(entry, data, (active) => {
        const index = active.findIndex(({ id }) => id === marked)
        if (index >= 0 && active.slice(index + 1).every(({ model }) => model === null)) return
        throw new HarnessError({
          code: "invalid",
          message:
            "The conversation has gone on since it was rewound, so what was taken back cannot be brought back into it."
        })
      })
    })

  return { rewind, restore }
}

const assertIdle = (state: ConversationState): void => {
  if (!isBusy(state)) return
  throw new HarnessError({
    code: "busy",
    message: "A turn is running in this conversation; interrupt it or wait before you go back."
  })
}

/** What was never written was as it began: with the settings that the session gives, and without state of plugins. */
const setDocument = (
  tx: Transaction,
  state: ConversationState,
  before: JsonValue,
  defaults: ConversationConfig
): void => {
  const draft = tx.rewindable(state)
  draft.config = { ...defaults }
  delete draft.kinds
  draft.plugins = {}
  if (before !== null) Object.assign(draft, before)
}
