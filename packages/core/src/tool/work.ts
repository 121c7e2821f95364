/**
 * Work that a running call may start beside itself: durable tasks, and conversations of its own (sub-agents).
 *
 * What it starts belongs to it: when the call is durably aborted, its conversations are aborted with it. Waiting holds no
 * line and no lock, so a call may wait for a conversation of the same session.
 */
import type * as Effect from "effect/Effect"
import type * as Schema from "effect/Schema"
import type { JsonValue } from "../json/index.ts"
import type { FilePart, ModelRef, TextPart } from "../model/index.ts"
import type { ToolFailure } from "./tool.ts"

export interface TaskRef {
  readonly id: string
  readonly kind: string
}

/** How a task ended. */
export interface TaskOutcome {
  readonly status: "completed" | "failed" | "aborted" | "orphaned"
  readonly result: JsonValue
  readonly failure: JsonValue
}

/** What an owned conversation begins with; it inherits nothing of its owner's. */
export interface ConversationSeed {
  readonly model?: ModelRef
  readonly agent?: string
  /** A first user message that is not an input: background for what is asked later. */
  readonly context?: string
}

export interface OwnedConversation {
  readonly id: string
  /** Sends an input and waits for how it ends. The same `requestID` is the same input. */
  readonly ask: (
    content: string | ReadonlyArray<TextPart | FilePart>,
    requestID: string
  ) => Effect.Effect<
    { readonly status: "done" | "unanswered"; readonly text: string; readonly reason: string | null },
    ToolFailure
  >
  readonly abort: Effect.Effect<void, ToolFailure>
}

export interface ToolWork {
  /** Creates a task of a kind that a plugin has registered. */
  readonly task: <I>(
    kind: { readonly name: string; readonly input: Schema.Codec<I, unknown> },
    input: I,
    options?: { readonly background?: boolean }
  ) => Effect.Effect<TaskRef, ToolFailure>
  readonly waitForTask: (ref: TaskRef) => Effect.Effect<TaskOutcome, ToolFailure>
  /** What a live task's kind keeps in its slot: a copy, or `null` once it has ended. Memos are never in it. */
  readonly slot: (ref: TaskRef) => Effect.Effect<JsonValue, ToolFailure>
  /** A conversation owned by this call. `key` names it: the same key finds the same one, also after a crash. */
  readonly conversation: (key: string, seed?: ConversationSeed) => Effect.Effect<OwnedConversation, ToolFailure>
}
