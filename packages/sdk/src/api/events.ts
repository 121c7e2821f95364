/**
 * What event streams say, by the type that stands in `event:`.
 *
 * Durable events have ids and are never missing between two of them unless a `gap` says so. Live ones have none: they show an
 * answer while it is written, each says where it belongs, and what they said stands in the durable ones that follow.
 */
import * as Schema from "effect/Schema"
import { Session, Timestamp } from "./session-schemas.ts"

/** Something that was committed: `entry.added`, `turn.started`, `turn.ended`, `tool.finished`, `plugin.<id>.<name>`, … */
export const DurableEvent = Schema.StructWithRest(
  Schema.Struct({ type: Schema.String, sequence: Schema.Finite, at: Timestamp }),
  [Schema.Record(Schema.String, Schema.Json)]
)

/** Text of the answer that is being written. `text` stands at `offset` of part `part`; what was behind it is replaced. */
export const DeltaEvent = Schema.Struct({
  type: Schema.Literal("delta"),
  /** The generation that writes it; `generation.started` and `generation.completed` name it too. */
  task: Schema.String,
  part: Schema.Finite,
  kind: Schema.Literals(["text", "reasoning", "tool-call"]),
  /** In UTF-16 code units. */
  offset: Schema.Finite,
  text: Schema.String
})

/** Output of a running tool, its tail only. */
export const ToolOutputEvent = Schema.Struct({
  type: Schema.Literal("tool.output"),
  callID: Schema.String,
  offset: Schema.Finite,
  text: Schema.String
})

/** First in a stream: everything after this place follows. */
export const ReadyEvent = Schema.Struct({ type: Schema.Literal("ready"), sequence: Schema.Finite })

/** Some durable events are missing: read the session anew, and go on from here. */
export const GapEvent = Schema.Struct({ type: Schema.Literal("gap"), sequence: Schema.optionalKey(Schema.Finite) })

export const InteractionEvent = Schema.Union([
  Schema.Struct({
    type: Schema.Literal("interaction.opened"),
    id: Schema.String,
    interaction: Schema.String,
    sessionID: Schema.String
  }),
  Schema.Struct({ type: Schema.Literal("interaction.closed"), id: Schema.String, outcome: Schema.String })
])

/** What a client that offers a tool is told. The tool is there from `ready` to the end of the stream. */
export const OfferEvent = Schema.Union([
  Schema.Struct({ type: Schema.Literal("ready"), name: Schema.String }),
  Schema.Struct({
    type: Schema.Literal("call"),
    /** To answer under; nobody else is told it. */
    id: Schema.String,
    /** The model's own id of the call. */
    callID: Schema.String,
    /** The session that calls: the one of the offer, or one that works for it. */
    sessionID: Schema.String,
    conversationID: Schema.String,
    input: Schema.Json
  }),
  /** Nobody waits for this call any more. */
  Schema.Struct({ type: Schema.Literal("closed"), id: Schema.String })
])
export type OfferEvent = typeof OfferEvent.Type

/** What happens to all sessions, as the catalogue shows it. */
export const FleetEvent = Schema.Union([
  Schema.Struct({ type: Schema.Literals(["session.created", "session.changed"]), session: Session }),
  Schema.Struct({ type: Schema.Literal("session.deleted"), sessionID: Schema.String }),
  Schema.Struct({
    type: Schema.Literal("host.changed"),
    id: Schema.String,
    directory: Schema.String,
    sessionID: Schema.NullOr(Schema.String),
    state: Schema.String,
    error: Schema.NullOr(Schema.String)
  }),
  GapEvent
])
export type FleetEvent = typeof FleetEvent.Type

/** Of one session, as a client reads it. `sequence` is absent for what is live. */
export type SessionEvent =
  | (typeof ReadyEvent.Type)
  | (typeof DurableEvent.Type)
  | (typeof DeltaEvent.Type)
  | (typeof ToolOutputEvent.Type)
  | (typeof InteractionEvent.Type)
  | (typeof GapEvent.Type)

/** The text of an event stream, for the definition: servers write it and clients read it in frames of their own. */
export const EventStreamText = Schema.String.annotate({
  description: "Server-sent events: `id`, `event` and `data` (one JSON object), and a comment line every 15 seconds."
})
