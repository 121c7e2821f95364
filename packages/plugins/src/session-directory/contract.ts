/**
 * The session directory: which sessions there are, seen twice.
 *
 * `SessionDirectory` is the coordinator's, for session hosts. `SessionPicker` is what a session host makes of it for those
 * who show it: narrower, because who owns a session, where it lies and in which workspace is not theirs to know.
 */
import { RemoteService, ServiceError } from "@bezel/core/service"
import * as Schema from "effect/Schema"

export const ListedStatus = Schema.Literals(["starting", "active", "idle", "closed", "failed"])
export type ListedStatus = typeof ListedStatus.Type

/** One session as a presentation may know it. */
export const PickerEntry = Schema.Struct({
  sessionID: Schema.String,
  /** Empty for one that nobody has named. */
  title: Schema.String,
  status: ListedStatus,
  /** Milliseconds since the epoch, by the clock of the machine that wrote it. */
  updatedAt: Schema.Finite,
  /** The session that it began as a copy of, which may not be among these. */
  forkedFrom: Schema.optionalKey(Schema.String)
})
export type PickerEntry = typeof PickerEntry.Type

/** One session as the coordinator tells session hosts of it. */
export const SessionSummary = Schema.Struct({
  ...PickerEntry.fields,
  /** Whose it is: the user that the coordinator runs as. */
  owner: Schema.String,
  cwd: Schema.String,
  workspaceID: Schema.NullOr(Schema.String)
})
export type SessionSummary = typeof SessionSummary.Type

const eventsOf = <S extends Schema.Top>(session: S) =>
  Schema.Union([
    Schema.Struct({ type: Schema.Literal("created"), session }),
    Schema.Struct({ type: Schema.Literal("changed"), session }),
    Schema.Struct({ type: Schema.Literal("deleted"), sessionID: Schema.String })
  ])

const DirectoryEvent = eventsOf(SessionSummary)
export type DirectoryEvent = typeof DirectoryEvent.Type
const PickerEvent = eventsOf(PickerEntry)
export type PickerEvent = typeof PickerEvent.Type

/** The newest sessions that are nobody's child, newest activity first. `revision` counts the changes. */
const listOf = <S extends Schema.Top>(session: S) =>
  Schema.Struct({ revision: Schema.Finite, sessions: Schema.Array(session) })

const DirectoryState = listOf(SessionSummary)
export type DirectoryState = typeof DirectoryState.Type

const PickerState = Schema.Struct({
  ...listOf(PickerEntry).fields,
  /** Whether there is a coordinator and it can be reached: else the list is the last one that was known. */
  upstream: Schema.Literals(["connected", "disconnected", "none"])
})
export type PickerState = typeof PickerState.Type

const SessionID = Schema.Struct({ sessionID: Schema.String })

/** Of the coordinator. Every method checks who calls: a host's own place, and the sessions that it has been given. */
export class SessionDirectory extends RemoteService.make("bezel.session-directory")({
  state: { state: DirectoryState },
  events: { happened: DirectoryEvent },
  methods: {
    create: {
      payload: Schema.Struct({
        title: Schema.optionalKey(Schema.String),
        cwd: Schema.String,
        workspaceID: Schema.NullOr(Schema.String)
      }),
      success: SessionSummary,
      error: ServiceError
    },
    rename: { payload: Schema.Struct({ ...SessionID.fields, title: Schema.String }), error: ServiceError },
    remove: { payload: SessionID, error: ServiceError },
    /** A host says how a session of its own is. */
    report: {
      payload: Schema.Struct({ ...SessionID.fields, status: Schema.Literals(["active", "idle"]) }),
      error: ServiceError
    },
    /** Reads the records anew: other programs of this user write them too. */
    refresh: { error: ServiceError }
  }
}) {}

/** Of a session host, for presentations: the sessions of its place. */
export class SessionPicker extends RemoteService.make("bezel.session-picker")({
  state: { state: PickerState },
  events: { happened: PickerEvent },
  methods: {
    create: {
      payload: Schema.Struct({ title: Schema.optionalKey(Schema.String) }),
      success: PickerEntry,
      error: ServiceError
    },
    rename: { payload: Schema.Struct({ ...SessionID.fields, title: Schema.String }), error: ServiceError },
    remove: { payload: SessionID, error: ServiceError },
    refresh: { error: ServiceError }
  }
}) {}

/** Options of the plugin in the manifest. */
export const SessionDirectoryOptions = Schema.Struct({
  /** How many sessions the coordinator tells of at most; default 500. */
  limit: Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 1_000 })))
})
export type SessionDirectoryOptions = typeof SessionDirectoryOptions.Type
