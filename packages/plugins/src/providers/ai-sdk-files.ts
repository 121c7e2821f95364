/**
 * Files of a conversation as parts of a provider package's prompt: shown where the model and the provider take them, else
 * described in words, so that the model knows what it does not see and why.
 */
import type { LanguageModelV4FilePart, LanguageModelV4TextPart, SharedV4ProviderOptions } from "@ai-sdk/provider"
import {
  type FilePart,
  imageHeadBytes,
  imageSize,
  type Message,
  type ProviderOptions,
  type TextPart
} from "@bezel/core/model"

export interface FileOptions {
  /** Whether the model reads images. */
  readonly images: boolean
  /** What an image may have; a provider refuses a whole conversation for one that has more. Default: no limit. */
  readonly imageLimit?: ImageLimit
  /** Marks (`fileMarks`) of files that the provider has refused. */
  readonly refused?: ReadonlySet<string>
}

export interface ImageLimit {
  /** Pixels of a side. */
  readonly side: number
  /** Bytes as Base64. */
  readonly encoded: number
}

/** A lone half of a surrogate pair is refused by providers, and can come out of any file that a tool read. */
export const wellFormed = (text: string): string => text.isWellFormed() ? text : text.toWellFormed()

export const options = (own: ProviderOptions | undefined): { readonly providerOptions?: SharedV4ProviderOptions } => {
  if (own === undefined) return {}
  const copied: SharedV4ProviderOptions = {}
  // What is ours (`bezel`) is no provider's business.
  for (const [provider, value] of Object.entries(own)) if (provider !== "bezel") copied[provider] = { ...value }
  return Object.keys(copied).length === 0 ? {} : { providerOptions: copied }
}

/** What a file is known by, without keeping it. */
const markOf = ({ data }: FilePart): string => `${data.length} ${data.slice(0, 200)} ${data.slice(-200)}`

const isText = (part: FilePart): boolean => part.mediaType.startsWith("text/")

/** The marks of all files in these messages that are not shown as text. */
export const fileMarks = (messages: ReadonlyArray<Message>): ReadonlySet<string> => {
  const parts = messages.flatMap((one): ReadonlyArray<TextPart | FilePart> =>
    one.role === "user"
      ? one.content
      : one.role === "tool"
      ? one.content.flatMap((part) => part.modelOutput ?? [])
      : []
  )
  return new Set(parts.flatMap((part) => part.type === "file" && !isText(part) ? [markOf(part)] : []))
}

/** Why an image is over a limit, or `null`. */
const overLimit = ({ data }: FilePart, limit: ImageLimit): string | null => {
  if (data.length > limit.encoded) return `it has more than ${(limit.encoded / 1024 / 1024).toFixed(0)} MiB as Base64`
  const size = imageSize(Buffer.from(data.slice(0, Math.ceil(imageHeadBytes / 3) * 4), "base64"))
  return size !== null && Math.max(size.width, size.height) > limit.side
    ? `it has ${size.width}×${size.height} pixels, and ${limit.side.toLocaleString("en-US")} a side are the most`
    : null
}

/** Why the model does not see a file, and what may help; `null`: it does. */
const notShown = (part: FilePart, { imageLimit, images, refused }: FileOptions): string | null => {
  const image = part.mediaType.startsWith("image/")
  if (!(image && images) && part.mediaType !== "application/pdf") {
    return `this model does not read ${image ? "images" : "it"}`
  }
  const over = image && imageLimit !== undefined ? overLimit(part, imageLimit) : null
  if (over !== null) return `${over}. A smaller copy of it can be`
  if (refused?.has(markOf(part)) !== true) return null
  return image
    ? "the provider refused a request with it. It may be damaged or too large"
    : "the provider refused a request with it. The read tool gives its text"
}

/** A file as the model is to see it. */
export const filePart = (
  part: FilePart,
  fileOptions: FileOptions
): LanguageModelV4TextPart | LanguageModelV4FilePart => {
  if (isText(part)) return attachedText(part)
  const why = notShown(part, fileOptions)
  if (why !== null) {
    const named = part.fileName === undefined ? "" : ` "${wellFormed(part.fileName)}"`
    return { type: "text", text: `[A file${named} of type ${part.mediaType} is not shown: ${why}.]` }
  }
  return {
    type: "file",
    mediaType: part.mediaType,
    data: { type: "data", data: part.data },
    ...(part.fileName === undefined ? {} : { filename: part.fileName }),
    ...options(part.options)
  }
}

/** Text is text to every model; where it is from is said around it. */
const attachedText = (part: FilePart): LanguageModelV4TextPart => ({
  type: "text",
  text: `<file path="${wellFormed(part.fileName ?? "attached")}">\n${
    Buffer.from(part.data, "base64").toString("utf8")
  }\n</file>`,
  ...options(part.options)
})
