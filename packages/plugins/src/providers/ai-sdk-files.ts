/**
 * Files of a conversation as parts of a provider package's prompt: shown where the model and the provider take them, else
 * described in words, so that the model knows what it does not see and why.
 */
import type { LanguageModelV4FilePart, LanguageModelV4TextPart, SharedV4ProviderOptions } from "@ai-sdk/provider"
import type { FilePart, Message, ProviderOptions, TextPart } from "@bezel/core/model"
import * as Effect from "effect/Effect"
import { fitImage, type FittedImage, type ImageLimit, overLimit } from "./fit-image.ts"

export interface FileOptions {
  /** Whether the model reads images. */
  readonly images: boolean
  /** What an image may have; a provider refuses a whole conversation for one that has more. Default: no limit. */
  readonly imageLimit?: ImageLimit
  /** Copies of images that are over it, by their marks. */
  readonly copies?: ImageCopies
  /** Marks (`fileMarks`) of files that the provider has refused. */
  readonly refused?: ReadonlySet<string>
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

const filesOf = (messages: ReadonlyArray<Message>): ReadonlyArray<FilePart> =>
  messages.flatMap((one): ReadonlyArray<TextPart | FilePart> =>
    one.role === "user"
      ? one.content
      : one.role === "tool"
      ? one.content.flatMap((part) => part.modelOutput ?? [])
      : []
  ).filter((part) => part.type === "file")

/** The marks of all files in these messages that are not shown as text. */
export const fileMarks = (messages: ReadonlyArray<Message>): ReadonlySet<string> =>
  new Set(filesOf(messages).filter((part) => !isText(part)).map(markOf))

/** Smaller copies of images, by the marks of these; `null` for one of which there is none. */
export type ImageCopies = Map<string, FittedImage | null>

/** Copies that are remembered. */
const mostCopies = 64

/** Makes the copies that a request with these messages needs. */
export const addCopies = (
  messages: ReadonlyArray<Message>,
  limit: ImageLimit,
  copies: ImageCopies
): Effect.Effect<void> =>
  Effect.forEach(
    filesOf(messages).filter(({ data, mediaType }) =>
      mediaType.startsWith("image/") && overLimit(data, limit) !== null
    ),
    (part) => {
      const mark = markOf(part)
      if (copies.has(mark)) return Effect.void
      return Effect.map(fitImage(part.data, limit), (copy) => {
        for (const oldest of copies.keys()) {
          if (copies.size < mostCopies) break
          copies.delete(oldest)
        }
        copies.set(mark, copy)
      })
    },
    { discard: true }
  )

/** Why the model does not see a file, and what may help; `null`: it does. */
const notShown = (part: FilePart, { copies, imageLimit, images, refused }: FileOptions): string | null => {
  const image = part.mediaType.startsWith("image/")
  if (!(image && images) && part.mediaType !== "application/pdf") {
    return `this model does not read ${image ? "images" : "it"}`
  }
  const over = image && imageLimit !== undefined ? overLimit(part.data, imageLimit) : null
  if (over !== null && copies?.get(markOf(part)) == null) return `${over}. A smaller copy of it can be`
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
  const { data, mediaType } = fileOptions.copies?.get(markOf(part)) ?? part
  return {
    type: "file",
    mediaType,
    data: { type: "data", data },
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
