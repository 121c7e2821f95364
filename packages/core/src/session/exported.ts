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
import { maxTitleLength } from "./title.ts"

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

/** A time that there is: others cannot be shown. */
const Time = Schema.Finite.check(Schema.isBetween({ minimum: -8.64e15, maximum: 8.64e15 }))

const Conversation = Schema.Struct({
  id: ID,
  parent: Schema.NullOr(Schema.Struct({ conversation: ID, at: Schema.NullOr(ID) })),
  createdAt: Time
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
  createdAt: Time
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

/** Longer names of agents and models are none. */
const maxNameLength = 500

/** More dollars or tokens than anybody will have used. */
const maxAmount = 1e15

/** More conversations in one session than any has; each costs whoever opens it. */
const maxConversations = 1_000

/** More places at which a conversation was summarized or taken back than any has; each costs whoever reads it. */
const maxHeads = 2_000

/** What is wrong with the record, beyond its shape, or `null`. */
const misrecorded = ({ agent, cost, model, title, usage }: SessionRecord): string | null => {
  if (title.length > maxTitleLength) {
    return `its title has ${title.length} characters, and a title has at most ${maxTitleLength}`
  }
  for (const [name, value] of Object.entries({ agent, provider: model?.provider, model: model?.model })) {
    if (value != null && value.length > maxNameLength) {
      return `the name of its ${name} has ${value.length} characters, and a name has at most ${maxNameLength}`
    }
  }
  for (const [name, amount] of Object.entries({ cost, ...usage })) {
    const what = name === "cost" ? "its cost" : `its usage (${name})`
    if (amount < 0) return `${what} is below zero (${amount})`
    if (amount > maxAmount) return `${what} is larger than anybody's (${amount})`
  }
  return null
}

/** What is wrong with how the parts refer to each other, or `null`. */
const misfit = ({ conversations, entries }: SessionExport): string | null => {
  const ordinals = new Map(entries.map(({ id, ordinal }) => [id, ordinal]))
  const places = new Map(conversations.map(({ id }, index) => [id, index]))
  if (ordinals.size < entries.length) return "two entries have one id"
  if (places.size < conversations.length) return "two conversations have one id"
  if (new Set(entries.map((entry) => entry.ordinal)).size < entries.length) return "two entries have one place"
  if (conversations.length > maxConversations) {
    return `it has ${conversations.length} conversations, and a session has at most ${maxConversations}`
  }
  if (entries.filter(({ head }) => head !== null).length > maxHeads) {
    return `it was summarized or taken back more than ${maxHeads} times`
  }
  for (const [index, { id, parent }] of conversations.entries()) {
    if (parent === null) continue
    // A parent stands before its forks, so there can be no circle.
    const place = places.get(parent.conversation)
    if (place === undefined || place >= index) {
      return `conversation ${id} is a fork of ${parent.conversation}, which is not before it`
    }
    if (parent.at !== null && !ordinals.has(parent.at)) {
      return `conversation ${id} is forked at ${parent.at}, which is not there`
    }
  }
  for (const { conversation, edits, head, id, ordinal } of entries) {
    if (!places.has(conversation)) return `entry ${id} is of conversation ${conversation}, which is not there`
    /** Only what came earlier can be meant, so there can be no circle here either. */
    const misplaced = (other: string): string | null => {
      const at = ordinals.get(other)
      return at === undefined ? "which is not there" : at >= ordinal ? "which is not before it" : null
    }
    const after = head === null ? null : "at" in head ? head.at : head.after
    const why = after === null ? null : misplaced(after)
    if (why !== null) return `entry ${id} continues after ${after}, ${why}`
    for (const edit of edits ?? []) {
      const fault = misplaced(edit.entry)
      if (fault !== null) return `entry ${id} edits ${edit.entry}, ${fault}`
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
    const why = misrecorded(decoded.record) ?? misfit(decoded)
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
