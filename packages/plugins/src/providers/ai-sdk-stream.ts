/**
 * From the stream parts of a provider package (LanguageModelV4) to those of a model.
 *
 * A translator holds one answer's state; it is plain synchronous code on the hot path. It promises: block ids are unique
 * within the answer; provider metadata of a block, which may come with any of its parts, is whole on the block's end;
 * a call comes once, after its arguments, with strict JSON in `params` or marked as malformed; `finish` is last and comes
 * only for an end that the provider has explained. Everything else is a `StreamFault`.
 */
import type { LanguageModelV4StreamPart, LanguageModelV4Usage } from "@ai-sdk/provider"
import type { JsonObject, JsonValue } from "@bezel/core/json"
import { malformedMetadata, type ModelErrorKind, type ModelPart } from "@bezel/core/model"
import type { StreamGuard } from "./ai-sdk-guard.ts"

/** Why a stream is no answer. `error` is what the provider reported, to be classified by who knows the provider. */
export type StreamFault =
  | { readonly fault: "provider"; readonly error: unknown }
  | { readonly fault: ModelErrorKind; readonly message: string; readonly retryable: boolean }

export interface Translator {
  /** The parts that follow from this one, pushed to `out`; a fault ends the stream. */
  readonly push: (part: LanguageModelV4StreamPart, out: Array<ModelPart>) => StreamFault | null
  /** True once `finish` has been given. */
  readonly finished: () => boolean
  /** The fault of a stream that ended here. */
  readonly cut: () => StreamFault
}

type Metadata = { readonly [provider: string]: JsonObject }
type Call = Extract<LanguageModelV4StreamPart, { type: "tool-call" }>

interface Block {
  readonly id: string
  metadata: Metadata | undefined
}

const fault = (kind: ModelErrorKind, message: string, retryable = true): StreamFault => ({
  fault: kind,
  message,
  retryable
})

