/**
 * Bounds of a result, in one place, whoever made it: 64 KiB and 2,000 lines of text, head, tail or both ends kept, by
 * tool.
 *
 * What does not fit goes to a file that the result names. Binary is described, not printed. Files in a result and its
 * details are bounded too, so that no result can fill a session. Characters are never torn. Bounding never fails.
 */
import * as Effect from "effect/Effect"
import type { JsonValue } from "../json/index.ts"
import { makeCollector } from "./collector.ts"
import { defaultBounds } from "./define.ts"
import { sizeOf } from "./text.ts"
import type { OutputBounds, ToolCall, ToolContent, ToolResult } from "./tool.ts"

/** Largest file part of a result, in bytes of Base64. */
export const MAX_FILE_BYTES = 8 * 1024 * 1024
/** Largest details of a result, in UTF-16 units of JSON text. */
export const MAX_DETAILS = 1024 * 1024

/** The result within bounds. `textBounded` says that its text comes from a collector, which has bounded it. */
export const boundResult = Effect.fnUntraced(function*(
  result: ToolResult,
  options: { readonly bounds: OutputBounds | null; readonly textBounded: boolean; readonly call: ToolCall }
) {
  const limits = options.bounds ?? defaultBounds
  const texts = result.content.flatMap((part) => part.type === "text" ? [part.text] : [])
  const fine = options.textBounded || fits(texts, limits)
  const bounded = fine ? result.content : yield* shorten(result.content, limits, options.call)
  const content = bounded.map(boundFile)
  const details = boundDetails(result.details)
  const text = content.some((part) => part.type === "file" || part.text !== "")
  return { ...result, details, content: text ? content : emptyOutput }
})

/** Said to the model where a tool has nothing to say, because an empty result reads like a failure. */
export const emptyOutput: ReadonlyArray<ToolContent> = [{ type: "text", text: "(no output)" }]

/** An artifact's file name for a call: safe in any file system, and telling whose it is. */
export const artifactName = (call: ToolCall): string =>
  `${call.callID}-${call.name}`.replaceAll(/[^A-Za-z0-9._-]/g, "_").slice(0, 120) + ".txt"

const fits = (texts: ReadonlyArray<string>, bounds: OutputBounds): boolean => {
  let bytes = 0
  let lines = 0
  for (const text of texts) {
    bytes += Buffer.byteLength(text)
    lines += newlinesOf(text) + (text === "" || text.endsWith("\n") ? 0 : 1)
    if (text.includes("\u0000")) return false
  }
  return bytes <= bounds.maxBytes && lines <= bounds.maxLines
}

const newlinesOf = (text: string): number => {
  let count = 0
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) count++
  return count
}

// All texts of a result share one bound; what is kept stands where the first of them stood.
const shorten = Effect.fnUntraced(function*(content: ReadonlyArray<ToolContent>, bounds: OutputBounds, call: ToolCall) {
  const collector = makeCollector({ bounds, artifact: call.artifact(artifactName(call)) })
  const encoder = new TextEncoder()
  let written = false
  for (const part of content) {
    if (part.type !== "text" || part.text === "") continue
    if (written) yield* collector.write(encoder.encode("\n"))
    yield* collector.write(encoder.encode(part.text))
    written = true
  }
  const { text } = yield* collector.finish
  const at = content.findIndex((part) => part.type === "text")
  return content.flatMap((part, index): ReadonlyArray<ToolContent> =>
    part.type === "file" ? [part] : index === at ? [{ type: "text", text }] : []
  )
})

const boundFile = (part: ToolContent): ToolContent => {
  if (part.type === "text" || part.data.length <= MAX_FILE_BYTES) return part
  const size = sizeOf(Math.floor(part.data.length * 3 / 4))
  const name = part.fileName ?? "a file"
  return { type: "text", text: `[${name} (${part.mediaType}, ${size}) is too large to show.]` }
}

const boundDetails = (details: JsonValue): JsonValue => {
  const length = JSON.stringify(details).length
  return length <= MAX_DETAILS ? details : { omitted: `details of ${sizeOf(length)}` }
}
