/**
 * Messages as a session stores them and as a model reads them.
 *
 * The shapes are the encoded side of `effect/ai` `Prompt` messages, narrowed to strict JSON (files are base64 text), so a
 * stored message is a valid prompt message as it is and a provider that speaks `effect/ai` needs no translation.
 */
import type { JsonObject, JsonValue } from "../json/index.ts"

/** Provider-specific data carried with a part or message, by provider name. Kept byte-exact. */
export type ProviderOptions = { readonly [provider: string]: JsonObject }

export interface TextPart {
  readonly type: "text"
  readonly text: string
  readonly options?: ProviderOptions
}

export interface ReasoningPart {
  readonly type: "reasoning"
  readonly text: string
  readonly options?: ProviderOptions
}

export interface FilePart {
  readonly type: "file"
  readonly mediaType: string
  readonly fileName?: string
  /** Base64. */
  readonly data: string
  readonly options?: ProviderOptions
}

export interface ToolCallPart {
  readonly type: "tool-call"
  readonly id: string
  readonly name: string
  readonly params: JsonValue
  readonly options?: ProviderOptions
}

export interface ToolResultPart {
  readonly type: "tool-result"
  readonly id: string
  readonly name: string
  readonly isFailure: boolean
  /** The text that stands for the result where a provider takes text only. */
  readonly result: JsonValue
  /** What the model sees, when it is more than text. */
  readonly modelOutput?: ReadonlyArray<TextPart | FilePart>
  readonly options?: ProviderOptions
}

export interface SystemMessage {
  readonly role: "system"
  readonly content: string
  readonly options?: ProviderOptions
}

export interface UserMessage {
  readonly role: "user"
  readonly content: ReadonlyArray<TextPart | FilePart>
  readonly options?: ProviderOptions
}

export interface AssistantMessage {
  readonly role: "assistant"
  readonly content: ReadonlyArray<TextPart | ReasoningPart | FilePart | ToolCallPart>
  readonly options?: ProviderOptions
}

export interface ToolMessage {
  readonly role: "tool"
  readonly content: ReadonlyArray<ToolResultPart>
  readonly options?: ProviderOptions
}

export type Message = SystemMessage | UserMessage | AssistantMessage | ToolMessage
