/**
 * From what a server sends to what a model sees: text as it is, images as files, other bytes in a file of the session that the
 * result names. What is none of the protocol's kinds is described. Bounds of text are the tools' own, in one place.
 */
import type { JsonObject } from "@bezel/core/json"
import type { FilePart, TextPart } from "@bezel/core/model"
import { sizeOf, type ToolCall, type ToolResult, toolResult } from "@bezel/core/tool"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { bounded, oneLine } from "./text.ts"

const Resource = Schema.Struct({
  uri: Schema.String,
  mimeType: Schema.optionalKey(Schema.String),
  text: Schema.optionalKey(Schema.String),
  blob: Schema.optionalKey(Schema.String)
})

const Content = Schema.Union([
  Schema.Struct({ type: Schema.Literal("text"), text: Schema.String }),
  Schema.Struct({ type: Schema.Literals(["image", "audio"]), data: Schema.String, mimeType: Schema.String }),
  Schema.Struct({ type: Schema.Literal("resource"), resource: Resource }),
  Schema.Struct({
    type: Schema.Literal("resource_link"),
    uri: Schema.String,
    name: Schema.optionalKey(Schema.String),
    description: Schema.optionalKey(Schema.String)
  })
])

/** Keeps bytes that a model cannot see; gives where. */
export type Keep = (bytes: Buffer, mediaType: string) => Effect.Effect<string>

const maxParts = 1_000
const maxImages = 20
const maxImageText = 8 * 1024 * 1024
/** What the usual providers read. */
const images: ReadonlySet<string> = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"])

const isBase64 = (text: string): boolean => text.length > 0 && /^[A-Za-z0-9+/\s]*={0,2}\s*$/.test(text)

const mediaTypeOf = (text: string | undefined): string => oneLine(text ?? "application/octet-stream", 100).toLowerCase()

/** Keeps bytes in a file of the session, beside the result. */
export const keepIn = (call: ToolCall): Keep => (bytes, mediaType) =>
  Effect.gen(function*() {
    const extension = /^[a-z]+\/([a-z0-9]{1,8})$/.exec(mediaType)?.[1] ?? "bin"
    const writer = yield* call.artifact(`${call.callID}-${call.name}.${extension}`)
    const isWhole = yield* writer.write(bytes)
    yield* writer.close
    return isWhole ? writer.path : `${writer.path} (cut off)`
  })

export interface Converted {
  readonly parts: ReadonlyArray<TextPart | FilePart>
  /** How many items there were, whatever became of them. */
  readonly items: number
}

/** Content items of a result, a resource or a prompt. */
export const convert = (items: ReadonlyArray<unknown>, keep: Keep): Effect.Effect<Converted> =>
  Effect.gen(function*() {
    const parts: Array<TextPart | FilePart> = []
    let shown = 0
    const text = (value: string) => {
      parts.push({ type: "text", text: value.toWellFormed() })
    }
    const binary = Effect.fnUntraced(function*(data: string, mediaType: string, what: string) {
      if (!isBase64(data)) return text(`[${what} of type ${mediaType} that cannot be read: it is not Base64.]`)
      if (images.has(mediaType) && shown < maxImages && data.length <= maxImageText) {
        shown++
        parts.push({ type: "file", mediaType, data: data.replaceAll(/\s+/g, "") })
        return
      }
      const bytes = Buffer.from(data, "base64")
      const path = yield* keep(bytes, mediaType)
      text(`[${what} of type ${mediaType}, ${sizeOf(bytes.length)}, kept in ${path}]`)
    })
    for (const item of items.slice(0, maxParts)) {
      const decoded = Schema.decodeUnknownOption(Content)(item)
      if (Option.isNone(decoded)) {
        text("[Something that is no kind of content that is known here.]")
        continue
      }
      const content = decoded.value
      switch (content.type) {
        case "text":
          text(content.text)
          break
        case "image":
        case "audio":
          yield* binary(content.data, mediaTypeOf(content.mimeType), content.type === "image" ? "An image" : "A sound")
          break
        case "resource": {
          const { blob, mimeType, text: body, uri } = content.resource
          const name = oneLine(uri, 500)
          if (body !== undefined) text(`${name}:\n${body}`)
          else if (blob !== undefined) yield* binary(blob, mediaTypeOf(mimeType), `The resource ${name}`)
          else text(`[The resource ${name} is empty.]`)
          break
        }
        case "resource_link": {
          const about = [content.name, content.description].flatMap((one) =>
            one === undefined ? [] : [oneLine(one, 300)]
          )
          text(`[A resource: ${oneLine(content.uri, 500)}${about.length === 0 ? "" : ` (${about.join(": ")})`}]`)
        }
      }
    }
    if (items.length > maxParts) text(`[${items.length - maxParts} more items are left out.]`)
    return { parts, items: items.length }
  })

const CallResult = Schema.Struct({
  content: Schema.optionalKey(Schema.Array(Schema.Unknown)),
  structuredContent: Schema.optionalKey(Schema.Record(Schema.String, Schema.Json)),
  isError: Schema.optionalKey(Schema.Boolean)
})

/** The result of a call; `null` if it is not one. Structured content is shown as JSON where there is nothing else. */
export const callResult = (
  raw: unknown,
  call: ToolCall,
  details: JsonObject
): Effect.Effect<ToolResult | null> =>
  Effect.gen(function*() {
    const decoded = Schema.decodeUnknownOption(CallResult)(raw)
    if (Option.isNone(decoded)) return null
    const { content = [], isError = false, structuredContent } = decoded.value
    const { items, parts } = yield* convert(content, keepIn(call))
    const structured: ReadonlyArray<TextPart> = items > 0 || structuredContent === undefined
      ? []
      : [{ type: "text", text: JSON.stringify(structuredContent, null, 2).toWellFormed() }]
    return toolResult({
      content: [...parts, ...structured],
      isError,
      details: { ...details, ...(structuredContent === undefined ? {} : { structured: structuredContent }) }
    })
  })

const PromptResult = Schema.Struct({
  messages: Schema.Array(Schema.Struct({ role: Schema.Literals(["user", "assistant"]), content: Schema.Unknown }))
})

/** A prompt as one message of the user; `null` if it is not one. Bytes that are no images are left out. */
export const promptResult = (raw: unknown) =>
  Effect.gen(function*() {
    const decoded = Schema.decodeUnknownOption(PromptResult)(raw)
    if (Option.isNone(decoded)) return null
    const texts: Array<string> = []
    const files: Array<FilePart> = []
    for (const { content, role } of decoded.value.messages.slice(0, 100)) {
      const { parts } = yield* convert([content], () => Effect.succeed("nowhere"))
      for (const part of parts) {
        if (part.type === "file") files.push(part)
        else texts.push(role === "user" ? part.text : `(as you would answer:)\n${part.text}`)
      }
    }
    return { text: bounded(texts.join("\n\n"), 256 * 1024), files }
  })
