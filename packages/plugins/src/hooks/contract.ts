/**
 * Hooks for people: commands of the user's own that run before and after tool calls and at the end of a turn. The setting,
 * what a command gets on its standard input, and what it may answer.
 */
import type { JsonValue } from "@bezel/core/json"
import { SettingsKey } from "@bezel/core/settings"
import * as Schema from "effect/Schema"

const timeout = Schema.optionalKey(
  Schema.Finite.check(
    Schema.isGreaterThan(0, { message: "Expected a number of seconds above 0" }),
    Schema.isLessThanOrEqualTo(3_600, { message: "Expected at most 3600 seconds" })
  )
)

/** A command line for the shell, or a program with its arguments. */
const command = Schema.Union([Schema.NonEmptyString, Schema.NonEmptyArray(Schema.String)])

export const ToolHook = Schema.Struct({
  match: Schema.optionalKey(Schema.Union([Schema.NonEmptyString, Schema.Array(Schema.NonEmptyString)])).annotateKey({
    description: "Names of tools, files_* for all that begin so; default: all tools."
  }),
  command: command.annotateKey({ description: "A command line for the shell, or a program with its arguments." }),
  timeout: timeout.annotateKey({ description: "Seconds; default 60." })
})
export type ToolHook = typeof ToolHook.Type

export const TurnHook = Schema.Struct({
  command: command.annotateKey({ description: "A command line for the shell, or a program with its arguments." }),
  timeout: timeout.annotateKey({ description: "Seconds; default 60." })
})
export type TurnHook = typeof TurnHook.Type

export const HookSettings = Schema.Struct({
  beforeTool: Schema.optionalKey(Schema.Array(ToolHook)).annotateKey({
    description: "Before a tool is called; can block the call or change its arguments."
  }),
  afterTool: Schema.optionalKey(Schema.Array(ToolHook)).annotateKey({
    description: "After a tool was called; can add to what the model reads."
  }),
  turnEnd: Schema.optionalKey(Schema.Array(TurnHook)).annotateKey({
    description: "When a turn has ended; can have the model go on."
  })
})
export type HookSettings = typeof HookSettings.Type

const isObject = (value: JsonValue | undefined): value is { readonly [name: string]: JsonValue } =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** A later file adds to an earlier one: a project must not silently take the user's own gates away. */
const addHooks = (earlier: JsonValue, later: JsonValue): JsonValue => {
  if (!isObject(earlier) || !isObject(later)) return later
  const all: Record<string, JsonValue> = { ...earlier }
  for (const [event, hooks] of Object.entries(later)) {
    const before = Object.hasOwn(all, event) ? all[event] : undefined
    all[event] = Array.isArray(before) && Array.isArray(hooks) ? [...before, ...hooks] : hooks
  }
  return all
}

/** `hooks` in `bezel.jsonc`. */
export const HooksSetting: SettingsKey<HookSettings> = SettingsKey.make("hooks", {
  schema: HookSettings,
  default: {},
  untrusted: "drop",
  merge: addHooks,
  description: "Commands to run before and after tool calls and at the end of a turn; one before a call can block it."
})

/** How a call ended: the tool gave a result or an error, or it never ran, or the turn was interrupted. */
export type CallStatus = "ok" | "error" | "blocked" | "aborted"

/** What a command may print, as JSON, when it ends with exit code 0. Text that is no JSON object means nothing. */
export const HookAnswer = Schema.Struct({
  /** `block`: the call does not run (before a tool), the model goes on with the reason (at the end of a turn). */
  decision: Schema.optionalKey(Schema.Literals(["block", "allow"])),
  reason: Schema.optionalKey(Schema.String),
  /** Before a tool: what the call runs with instead. Rules and people see these. */
  arguments: Schema.optionalKey(Schema.Record(Schema.String, Schema.Json)),
  /** After a tool: stands behind the result. */
  message: Schema.optionalKey(Schema.String)
})
export type HookAnswer = typeof HookAnswer.Type

/** Something about a hook that a person should know; event `warning` of the namespace `hooks`. */
export const HookWarning = Schema.Struct({ message: Schema.String })
