/**
 * The `Conversation` service: one conversation of a session, for whoever shows it.
 *
 * Keyed by `sessionID/conversationID`, visible to connections that are attached to the session. Its `view` follows the
 * commits of the conversation: one commit, one delivery, with the same number. Events name causes and are lost to whoever
 * is not there; everything needed to render is in the view.
 */
import * as Schema from "effect/Schema"
import { HarnessError } from "../harness/api.ts"
import { JsonValue } from "../json/index.ts"
import { RemoteService } from "../service/index.ts"
import { ClearRevertSchema, RevertReport, StageRevertSchema } from "../session/revert.ts"
import {
  ConfigPatchSchema,
  ConversationViewSchema,
  FilePartSchema,
  MessageSchema,
  ModelRefSchema,
  ViewEventSchema,
  WhenBusySchema
} from "./conversation-view.ts"

const Outcome = Schema.Union([
  Schema.Struct({ status: Schema.Literal("done"), answer: Schema.String, text: Schema.String }),
  Schema.Struct({
    status: Schema.Literal("unanswered"),
    reason: Schema.Literals(["terminated", "aborted", "failed", "stale"]),
    error: Schema.NullOr(Schema.Struct({ kind: Schema.String, message: Schema.String }))
  })
])

const EntrySchema = Schema.Struct({
  id: Schema.String,
  ordinal: Schema.Finite,
  kind: Schema.String,
  data: Schema.Json,
  model: Schema.NullOr(Schema.Array(MessageSchema)),
  /** With it the transcript goes on from an earlier entry (`at`), or from a summary. */
  head: Schema.optionalKey(
    Schema.Union([Schema.Struct({ after: Schema.NullOr(Schema.String) }), Schema.Struct({ at: Schema.String })])
  ),
  createdAt: Schema.Finite
})

export class Conversation extends RemoteService.make("bezel.conversation")({
  state: { view: ConversationViewSchema },
  events: { happened: ViewEventSchema },
  methods: {
    /** Accepts an input durably and gives its id. A `requestID` that was accepted before gives that input. */
    send: {
      payload: Schema.Struct({
        text: Schema.String,
        files: Schema.optionalKey(Schema.Array(FilePartSchema)),
        /** A person wrote the text, or this part of it: plugins may add files to it. */
        written: Schema.optionalKey(Schema.Union([Schema.Boolean, Schema.String])),
        whenBusy: Schema.optionalKey(WhenBusySchema),
        requestID: Schema.optionalKey(Schema.String)
      }),
      success: Schema.Struct({
        inputID: Schema.String,
        /** What the person should know of what was written. */
        notices: Schema.optionalKey(Schema.Array(Schema.String))
      }),
      error: HarnessError
    },
    /** Waits for an input's end; interrupting it changes nothing. */
    wait: { payload: Schema.Struct({ inputID: Schema.String }), success: Outcome, error: HarnessError },
    /** What an input that waits consists of; the view has its text only, and no files. Empty once it waits no longer. */
    inputContent: {
      payload: Schema.Struct({ inputID: Schema.String }),
      success: Schema.Struct({ text: Schema.String, files: Schema.Array(FilePartSchema) }),
      error: HarnessError
    },
    inputAbort: {
      payload: Schema.Struct({ inputID: Schema.String }),
      success: Schema.Literals(["aborted", "already_placed", "ended"]),
      error: HarnessError
    },
    /** Durably ends the running turn or, where there is none, the summary that somebody has asked for. */
    abort: { payload: Schema.Struct({ reason: Schema.optionalKey(Schema.String) }), error: HarnessError },
    configSet: { payload: ConfigPatchSchema, error: HarnessError },
    /** The model that the next request asks: the chosen one, the agent's, or the default. */
    nextModel: { success: ModelRefSchema, error: HarnessError },
    /** Writes an entry of the caller's own kind, or a `bezel.notice`; at the next boundary while a turn runs. */
    write: {
      payload: Schema.Struct({
        kind: Schema.String,
        data: Schema.optionalKey(JsonValue),
        /** What the model sees of it, as a user's message. */
        text: Schema.optionalKey(Schema.String)
      }),
      success: Schema.Struct({ entryID: Schema.String }),
      error: HarnessError
    },
    /** Starts over with a fresh context, which begins with `handoff`; refused while a turn runs. */
    reset: { payload: Schema.Struct({ handoff: Schema.optionalKey(Schema.String) }), error: HarnessError },
    /** Summarizes the older part, and waits for how that ended. */
    collapse: {
      payload: Schema.Struct({ instructions: Schema.optionalKey(Schema.String) }),
      success: Schema.Struct({
        status: Schema.Literals(["completed", "failed", "aborted", "orphaned"]),
        message: Schema.NullOr(Schema.String)
      }),
      error: HarnessError
    },
    /** Gives the id of a new conversation that is this one up to and including entry `at`. */
    fork: {
      payload: Schema.Struct({ at: Schema.String }),
      success: Schema.Struct({ conversationID: Schema.String }),
      error: HarnessError
    },
    /** Takes back the turn of entry `to` (`last`: the newest) and all after it, with what its tools did to files. */
    revert: { payload: StageRevertSchema, success: RevertReport, error: HarnessError },
    /** Brings back what was taken back last. */
    revertClear: { payload: ClearRevertSchema, success: RevertReport, error: HarnessError },
    /** Entries by ordinal, oldest first unless asked otherwise; at most 1,000. */
    entries: {
      payload: Schema.Struct({
        after: Schema.optionalKey(Schema.Finite),
        before: Schema.optionalKey(Schema.Finite),
        newestFirst: Schema.optionalKey(Schema.Boolean),
        limit: Schema.optionalKey(Schema.Finite)
      }),
      success: Schema.Array(EntrySchema),
      error: HarnessError
    }
  }
}) {}

/** The key of a conversation's instance. */
export const conversationKey = (sessionID: string, conversationID: string): string => `${sessionID}/${conversationID}`
