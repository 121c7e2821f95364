/**
 * Making a tool: `tool({…})` takes what an author writes, with its types, and gives the `Tool` that a registry holds,
 * without them; `toolResult` makes a result that says more than its output.
 *
 * `erase` is the one place where the types of tools are given up. It is sound because a registry hands `execute` and
 * `permission` only what the tool's own `input` schema has decoded.
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { JsonValue } from "../json/index.ts"
import type { Tool, ToolContent, ToolControl, ToolOptions, ToolResult, ToolResultCode } from "./tool.ts"
import { ToolFailure } from "./tool.ts"

/** What `toolResult` takes; all of it is optional. */
export interface ToolResultOptions {
  /** Text, or parts. Left out, it is what the tool streamed. */
  readonly content?: string | ReadonlyArray<ToolContent>
  /** Strict JSON for renderers and machines; default `null`. */
  readonly details?: JsonValue
  readonly control?: ToolControl
  readonly isError?: boolean
  readonly code?: ToolResultCode
}

/** A result with content, details and control of its own. A text stands for a result with that text as its content. */
export const toolResult = (options: string | ToolResultOptions): ToolResult => {
  const given: ToolResultOptions = typeof options === "string" ? { content: options } : options
  return {
    content: contentOf(given.content ?? []),
    isError: given.isError ?? false,
    details: given.details ?? null,
    control: given.control ?? {},
    ...(given.code === undefined ? {} : { code: given.code })
  }
}

/**
 * A tool from what its author wrote. Nothing is checked here; names and schemas are checked where the tool is
 * registered.
 */
export const tool = <I, O = never>(options: ToolOptions<I, O>): Tool => {
  const { permission } = options
  const toResult = resultOf(options)
  return {
    description: options.description,
    input: eraseCodec(options.input),
    ...(options.inputSchema === undefined ? {} : { inputSchema: options.inputSchema }),
    replay: options.replay ?? "never",
    executionMode: options.executionMode ?? "parallel",
    bounds: options.bounds === undefined ? null : { ...defaultBounds, ...options.bounds },
    permission: permission === undefined ? null : (input) => permission(erase<I>(input)),
    execute: (input, call) =>
      Effect.flatMap(
        Effect.mapError(Effect.suspend(() => options.execute(erase<I>(input), call)), failureOf),
        toResult
      )
  }
}

/** Bounds of a result that says nothing else: 64 KiB and 2,000 lines, of which the head is kept. */
export const defaultBounds = { maxBytes: 64 * 1024, maxLines: 2_000, keep: "head" } as const

/** True for what `toolResult` makes. */
export const isToolResult = (value: unknown): value is ToolResult =>
  typeof value === "object" && value !== null && "content" in value && Array.isArray(value.content) &&
  "isError" in value && typeof value.isError === "boolean" && "details" in value &&
  "control" in value && typeof value.control === "object" && value.control !== null

const contentOf = (content: string | ReadonlyArray<ToolContent>): ReadonlyArray<ToolContent> =>
  typeof content === "string" ? (content === "" ? [] : [{ type: "text", text: content }]) : content

const resultOf = <I, O>(options: ToolOptions<I, O>) => {
  const encode = options.output === undefined
    ? encodeJson
    : Schema.encodeUnknownEffect(Schema.toCodecJson(options.output))
  return (value: O | ToolResult | void): Effect.Effect<ToolResult> => {
    if (value === undefined) return Effect.succeed(toolResult({}))
    if (isToolResult(value)) return Effect.succeed(value)
    const output = erase<O>(value)
    return Effect.map(Effect.orDie(encode(output)), (encoded) => {
      const details = erase<JsonValue>(encoded)
      const content = options.toContent?.(output) ??
        (typeof details === "string" ? details : JSON.stringify(details, null, 2))
      return toolResult({ content, details })
    })
  }
}

const encodeJson = Schema.encodeUnknownEffect(Schema.Json)

const failureOf = (error: { readonly message: string }): ToolFailure =>
  error instanceof ToolFailure ? error : new ToolFailure({ message: error.message })

const erase = <A>(value: unknown): A => value as A

const eraseCodec = <I>(codec: Schema.Codec<I, unknown>): Schema.Codec<unknown, unknown> => codec
