/**
 * A model: one request in, a stream of response parts out.
 *
 * The vocabulary is that of `effect/ai`: prompt messages in, the encoded side of its response stream parts out. A model
 * never executes tools; they are declared to it and executed by the tool registry.
 */
import type * as Response from "effect/ai/Response"
import * as Schema from "effect/Schema"
import type * as Stream from "effect/Stream"
import type { JsonObject } from "../json/index.ts"
import type { Message } from "./message.ts"

export interface ModelRef {
  readonly provider: string
  readonly model: string
}

export type ThinkingLevel = "off" | "low" | "medium" | "high"

/** What is known of a model. Sizes are in tokens; `null` where the provider does not say. */
export interface ModelInfo extends ModelRef {
  readonly name: string
  readonly contextWindow: number | null
  readonly maxOutput: number | null
  readonly reasoning: boolean
  readonly images: boolean
  /** US dollars per million tokens. */
  readonly cost: {
    readonly input: number
    readonly output: number
    readonly cacheRead: number
    readonly cacheWrite: number
  } | null
}

export interface ToolDefinition {
  readonly name: string
  readonly description: string
  /** JSON Schema (draft 2020-12) of the arguments: an object schema. */
  readonly inputSchema: JsonObject
}

export interface ModelRequest {
  /** System messages first, then the conversation in order; each tool call of it has exactly one result. */
  readonly messages: ReadonlyArray<Message>
  readonly tools: ReadonlyArray<ToolDefinition>
  readonly thinking: ThinkingLevel
  /** Upper bound of generated tokens, or `null` for the model's own. */
  readonly maxOutput: number | null
  /** Names the conversation to providers that cache by it. */
  readonly sessionID: string
}

/**
 * Response parts in order. The stream ends after exactly one `finish` part; ending without one is a `ModelError` of kind
 * `truncated`. A `tool-call` whose arguments did not parse has `params: {}` and carries `metadata.bezel.malformed`
 * (see `malformedCall`); it is never run. `error` parts do not occur: errors fail the stream. A `deferred` part stands in
 * place of the `finish`: the answer is not there yet, and `Model.resume` asks for it again.
 */
export type ModelPart =
  | DeferredPart
  | Response.TextStartPartEncoded
  | Response.TextDeltaPartEncoded
  | Response.TextEndPartEncoded
  | Response.ReasoningStartPartEncoded
  | Response.ReasoningDeltaPartEncoded
  | Response.ReasoningEndPartEncoded
  | Response.ToolParamsStartPartEncoded
  | Response.ToolParamsDeltaPartEncoded
  | Response.ToolParamsEndPartEncoded
  | Response.ToolCallPartEncoded
  | Response.FinishPartEncoded

/** The provider works on in the background. The token is durable: it may be asked for by another process. */
export interface DeferredPart {
  readonly type: "deferred"
  readonly token: string
  /** When to ask again, in milliseconds. */
  readonly pollAfterMs: number
}

export type ModelErrorKind = typeof ModelErrorKind.Type
export const ModelErrorKind = Schema.Literals([
  /** The key is missing, wrong or not allowed to. */
  "auth",
  /** Too many requests; `retryAfterMs` says when, if the provider did. */
  "rate_limit",
  /** The request does not fit the model's context. */
  "overflow",
  /** The provider refused the content. */
  "refused",
  /** The request is wrong in a way that repeating cannot mend. */
  "invalid_request",
  /** The provider failed (5xx). */
  "unavailable",
  /** The connection failed, before or in the middle of the answer. */
  "transport",
  /** The stream ended without a finish. */
  "truncated",
  /** The stream does not follow its protocol. */
  "malformed",
  /** No such provider or model, or it cannot be used as set up. */
  "unknown_model"
])

/** Why a model did not answer. `message` is one plain sentence for a person; it never holds a key or a header. */
export class ModelError extends Schema.TaggedError<ModelError>()("ModelError", {
  kind: ModelErrorKind,
  message: Schema.String,
  retryable: Schema.Boolean,
  /** What the provider asked to wait, in milliseconds; finite, at least 0, not clamped. */
  retryAfterMs: Schema.NullOr(Schema.Finite)
}) {}

export interface Model {
  readonly info: ModelInfo
  /** Interrupting the stream closes the connection. */
  readonly stream: (request: ModelRequest) => Stream.Stream<ModelPart, ModelError>
  /** Asks for an answer that was deferred; it may be deferred again. Only models that defer have it. */
  readonly resume?: (token: string, request: ModelRequest) => Stream.Stream<ModelPart, ModelError>
}

/** Why a call's arguments could not be read, as carried in `metadata.bezel.malformed` of a `tool-call` part. */
export interface MalformedCall {
  readonly error: string
  /** The arguments as the model wrote them. */
  readonly text: string
}
