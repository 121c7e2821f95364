/**
 * A materialization: an immutable snapshot of the tools that one generation offers its model.
 *
 * It captures executable identity. A call settles through the materialization that offered it; `declaration` names what
 * was captured, so that a call found again after a crash or a rebuild is run only by the very tool that was offered.
 */
import type * as Effect from "effect/Effect"
import type { JsonValue } from "../json/index.ts"
import type { ToolDefinition } from "../model/index.ts"
import type { Tool, ToolCall, ToolPermission, ToolResult } from "./tool.ts"

/** Identity of a tool as offered, stored with a call: who provided it and a hash over all that the model was told. */
export interface ToolDeclaration {
  readonly name: string
  readonly plugin: string
  readonly version: string
  readonly hash: string
}

/** A call that a materialization has accepted: known, offered and with valid arguments. */
export interface AcceptedCall {
  readonly name: string
  readonly declaration: ToolDeclaration
  readonly tool: Tool
  /** Decoded arguments. */
  readonly input: unknown
  /** The arguments as strict JSON, after decoding and encoding again. */
  readonly args: JsonValue
  readonly permission: ToolPermission
}

/** Why a call is not run. `message` is written for the model: what was wrong, at which path, and what is allowed. */
export interface RefusedCall {
  readonly code: "unknown_tool" | "not_offered" | "invalid_arguments" | "stale_tool"
  readonly message: string
}

export interface Materialization {
  readonly definitions: ReadonlyArray<ToolDefinition>
  /** Checks a call against this snapshot; never fails, never runs anything. */
  readonly accept: (
    name: string,
    args: JsonValue
  ) => { readonly accepted: AcceptedCall } | { readonly refused: RefusedCall }
  /** `stale_tool` if the tool captured here has been removed or replaced since; checked before a call starts. */
  readonly fresh: (call: AcceptedCall) => RefusedCall | null
  /**
   * Runs an accepted call: `execute` with its wraps, then `afterTool`, then the output bounds. Never fails; every
   * failure and defect of the tool is an error result. Interruption ends the tool.
   */
  readonly settle: (call: AcceptedCall, api: ToolCall, options: SettleOptions) => Effect.Effect<ToolResult>
}

export interface SettleOptions {
  /** The chain that may change a result before it is bounded. */
  readonly afterTool: (result: ToolResult) => Effect.Effect<ToolResult>
}

/** What a materialization is made for. */
export interface MaterializeOptions {
  /** Tool names that an agent allows (`true`) or hides (`false`); unnamed ones are offered. */
  readonly enabled: { readonly [name: string]: boolean }
  /** Tools that a permission set denies outright; they are not offered. */
  readonly denied: ReadonlyArray<string>
}

/** The tools of one place. `materialize` is cheap: it is called for every request. */
export interface ToolSource {
  readonly materialize: (options: MaterializeOptions) => Effect.Effect<Materialization>
}