export const makeTranslator = (guard: StreamGuard): Translator => {
  const blocks = { text: new Map<string, Block>(), reasoning: new Map<string, Block>() }
  const opened = new Map<string, number>()
  /** Arguments that have begun, with their length so far; `done` once the call is there. */
  const calls = new Map<string, { readonly name: string; text: string; ended: boolean; done: boolean }>()
  /** The newest call waits for what follows: an output limit right behind it may have cut it. */
  let held: Call | null = null
  let hasContent = false
  let hasText = false
  let callCount = 0
  let finished = false

  const uniqueID = (id: string): string => {
    const times = (opened.get(id) ?? 0) + 1
    opened.set(id, times)
    return times === 1 ? id : `${id}.${times}`
  }

  const releaseHeld = (out: Array<ModelPart>, cutByLimit: boolean): void => {
    if (held === null) return
    const call = held
    held = null
    const written = calls.get(call.toolCallId)?.text ?? call.input
    out.push(toCall(call, written, cutByLimit))
  }

  /** A call of which only a part arrived before the output limit. */
  const releaseCut = (out: Array<ModelPart>): void => {
    for (const [id, call] of calls) {
      if (call.done) continue
      call.done = true
      callCount++
      if (!call.ended) out.push({ type: "tool-params-end", id })
      out.push(toCall({ type: "tool-call", toolCallId: id, toolName: call.name, input: call.text }, call.text, true))
    }
  }

  const finish = (
    part: Extract<LanguageModelV4StreamPart, { type: "finish" }>,
    out: Array<ModelPart>
  ): StreamFault | null => {
    const { raw, unified } = part.finishReason
    const limit = unified === "length"
    const open = [...calls.values()].some((call) => !call.done)
    const reason = reasonOf(unified, raw, callCount, hasText)
    // Before anything that waits is given: the call of an answer that is none is no call.
    if (typeof reason !== "string") return reason
    if (open && !limit) return fault("malformed", "The answer ends inside a tool call.")
    releaseHeld(out, limit && !open)
    if (limit) releaseCut(out)
    for (const kind of ["text", "reasoning"] as const) {
      for (const key of blocks[kind].keys()) endBlock(kind, key, undefined, out)
    }
    const seen = guard.argumentLength()
    if (seen !== null && seen !== [...calls.values()].reduce((sum, call) => sum + call.text.length, 0)) {
      return fault("malformed", "The stream has a fragment of a tool call that belongs to no call.")
    }
    finished = true
    const metadata = toMetadata(part.providerMetadata)
    out.push({ type: "finish", reason, usage: toUsage(part.usage), ...(metadata === undefined ? {} : { metadata }) })
    return null
  }

  const endBlock = (
    kind: "text" | "reasoning",
    key: string,
    more: Metadata | undefined,
    out: Array<ModelPart>
  ): void => {
    const block = blocks[kind].get(key)
    if (block === undefined) return
    blocks[kind].delete(key)
    const metadata = mergeMetadata(block.metadata, more)
    out.push({ type: `${kind}-end`, id: block.id, ...(metadata === undefined ? {} : { metadata }) })
  }

  return {
    finished: () => finished,
    cut: () =>
      hasContent
        ? fault("truncated", "The answer broke off before its end.")
        : fault("truncated", "The stream ended before any answer."),
    push: (part, out) => {
      if (part.type === "raw") {
        const wrong = guard.event(part.rawValue)
        return wrong === null ? null : fault("malformed", wrong)
      }
      switch (part.type) {
        case "text-start":
        case "reasoning-start": {
          releaseHeld(out, false)
          const kind = part.type === "text-start" ? "text" : "reasoning"
          if (blocks[kind].has(part.id)) return fault("malformed", "A block of the answer begins twice.")
          const metadata = toMetadata(part.providerMetadata)
          const block: Block = { id: uniqueID(`${kind}-${part.id}`), metadata }
          blocks[kind].set(part.id, block)
          out.push({ type: part.type, id: block.id, ...(metadata === undefined ? {} : { metadata }) })
          return null
        }
        case "text-delta":
        case "reasoning-delta": {
          const kind = part.type === "text-delta" ? "text" : "reasoning"
          const block = blocks[kind].get(part.id)
          if (block === undefined) {
            return fault("malformed", "A part of the answer arrives for a block that is not open.")
          }
          const metadata = toMetadata(part.providerMetadata)
          if (metadata !== undefined) block.metadata = mergeMetadata(block.metadata, metadata)
          if (part.delta === "") return null
          hasContent = true
          if (kind === "text") hasText = true
          out.push({ type: part.type, id: block.id, delta: part.delta })
          return null
        }
        case "text-end":
        case "reasoning-end":
          endBlock(part.type === "text-end" ? "text" : "reasoning", part.id, toMetadata(part.providerMetadata), out)
          return null
        case "tool-input-start":
          releaseHeld(out, false)
          if (part.providerExecuted === true) return null
          if (calls.has(part.id)) return fault("malformed", "Two tool calls of the answer have the same id.")
          hasContent = true
          calls.set(part.id, { name: part.toolName, text: "", ended: false, done: false })
          out.push({ type: "tool-params-start", id: part.id, name: part.toolName })
          return null
        case "tool-input-delta": {
          const call = calls.get(part.id)
          if (call === undefined || call.ended) return null
          call.text += part.delta
          out.push({ type: "tool-params-delta", id: part.id, delta: part.delta })
          return null
        }
        case "tool-input-end": {
          const call = calls.get(part.id)
          if (call === undefined || call.ended) return null
          call.ended = true
          out.push({ type: "tool-params-end", id: part.id })
          return null
        }
        case "tool-call": {
          releaseHeld(out, false)
          if (part.providerExecuted === true) return null
          const begun = calls.get(part.toolCallId)
          if (begun?.done === true) return fault("malformed", "Two tool calls of the answer have the same id.")
          if (begun === undefined) {
            // A package that does not stream arguments: the call is its own beginning and end.
            out.push({ type: "tool-params-start", id: part.toolCallId, name: part.toolName })
            out.push({ type: "tool-params-delta", id: part.toolCallId, delta: part.input })
            out.push({ type: "tool-params-end", id: part.toolCallId })
            calls.set(part.toolCallId, { name: part.toolName, text: part.input, ended: true, done: true })
          } else begun.done = true
          hasContent = true
          callCount++
          held = part
          return null
        }
        case "finish":
          return finish(part, out)
        case "error":
          return { fault: "provider", error: part.error }
        default:
          // Sources, files, warnings and what the provider did by itself: nothing that a turn works with.
          return null
      }
    }
  }
}

/** Words by which providers say that an answer is not whole. */
const incomplete = /incomplete|abort|cancel|error|timeout|network|interrupt|fail/i

type Reason = Extract<ModelPart, { type: "finish" }>["reason"]

const reasonOf = (
  unified: Extract<LanguageModelV4StreamPart, { type: "finish" }>["finishReason"]["unified"],
  raw: string | undefined,
  calls: number,
  hasText: boolean
): Reason | StreamFault => {
  switch (unified) {
    case "stop":
      return calls > 0 ? "tool-calls" : "stop"
    case "tool-calls":
      if (calls > 0) return "tool-calls"
      return hasText ? "stop" : fault("malformed", "The answer ends for tool calls but has none.")
    case "length":
      return "length"
    case "content-filter":
      return fault("refused", "The provider refused to go on with this content.", false)
    case "error":
      return fault("unavailable", "The provider ended the answer because of an error of its own.")
    case "interrupted":
      return fault("truncated", "The answer broke off before its end.")
    default:
      if (raw === undefined) return fault("truncated", "The answer ended without a reason.")
      if (incomplete.test(raw)) {
        return fault("truncated", `The provider ended the answer as not complete (${raw.slice(0, 60)}).`)
      }
      return calls > 0 ? "tool-calls" : "other"
  }
}

