/**
 * What the catalogue knows of a session: enough to list, find and resume it without opening it.
 *
 * A record's agent and model are defaults; a conversation's own config overrides them. Its status and totals are written by
 * whoever runs the session, so after a crash a status may say `active` until the session is opened again.
 */
import * as Schema from "effect/Schema"

export const SessionStatus = Schema.Literals(["starting", "active", "idle", "closed", "failed"])
export type SessionStatus = typeof SessionStatus.Type

/** Totals of a session. Tokens. */
export const SessionUsage = Schema.Struct({
  input: Schema.Finite,
  output: Schema.Finite,
  cacheRead: Schema.Finite,
  cacheWrite: Schema.Finite
})
export type SessionUsage = typeof SessionUsage.Type

const Location = Schema.Struct({ directory: Schema.String, workspaceID: Schema.NullOr(Schema.String) })

const Model = Schema.Struct({ provider: Schema.String, model: Schema.String })

export const SessionRecord = Schema.Struct({
  /** `ses_` and what sorts by time of creation. */
  id: Schema.String,
  title: Schema.String,
  location: Location,
  /** The session that this one was made for, as a sub-agent's is. */
  parentID: Schema.NullOr(Schema.String),
  /** The session that this one began as a copy of; that may be gone. */
  forkedFrom: Schema.optionalKey(Schema.String),
  agent: Schema.NullOr(Schema.String),
  model: Schema.NullOr(Model),
  status: SessionStatus,
  /** Milliseconds since the epoch, by this machine's clock. The order of sessions does not depend on it. */
  createdAt: Schema.Finite,
  updatedAt: Schema.Finite,
  usage: SessionUsage,
  /** US dollars. */
  cost: Schema.Finite,
  /** The Bezel that created it. */
  version: Schema.String,
  archived: Schema.Boolean
})
export interface SessionRecord extends Schema.Schema.Type<typeof SessionRecord> {}

/** What a listing shows: one page, newest activity first. */
export interface SessionPage {
  readonly sessions: ReadonlyArray<SessionRecord>
  /** Continues after this page; `null` at the end. */
  readonly cursor: string | null
}

export class UnknownSession extends Schema.TaggedError<UnknownSession>()("UnknownSession", {
  sessionID: Schema.String,
  message: Schema.String
}) {}

export class UnknownMessage extends Schema.TaggedError<UnknownMessage>()("UnknownMessage", {
  sessionID: Schema.String,
  messageID: Schema.String,
  message: Schema.String
}) {}

/** A cursor that no page has given. */
export class InvalidCursor extends Schema.TaggedError<InvalidCursor>()("InvalidCursor", {
  message: Schema.String
}) {}

/** The id that was asked for has a session already. */
export class SessionExists extends Schema.TaggedError<SessionExists>()("SessionExists", {
  sessionID: Schema.String,
  message: Schema.String
}) {}
