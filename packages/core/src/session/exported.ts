/**
 * A session as one JSON document, to carry it to another machine or to keep it.
 *
 * It holds the record, the conversations and their entries: all that a person or a model reads. What only lives while a
 * session works (queued inputs, tasks, plugin state) stays behind, so an imported session is at rest. A document from
 * elsewhere is checked whole before anything is stored: shapes, ids, and that everything it refers to is in it.
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { JsonValue } from "../json/index.ts"
import type { Batch, EntryRecord, StorageError, StorageReader } from "../storage/index.ts"
import { SessionRecord } from "./record.ts"

/** A document that is no session, or whose parts do not fit each other. */
export class InvalidExport extends Schema.TaggedError<InvalidExport>()("InvalidExport", {
  message: Schema.String
}) {}

const JsonObject = Schema.Record(Schema.String, JsonValue)
const options = { options: Schema.optionalKey(Schema.Record(Schema.String, JsonObject)) }

const Text = Schema.Struct({ type: Schema.Literal("text"), text: Schema.String, ...options })
const Reasoning = Schema.Struct({ type: Schema.Literal("reasoning"), text: Schema.String, ...options })
const File = Schema.Struct({
  type: Schema.Literal("file"),
  mediaType: Schema.String,
  fileName: Schema.optionalKey(Schema.String),
  data: Schema.String,
  ...options
})
const ToolCall = Schema.Struct({
  type: Schema.Literal("tool-call"),
  id: Schema.String,
  name: Schema.String,
  params: JsonValue,
  ...options
})
const ToolResult = Schema.Struct({
  type: Schema.Literal("tool-result"),
  id: Schema.String,
  name: Schema.String,
  isFailure: Schema.Boolean,
  result: JsonValue,
  modelOutput: Schema.optionalKey(Schema.Array(Schema.Union([Text, File]))),
  ...options
})
const Message = Schema.Union([
  Schema.Struct({ role: Schema.Literal("system"), content: Schema.String, ...options }),
  Schema.Struct({ role: Schema.Literal("user"), content: Schema.Array(Schema.Union([Text, File])), ...options }),
  Schema.Struct({
    role: Schema.Literal("assistant"),
    content: Schema.Array(Schema.Union([Text, Reasoning, File, ToolCall])),
    ...options
  }),
  Schema.Struct({ role: Schema.Literal("tool"), content: Schema.Array(ToolResult), ...options })
])
const Messages = Schema.NullOr(Schema.Array(Message))

const ID = Schema.String.check(Schema.isPattern(/^[a-z][0-9]{1,15}$/))

const Conversation = Schema.Struct({
  id: ID,
  parent: Schema.NullOr(Schema.Struct({ conversation: ID, at: Schema.NullOr(ID) })),
  createdAt: Schema.Finite
})

/** What follows the last place gets the next numbers, which have to be exact too. No session comes near the end. */
const Ordinal = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 1e14 }))

const Entry = Schema.Struct({
  id: ID,
  ordinal: Ordinal,
  conversation: ID,
  kind: Schema.String,
  data: JsonValue,
  model: Messages,
  head: Schema.NullOr(
    Schema.Union([Schema.Struct({ after: Schema.NullOr(ID) }), Schema.Struct({ at: ID })])
  ),
  edits: Schema.NullOr(Schema.Array(Schema.Struct({ entry: ID, model: Messages }))),
  createdAt: Schema.Finite
})

export const SessionExport = Schema.Struct({
  bezel: Schema.Literal("session"),
  format: Schema.Literal(1),
  record: SessionRecord,
  conversations: Schema.Array(Conversation),
  entries: Schema.Array(Entry)
})
export interface SessionExport extends Schema.Schema.Type<typeof SessionExport> {}

const Format = Schema.Struct({ bezel: Schema.Literal("session"), format: Schema.Int })