const toCall = (call: Call, written: string, cutByLimit: boolean): ModelPart => {
  const metadata = toMetadata(call.providerMetadata)
  // A package may write "{}" for arguments that never came, which an output limit makes a lie.
  const parsed = cutByLimit && written.trim() === "" ? { error: cutError } : parseArguments(call.input)
  if ("params" in parsed) {
    return {
      type: "tool-call",
      id: call.toolCallId,
      name: call.toolName,
      params: parsed.params,
      ...(metadata === undefined ? {} : { metadata })
    }
  }
  const error = cutByLimit ? cutError : parsed.error
  return {
    type: "tool-call",
    id: call.toolCallId,
    name: call.toolName,
    params: {},
    metadata: { ...metadata, ...malformedMetadata({ error, text: call.input }) }
  }
}

const cutError = "The arguments were cut off by the output limit."

/** Deeper than any real arguments, and shallow enough for code that walks them by recursion. */
const maxDepth = 100

/** Reads the arguments of a call; no text at all counts as none. Never throws. */
const parseArguments = (written: string): { readonly params: JsonObject } | { readonly error: string } => {
  if (written.trim() === "") return { params: {} }
  let value: unknown
  try {
    value = JSON.parse(written)
  } catch (error) {
    return { error: `The arguments are not valid JSON: ${error instanceof Error ? error.message : String(error)}` }
  }
  if (!isJsonObject(value)) {
    return {
      error: `The arguments must be a JSON object, not ${
        value === null ? "null" : Array.isArray(value) ? "an array" : `a ${typeof value}`
      }.`
    }
  }
  const wrong = notStrict(value)
  return wrong === null ? { params: value } : { error: wrong }
}

const isJsonObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** JSON text can hold what a JSON value cannot: `1e999`. By a list, not by recursion: the depth is the model's choice. */
const notStrict = (root: JsonValue): string | null => {
  let level: Array<JsonValue> = [root]
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > maxDepth) return `The arguments are nested deeper than ${maxDepth} levels.`
    const next: Array<JsonValue> = []
    for (const value of level) {
      if (typeof value === "number" && !Number.isFinite(value)) return "The arguments hold a number that is too large."
      if (typeof value === "object" && value !== null) { for (const inner of Object.values(value)) next.push(inner) }
    }
    level = next
  }
  return null
}

const toMetadata = (metadata: { readonly [provider: string]: unknown } | undefined): Metadata | undefined => {
  if (metadata === undefined) return undefined
  const found: { [provider: string]: JsonObject } = {}
  for (const [provider, value] of Object.entries(metadata)) {
    // Through JSON, which drops what JSON cannot say and keeps every byte of the text that it can.
    const strict: unknown = JSON.parse(JSON.stringify(value ?? null))
    if (isJsonObject(strict) && Object.keys(strict).length > 0) found[provider] = strict
  }
  return Object.keys(found).length === 0 ? undefined : found
}

const mergeMetadata = (first: Metadata | undefined, second: Metadata | undefined): Metadata | undefined => {
  if (first === undefined) return second
  if (second === undefined) return first
  const merged: { [provider: string]: JsonObject } = { ...first }
  for (const [provider, value] of Object.entries(second)) merged[provider] = { ...merged[provider], ...value }
  return merged
}

type Usage = Extract<ModelPart, { type: "finish" }>["usage"]

const toUsage = (usage: LanguageModelV4Usage): Usage => ({
  inputTokens: {
    ...count("uncached", usage.inputTokens.noCache),
    ...count("total", usage.inputTokens.total),
    ...count("cacheRead", usage.inputTokens.cacheRead),
    ...count("cacheWrite", usage.inputTokens.cacheWrite)
  },
  outputTokens: {
    ...count("total", usage.outputTokens.total),
    ...count("text", usage.outputTokens.text),
    ...count("reasoning", usage.outputTokens.reasoning)
  }
})

/** A count that can be added up, or nothing. */
const count = <K extends string>(key: K, value: number | undefined): { readonly [key in K]?: number } => {
  const found: { [key in K]?: number } = {}
  if (value !== undefined && Number.isSafeInteger(value) && value >= 0) found[key] = value
  return found
}
