/** What the API says of sessions. Times are ISO 8601 in UTC, money is US dollars, usage is tokens. */
import * as Schema from "effect/Schema"

export const Timestamp = Schema.String.annotate({
  identifier: "Timestamp",
  format: "date-time",
  description: "ISO 8601, in UTC."
})

export const ModelRef = Schema.Struct({ provider: Schema.String, model: Schema.String }).annotate({
  identifier: "ModelRef",
  description: "A model by the names of its provider and its own."
})

export const Location = Schema.Struct({
  directory: Schema.String,
  workspaceID: Schema.NullOr(Schema.String)
}).annotate({ identifier: "LocationRef", description: "A directory on the server's machine." })

export const SessionStatus = Schema.Literals(["starting", "active", "idle", "closed", "failed"])

/** A record of the catalogue. Reading it opens nothing. */
export const Session = Schema.Struct({
  id: Schema.String,
  /** Empty for one that nobody has named. */
  title: Schema.String,
  location: Location,
  /** The session that this one was made for, as a sub-agent's is. */
  parentID: Schema.NullOr(Schema.String),
  /** Defaults of its conversations; `null`: those of the location. */
  agent: Schema.NullOr(Schema.String),
  model: Schema.NullOr(ModelRef),
  status: SessionStatus,
  createdAt: Timestamp,
  updatedAt: Timestamp,
  usage: Schema.Struct({
    input: Schema.Finite,
    output: Schema.Finite,
    cacheRead: Schema.Finite,
    cacheWrite: Schema.Finite
  }),
  cost: Schema.Finite,
  /** The Bezel that created it. */
  version: Schema.String,
  archived: Schema.Boolean
}).annotate({ identifier: "Session" })
export interface Session extends Schema.Schema.Type<typeof Session> {}

const options = Schema.optionalKey(Schema.Record(Schema.String, Schema.Record(Schema.String, Schema.Json)))
const TextPart = Schema.Struct({ type: Schema.Literal("text"), text: Schema.String, options })
const ReasoningPart = Schema.Struct({ type: Schema.Literal("reasoning"), text: Schema.String, options })
const FilePart = Schema.Struct({
  type: Schema.Literal("file"),
  mediaType: Schema.String,
  fileName: Schema.optionalKey(Schema.String),
  /** Base64. */
  data: Schema.String,
  options
})

/** A message in the form that the model sees. */
export const ModelMessage = Schema.Union([
  Schema.Struct({ role: Schema.Literal("system"), content: Schema.String, options }),
  Schema.Struct({ role: Schema.Literal("user"), content: Schema.Array(Schema.Union([TextPart, FilePart])), options }),
  Schema.Struct({
    role: Schema.Literal("assistant"),
    content: Schema.Array(Schema.Union([
      TextPart,
      ReasoningPart,
      FilePart,
      Schema.Struct({
        type: Schema.Literal("tool-call"),
        id: Schema.String,
        name: Schema.String,
        params: Schema.Json,
        options
      })
    ])),
    options
  }),
  Schema.Struct({
    role: Schema.Literal("tool"),
    content: Schema.Array(Schema.Struct({
      type: Schema.Literal("tool-result"),
      id: Schema.String,
      name: Schema.String,
      isFailure: Schema.Boolean,
      result: Schema.Json,
      modelOutput: Schema.optionalKey(Schema.Array(Schema.Union([TextPart, FilePart]))),
      options
    })),
    options
  })
]).annotate({ identifier: "ModelMessage" })
export type ModelMessage = typeof ModelMessage.Type

/** An entry of a transcript. `model` is what the model sees of it; `null`: nothing. */
export const SessionMessage = Schema.Struct({
  id: Schema.String,
  conversationID: Schema.String,
  kind: Schema.String,
  data: Schema.Json,
  model: Schema.NullOr(Schema.Array(ModelMessage)),
  createdAt: Timestamp
}).annotate({ identifier: "Message" })
export interface SessionMessage extends Schema.Schema.Type<typeof SessionMessage> {}

/** What of a conversation's settings is changed; what is absent stays. */
export const ConfigPatch = Schema.Struct({
  model: Schema.optionalKey(Schema.NullOr(ModelRef)),
  agent: Schema.optionalKey(Schema.NullOr(Schema.String)),
  thinking: Schema.optionalKey(Schema.Literals(["off", "low", "medium", "high"])),
  /** How many queued inputs a boundary places. */
  queue: Schema.optionalKey(Schema.Literals(["one", "all"]))
}).annotate({ identifier: "ConfigPatch" })

/** The current view of a conversation, shaped for rendering; one per commit, numbered by `revision`. */
export const View = Schema.Struct({
  /** Grows with each change while the session's host runs; a smaller one than before means that it was started anew. */
  revision: Schema.Finite,
  view: Schema.Json
}).annotate({ identifier: "View" })
export interface View extends Schema.Schema.Type<typeof View> {}

/** A durable commit: its number, and what happened in it. */
export const Commit = Schema.Struct({
  sequence: Schema.Finite,
  at: Timestamp,
  events: Schema.Array(Schema.Json)
}).annotate({ identifier: "Commit" })
export interface Commit extends Schema.Schema.Type<typeof Commit> {}

const PromptPart = Schema.Union([
  Schema.Struct({ type: Schema.Literal("text"), text: Schema.String }),
  Schema.Struct({
    type: Schema.Literal("file"),
    mediaType: Schema.String,
    fileName: Schema.optionalKey(Schema.String),
    /** Base64. */
    data: Schema.String
  })
])

