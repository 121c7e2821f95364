/**
 * The view: one JSON document per conversation, shaped for rendering.
 *
 * Every commit that touches a conversation is exactly one `Envelope`, contiguous by `revision`. Operations are the truth;
 * events name the cause, and nothing needed to render steady state is only in an event. What one commit changes is never
 * seen apart. A late joiner needs the snapshot and no history.
 */
import type { JsonObject, JsonValue, Operation } from "../json/index.ts"
import type { Message, ModelRef, ThinkingLevel } from "../model/index.ts"

export interface ViewEntry {
  readonly id: string
  readonly kind: string
  readonly data: JsonValue
  readonly model: ReadonlyArray<Message> | null
  readonly head: boolean
  readonly createdAt: number
}

export interface ViewInput {
  readonly id: string
  readonly text: string
  readonly whenBusy: "followUp" | "steer" | "reject"
}

/** The settings of a conversation that travel with it and are rewound with it. */
export interface ConversationConfig {
  readonly model: ModelRef | null
  readonly agent: string | null
  readonly thinking: ThinkingLevel
  /** How many queued inputs a boundary places. */
  readonly queue: "one" | "all"
}

export type GenerationStage = "preparing" | "requesting" | "streaming" | "retrying" | "deferred" | "waiting"

export interface ViewGeneration {
  readonly task: string
  readonly stage: GenerationStage
  /** 1 for the first try. */
  readonly attempt: number
  readonly model: ModelRef | null
  /** Milliseconds since the epoch, while `retrying`. */
  readonly retryAt: number | null
  readonly error: { readonly kind: string; readonly message: string } | null
}

export type ViewMessagePart =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "reasoning"; readonly text: string }
  | { readonly type: "tool-call"; readonly id: string; readonly name: string; readonly text: string }

export type ViewToolStatus = "pending" | "waiting" | "running" | "completed" | "failed" | "aborted"

export interface ViewTool {
  readonly task: string
  readonly callId: string
  readonly name: string
  readonly args: JsonValue
  readonly status: ViewToolStatus
  /** Namespace of the hook that waits for a person. */
  readonly waitingOn: string | null
  /** What the tool has streamed, its tail only. */
  readonly output: string
  readonly progress: JsonValue
  readonly details: JsonValue
  readonly continuedBy: string | null
  /** The result entry, once there is one. */
  readonly entry: string | null
}

export interface ViewTurn {
  readonly inputs: ReadonlyArray<string>
  readonly generation: ViewGeneration | null
  /** The answer as it streams. */
  readonly message: { readonly parts: ReadonlyArray<ViewMessagePart> } | null
  readonly tools: ReadonlyArray<ViewTool>
}

export interface ViewTask {
  readonly kind: string
  readonly background: boolean
  readonly status: JsonValue
}

/** Totals of the conversation. Tokens; US dollars. */
export interface ViewUsage {
  readonly input: number
  readonly output: number
  readonly cacheRead: number
  readonly cacheWrite: number
  readonly cost: number
  /** Tokens of the newest request's context. */
  readonly context: number
}

export interface ConversationView {
  readonly conversation: {
    readonly id: string
    readonly sessionID: string
    readonly parent: { readonly conversation: string; readonly at: string | null } | null
    readonly owner: string | null
  }
  /** The active transcript: the newest head onward. */
  readonly entries: ReadonlyArray<ViewEntry>
  readonly config: ConversationConfig
  readonly inbox: ReadonlyArray<ViewInput>
  readonly turn: ViewTurn | null
  readonly compaction: JsonValue
  readonly tasks: { readonly [id: string]: ViewTask }
  readonly plugins: { readonly [namespace: string]: JsonValue }
  readonly usage: ViewUsage
}

/** A named cause: `entry.added`, `turn.started`, `tool.finished`, `plugin.<ns>.<name>` and so on. */
export interface ViewEvent extends JsonObject {
  readonly type: string
}

export interface Envelope {
  readonly revision: number
  readonly operations: ReadonlyArray<Operation>
  readonly events: ReadonlyArray<ViewEvent>
}