/** Collects a session from its storage (`null`: it was never written). */
export const collectExport = Effect.fnUntraced(function*(
  record: SessionRecord,
  storage: StorageReader | null
): Effect.fn.Return<SessionExport, StorageError> {
  const conversations = storage === null ? [] : yield* storage.conversations
  const entries: Array<EntryRecord> = []
  if (storage !== null) {
    for (const conversation of conversations) {
      for (const entry of yield* storage.entries({ conversation: conversation.id })) entries.push(entry)
    }
  }
  return {
    bezel: "session",
    format: 1,
    record,
    conversations: conversations.map(({ createdAt, id, parent }) => ({ id, parent, createdAt })),
    entries: entries.toSorted((left, right) => left.ordinal - right.ordinal)
  }
})

const invalid = (why: string): InvalidExport =>
  new InvalidExport({ message: `this is no session that Bezel can import: ${why}` })

/** What is wrong with how the parts refer to each other, or `null`. */
const misfit = ({ conversations, entries }: SessionExport): string | null => {
  const knownEntries = new Set(entries.map((entry) => entry.id))
  const knownConversations = new Set(conversations.map((conversation) => conversation.id))
  if (knownEntries.size < entries.length) return "two entries have one id"
  if (knownConversations.size < conversations.length) return "two conversations have one id"
  if (new Set(entries.map((entry) => entry.ordinal)).size < entries.length) return "two entries have one place"
  for (const [index, { id, parent }] of conversations.entries()) {
    if (parent === null) continue
    // A parent stands before its forks, so there can be no circle.
    const place = conversations.findIndex((other) => other.id === parent.conversation)
    if (place < 0 || place >= index) {
      return `conversation ${id} is a fork of ${parent.conversation}, which is not before it`
    }
    if (parent.at !== null && !knownEntries.has(parent.at)) {
      return `conversation ${id} is forked at ${parent.at}, which is not there`
    }
  }
  for (const { conversation, edits, head, id } of entries) {
    if (!knownConversations.has(conversation)) {
      return `entry ${id} is of conversation ${conversation}, which is not there`
    }
    const after = head === null ? null : "at" in head ? head.at : head.after
    if (after !== null && !knownEntries.has(after)) return `entry ${id} continues after ${after}, which is not there`
    for (const edit of edits ?? []) {
      if (!knownEntries.has(edit.entry)) return `entry ${id} edits ${edit.entry}, which is not there`
    }
  }
  return null
}

const decode = Schema.decodeUnknownEffect(SessionExport)
const decodeFormat = Schema.decodeUnknownEffect(Format)

/** Checks a document from elsewhere. */
export const decodeExport = Effect.fnUntraced(
  function*(value: unknown): Effect.fn.Return<SessionExport, InvalidExport> {
    const { format } = yield* Effect.mapError(
      decodeFormat(value),
      () => invalid(`it lacks {"bezel":"session","format":1}`)
    )
    if (format !== 1) {
      return yield* invalid(`it has format ${format}, and this Bezel reads format 1; upgrade Bezel to import it`)
    }
    const decoded = yield* Effect.mapError(
      decode(value),
      (error) => invalid(error.message.replaceAll(/\s+/g, " ").slice(0, 500))
    )
    const why = misfit(decoded)
    return why === null ? decoded : yield* invalid(why)
  }
)

/** The one commit that makes an empty session this one. */
export const batchOfExport = ({ conversations, entries }: SessionExport, at: number): Batch => {
  const numbers = [...conversations, ...entries].map((item) => Number(item.id.slice(1)))
  let last = 0
  for (const number of [...numbers, ...entries.map((entry) => entry.ordinal)]) last = Math.max(last, number)
  return {
    conversations: conversations.map((conversation) => ({ ...conversation, owner: null })),
    entries: entries.toSorted((left, right) => left.ordinal - right.ordinal),
    tasks: [],
    inputs: [],
    documents: [],
    events: [],
    nextID: last + 1,
    at
  }
}