export const PromptBody = Schema.Struct({
  /** This or `parts`, or both: the text comes first. */
  text: Schema.optionalKey(Schema.String),
  parts: Schema.optionalKey(Schema.Array(PromptPart)),
  /** While a turn runs: behind it (`followUp`, the default), into it (`steer`), or refused with `conflict` (`reject`). */
  whenBusy: Schema.optionalKey(Schema.Literals(["followUp", "steer", "reject"])),
  /** Names this prompt: sent again with the same id it is the same prompt, also years later. */
  requestID: Schema.optionalKey(Schema.NonEmptyString),
  /** `false` only accepts it; the work starts with `resume`. */
  resume: Schema.optionalKey(Schema.Boolean),
  /** `false`: words like `@src/a.ts` in the text stay words. By default such files are attached where they may be read without asking. */
  mentions: Schema.optionalKey(Schema.Boolean)
}).annotate({ identifier: "Prompt" })

/** A prompt that is durable. */
export const AcceptedPrompt = Schema.Struct({
  inputID: Schema.String,
  status: Schema.Literals(["accepted"]),
  /** What is not attached although the text mentions it, one sentence each; absent: nothing. */
  notices: Schema.optionalKey(Schema.Array(Schema.String))
}).annotate({ identifier: "AcceptedPrompt" })

/** How an input ended; `running` when the time was up first. */
export const WaitResult = Schema.Struct({
  status: Schema.Literals(["idle", "done", "unanswered", "running"]),
  /** Text of the newest final answer, or of the answer to the input that was named. */
  text: Schema.optionalKey(Schema.String),
  /** Of an unanswered input. */
  reason: Schema.optionalKey(Schema.Literals(["terminated", "aborted", "failed", "stale"])),
  error: Schema.optionalKey(Schema.NullOr(Schema.Struct({ kind: Schema.String, message: Schema.String })))
}).annotate({ identifier: "WaitResult" })
export interface WaitResult extends Schema.Schema.Type<typeof WaitResult> {}

/** What the host asks a person and nobody has answered. */
export const OpenInteraction = Schema.Struct({
  id: Schema.String,
  /** Which kind: `bezel.approval`, `bezel.question`, or that of a plugin. */
  interaction: Schema.String,
  /** The session that asks: this one, or one that works for it. */
  sessionID: Schema.String,
  request: Schema.Json
}).annotate({ identifier: "Interaction" })
export interface OpenInteraction extends Schema.Schema.Type<typeof OpenInteraction> {}

/** An answer; `{ "declined": true }` is a person's no to answering at all. */
export const AnswerBody = Schema.Struct({
  response: Schema.optionalKey(Schema.Json),
  declined: Schema.optionalKey(Schema.Literal(true))
}).annotate({ identifier: "Answer" })

/** A tool that a client offers to a session, for as long as it reads the stream that answers. */
export const ToolOfferBody = Schema.Struct({
  /** 1 to 64 letters, digits, `_` and `-`; one that no other tool has. */
  name: Schema.NonEmptyString,
  /** For the model. */
  description: Schema.NonEmptyString,
  /** JSON Schema of the arguments: an object. Default: it takes none. */
  inputSchema: Schema.optionalKey(Schema.Record(Schema.String, Schema.Json)),
  /** Seconds that a call waits for its answer; default 120. */
  timeout: Schema.optionalKey(Schema.Finite.check(Schema.isBetween({ minimum: 1, maximum: 3_600 })))
}).annotate({ identifier: "ToolOffer" })
export interface ToolOfferBody extends Schema.Schema.Type<typeof ToolOfferBody> {}

/** What came of a call; one of the two. */
export const ToolAnswerBody = Schema.Struct({
  /** Text, or a value that the model reads as JSON; at most 1 MiB. */
  result: Schema.optionalKey(Schema.Json),
  /** That it failed, and what the model is told of it. */
  error: Schema.optionalKey(Schema.NonEmptyString)
}).annotate({ identifier: "ToolAnswer" })
export interface ToolAnswerBody extends Schema.Schema.Type<typeof ToolAnswerBody> {}

const revertOptions = {
  /** Only says what would be done. */
  dryRun: Schema.optionalKey(Schema.Boolean),
  /** `refuse` (the default) does nothing at all while a file is in conflict; `keep` leaves such files as they are. */
  conflicts: Schema.optionalKey(Schema.Literals(["refuse", "keep"]))
}

export const RevertBody = Schema.Struct({
  /** An entry of the main conversation, whose whole turn and all after it is taken back; `last`: the newest turn. */
  to: Schema.NonEmptyString,
  ...revertOptions
}).annotate({ identifier: "Revert" })

export const revertQuery = revertOptions

/** What a revert did, or would do, or why it did nothing. */
export const RevertReport = Schema.Struct({
  /** `conflict`: nothing was done, because of `conflicts`. */
  status: Schema.Literals(["planned", "conflict", "staged", "cleared"]),
  /** The prompt whose turn, with all after it, is taken back or brought back, and what it said. */
  to: Schema.String,
  prompt: Schema.String,
  files: Schema.Array(Schema.Struct({
    path: Schema.String,
    action: Schema.Literals(["change", "create", "remove"]),
    /** Unified, from what is there to what will be; `null` where there is no text to compare. */
    diff: Schema.NullOr(Schema.String)
  })),
  conflicts: Schema.Array(Schema.Struct({ path: Schema.String, reason: Schema.String })),
  notes: Schema.Array(Schema.String)
}).annotate({ identifier: "RevertReport" })
export interface RevertReport extends Schema.Schema.Type<typeof RevertReport> {}
