/**
 * The schema of a conversation's view, for the boundary: it describes what `ConversationView` declares, one to one, without
 * any encoding, so that the view's operations cross as they are.
 */
import * as Schema from "effect/Schema"

const options = Schema.optionalKey(Schema.Record(Schema.String, Schema.Record(Schema.String, Schema.Json)))

const TextPart = Schema.Struct({ type: Schema.Literal("text"), text: Schema.String, options })
const ReasoningPart = Schema.Struct({ type: Schema.Literal("reasoning"), text: Schema.String, options })

/** Base64 text of a file, as a message carries it. */
export const FilePartSchema = Schema.Struct({
  type: Schema.Literal("file"),
  mediaType: Schema.String,
  fileName: Schema.optionalKey(Schema.String),
  data: Schema.String,
  options
})

const ToolCallPart = Schema.Struct({
  type: Schema.Literal("tool-call"),
  id: Schema.String,
  name: Schema.String,
  params: Schema.Json,
  options
})

const ToolResultPart = Schema.Struct({
  type: Schema.Literal("tool-result"),
  id: Schema.String,
  name: Schema.String,
  isFailure: Schema.Boolean,
  result: Schema.Json,
  modelOutput: Schema.optionalKey(Schema.Array(Schema.Union([TextPart, FilePartSchema]))),
  options
})

export const MessageSchema = Schema.Union([
  Schema.Struct({ role: Schema.Literal("system"), content: Schema.String, options }),
  Schema.Struct({
    role: Schema.Literal("user"),
    content: Schema.Array(Schema.Union([TextPart, FilePartSchema])),
    options
  }),
  Schema.Struct({
    role: Schema.Literal("assistant"),
    content: Schema.Array(Schema.Union([TextPart, ReasoningPart, FilePartSchema, ToolCallPart])),
    options
  }),
  Schema.Struct({ role: Schema.Literal("tool"), content: Schema.Array(ToolResultPart), options })
])

/** A model by the names of its provider and its own. */
export const ModelRefSchema = Schema.Struct({ provider: Schema.String, model: Schema.String })

const Config = {
  model: Schema.NullOr(ModelRefSchema),
  agent: Schema.NullOr(Schema.String),
  thinking: Schema.Literals(["off", "low", "medium", "high"]),
  queue: Schema.Literals(["one", "all"])
}

/** A change of a conversation's settings; what is absent stays. */
export const ConfigPatchSchema = Schema.Struct({
  model: Schema.optionalKey(Config.model),
  agent: Schema.optionalKey(Config.agent),
  thinking: Schema.optionalKey(Config.thinking),
  queue: Schema.optionalKey(Config.queue)
})

export const WhenBusySchema = Schema.Literals(["followUp", "steer", "reject"])

const Entry = Schema.Struct({
  id: Schema.String,
  kind: Schema.String,
  data: Schema.Json,
  model: Schema.NullOr(Schema.Array(MessageSchema)),
  head: Schema.Boolean,
  createdAt: Schema.Finite
})

const Generation = Schema.Struct({
  task: Schema.String,
  stage: Schema.Literals(["preparing", "requesting", "streaming", "retrying", "deferred", "waiting"]),
  attempt: Schema.Finite,
  model: Schema.NullOr(ModelRefSchema),
  retryAt: Schema.NullOr(Schema.Finite),
  error: Schema.NullOr(Schema.Struct({ kind: Schema.String, message: Schema.String }))
})

const LivePart = Schema.Union([
  Schema.Struct({ type: Schema.Literal("text"), text: Schema.String }),
  Schema.Struct({ type: Schema.Literal("reasoning"), text: Schema.String }),
  Schema.Struct({ type: Schema.Literal("tool-call"), id: Schema.String, name: Schema.String, text: Schema.String })
])

const Tool = Schema.Struct({
  task: Schema.String,
  callId: Schema.String,
  name: Schema.String,
  args: Schema.Json,
  status: Schema.Literals(["pending", "waiting", "running", "completed", "failed", "aborted"]),
  waitingOn: Schema.NullOr(Schema.String),
  output: Schema.String,
  progress: Schema.Json,
  details: Schema.Json,
  continuedBy: Schema.NullOr(Schema.String),
  entry: Schema.NullOr(Schema.String)
})

export const ConversationViewSchema = Schema.Struct({
  conversation: Schema.Struct({
    id: Schema.String,
    sessionID: Schema.String,
    parent: Schema.NullOr(Schema.Struct({ conversation: Schema.String, at: Schema.NullOr(Schema.String) })),
    owner: Schema.NullOr(Schema.String)
  }),
  entries: Schema.Array(Entry),
  config: Schema.Struct(Config),
  inbox: Schema.Array(Schema.Struct({ id: Schema.String, text: Schema.String, whenBusy: WhenBusySchema })),
  turn: Schema.NullOr(Schema.Struct({
    inputs: Schema.Array(Schema.String),
    generation: Schema.NullOr(Generation),
    message: Schema.NullOr(Schema.Struct({ parts: Schema.Array(LivePart) })),
    tools: Schema.Array(Tool)
  })),
  compaction: Schema.Json,
  tasks: Schema.Record(
    Schema.String,
    Schema.Struct({ kind: Schema.String, background: Schema.Boolean, status: Schema.Json })
  ),
  plugins: Schema.Record(Schema.String, Schema.Json),
  usage: Schema.Struct({
    input: Schema.Finite,
    output: Schema.Finite,
    cacheRead: Schema.Finite,
    cacheWrite: Schema.Finite,
    cost: Schema.Finite,
    context: Schema.Finite
  })
})

/** A named cause of a commit; what it carries beside `type` is its own. */
export const ViewEventSchema = Schema.StructWithRest(
  Schema.Struct({ type: Schema.String }),
  [Schema.Record(Schema.String, Schema.Json)]
)
