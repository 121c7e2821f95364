/**
 * From the messages of a session to the prompt of a provider package (LanguageModelV4).
 *
 * What has no content is left out, for providers refuse it; text is well-formed Unicode; files that the model or the wire
 * cannot take are described in words. Provider options of parts and messages are passed on as they are.
 */
import type {
  LanguageModelV4CallOptions,
  LanguageModelV4FilePart,
  LanguageModelV4Message,
  LanguageModelV4Prompt,
  LanguageModelV4TextPart,
  LanguageModelV4ToolResultOutput,
  SharedV4ProviderOptions
} from "@ai-sdk/provider"
import {
  type FilePart,
  imageHeadBytes,
  imageSize,
  type Message,
  type ProviderOptions,
  type TextPart,
  type ToolDefinition,
  type ToolResultPart
} from "@bezel/core/model"

export interface PromptOptions {
  readonly images: boolean
  /** Whether a tool's result may hold files; else they follow as a message of the user. */
  readonly filesInResults: boolean
  /** What an image may have; a provider refuses a whole conversation for one that has more. Default: no limit. */
  readonly imageLimit?: ImageLimit
  /** Marks (`imageMark`) of images that the provider has refused. */
  readonly refused?: ReadonlySet<string>
}

export interface ImageLimit {
  /** Pixels of a side. */
  readonly side: number
  /** Bytes as Base64. */
  readonly encoded: number
}

/** A lone half of a surrogate pair is refused by providers, and can come out of any file that a tool read. */
const wellFormed = (text: string): string => text.isWellFormed() ? text : text.toWellFormed()

const options = (own: ProviderOptions | undefined): { readonly providerOptions?: SharedV4ProviderOptions } => {
  if (own === undefined) return {}
  const copied: SharedV4ProviderOptions = {}
  // What is ours (`bezel`) is no provider's business.
  for (const [provider, value] of Object.entries(own)) if (provider !== "bezel") copied[provider] = { ...value }
  return Object.keys(copied).length === 0 ? {} : { providerOptions: copied }
}

const textPart = (part: TextPart): LanguageModelV4TextPart => ({
  type: "text",
  text: wellFormed(part.text),
  ...options(part.options)
})

const isImage = (part: TextPart | FilePart): part is FilePart =>
  part.type === "file" && part.mediaType.startsWith("image/")

/** What an image is known by, without keeping it. */
const imageMark = ({ data }: FilePart): string => `${data.length} ${data.slice(0, 200)} ${data.slice(-200)}`

/** The marks of all images that a prompt of these messages would show. */
export const imageMarks = (messages: ReadonlyArray<Message>): ReadonlySet<string> =>
  new Set(
    messages.flatMap((one): ReadonlyArray<TextPart | FilePart> =>
      one.role === "user"
        ? one.content
        : one.role === "tool"
        ? one.content.flatMap((part) => part.modelOutput ?? [])
        : []
    ).filter(isImage).map(imageMark)
  )

/** Why an image is over a limit, or `null`. */
const overLimit = ({ data }: FilePart, limit: ImageLimit): string | null => {
  if (data.length > limit.encoded) return `it has more than ${(limit.encoded / 1024 / 1024).toFixed(0)} MiB as Base64`
  const size = imageSize(Buffer.from(data.slice(0, Math.ceil(imageHeadBytes / 3) * 4), "base64"))
  return size !== null && Math.max(size.width, size.height) > limit.side
    ? `it has ${size.width}×${size.height} pixels, and ${limit.side.toLocaleString("en-US")} a side are the most`
    : null
}

const filePart = (
  part: FilePart,
  { imageLimit, images, refused }: PromptOptions
): LanguageModelV4TextPart | LanguageModelV4FilePart => {
  const image = isImage(part)
  if (part.mediaType.startsWith("text/")) return attachedText(part)
  const named = part.fileName === undefined ? "" : ` "${wellFormed(part.fileName)}"`
  const over = image && images && imageLimit !== undefined ? overLimit(part, imageLimit) : null
  if (over !== null) {
    return { type: "text", text: `[The image${named} is not shown: ${over}. A smaller copy of it can be.]` }
  }
  if (image && images && refused?.has(imageMark(part)) === true) {
    return {
      type: "text",
      text: `[The image${named} is not shown: the provider refused a request with it. It may be damaged or too large.]`
    }
  }
  if (image && images || part.mediaType === "application/pdf") {
    return {
      type: "file",
      mediaType: part.mediaType,
      data: { type: "data", data: part.data },
      ...(part.fileName === undefined ? {} : { filename: part.fileName }),
      ...options(part.options)
    }
  }
  return {
    type: "text",
    text: `[A file${named} of type ${part.mediaType} is not shown: this model does not read ${
      image ? "images" : "it"
    }.]`
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

const isEmpty = (part: TextPart | FilePart): boolean => part.type === "text" && part.text === ""

const userContent = (
  parts: ReadonlyArray<TextPart | FilePart>,
  promptOptions: PromptOptions
): Array<LanguageModelV4TextPart | LanguageModelV4FilePart> =>
  parts.filter((part) => !isEmpty(part)).map((part) =>
    part.type === "text" ? textPart(part) : filePart(part, promptOptions)
  )

const resultText = (part: ToolResultPart): string => {
  const text = wellFormed(typeof part.result === "string" ? part.result : JSON.stringify(part.result))
  return text === "" ? part.isFailure ? "(failed without output)" : "(no output)" : text
}

const resultOutput = (part: ToolResultPart, promptOptions: PromptOptions): LanguageModelV4ToolResultOutput => {
  const shown = userContent(part.modelOutput ?? [], promptOptions)
  const files = shown.some((one) => one.type === "file")
  if (part.isFailure || shown.length === 0 || !files) {
    const text = shown.length === 0
      ? resultText(part)
      : shown.map((one) => one.type === "text" ? one.text : "").join("\n")
    return part.isFailure ? { type: "error-text", value: text } : { type: "text", value: text }
  }
  if (promptOptions.filesInResults) {
    return {
      type: "content",
      value: shown.map((one) =>
        one.type === "text"
          ? { type: "text", text: one.text }
          : {
            type: "file",
            mediaType: one.mediaType,
            data: one.data,
            ...(one.filename === undefined ? {} : { filename: one.filename })
          }
      )
    }
  }
  const text = shown.filter((one) => one.type === "text").map((one) => one.text).join("\n")
  return { type: "text", value: text === "" ? "(a file, shown below)" : text }
}

const message = (one: Message, promptOptions: PromptOptions): LanguageModelV4Message | null => {
  switch (one.role) {
    case "system":
      return one.content === "" ? null : { role: "system", content: wellFormed(one.content), ...options(one.options) }
    case "user": {
      const content = userContent(one.content, promptOptions)
      return content.length === 0 ? null : { role: "user", content, ...options(one.options) }
    }
    case "assistant": {
      const content: Extract<LanguageModelV4Message, { role: "assistant" }>["content"] = []
      for (const part of one.content) {
        switch (part.type) {
          case "text":
            if (part.text !== "") content.push(textPart(part))
            break
          case "reasoning":
            // Reasoning without text may still carry what the provider must see again: a signature, redacted data.
            if (part.text !== "" || part.options !== undefined) {
              content.push({ type: "reasoning", text: part.text, ...options(part.options) })
            }
            break
          case "file":
            content.push(filePart(part, promptOptions))
            break
          case "tool-call":
            content.push({
              type: "tool-call",
              toolCallId: part.id,
              toolName: part.name,
              input: part.params,
              ...options(part.options)
            })
            break
        }
      }
      // Reasoning alone is no content: a turn that was cut before its answer.
      return content.every((part) => part.type === "reasoning")
        ? null
        : { role: "assistant", content, ...options(one.options) }
    }
    case "tool": {
      if (one.content.length === 0) return null
      return {
        role: "tool",
        content: one.content.map((part) => ({
          type: "tool-result",
          toolCallId: part.id,
          toolName: part.name,
          output: resultOutput(part, promptOptions),
          ...options(part.options)
        })),
        ...options(one.options)
      }
    }
  }
}

/** Files of results that could not stand in the results themselves. */
const filesBeside = (
  one: Message,
  promptOptions: PromptOptions
): Array<LanguageModelV4TextPart | LanguageModelV4FilePart> => {
  if (one.role !== "tool" || promptOptions.filesInResults) return []
  return one.content.flatMap((part) => {
    if (part.isFailure) return []
    const files = userContent(part.modelOutput ?? [], promptOptions).filter((shown) => shown.type === "file")
    return files.length === 0
      ? []
      : [{ type: "text" as const, text: `From the result of ${part.name} (${part.id}):` }, ...files]
  })
}

export const toPrompt = (messages: ReadonlyArray<Message>, promptOptions: PromptOptions): LanguageModelV4Prompt => {
  const prompt: LanguageModelV4Prompt = []
  let files: Array<LanguageModelV4TextPart | LanguageModelV4FilePart> = []
  const flush = (): void => {
    if (files.length > 0) prompt.push({ role: "user", content: files })
    files = []
  }
  for (const one of messages) {
    // Only behind the last result: between two, the files would part calls from their results.
    if (one.role !== "tool") flush()
    const made = message(one, promptOptions)
    if (made !== null) prompt.push(made)
    files.push(...filesBeside(one, promptOptions))
  }
  flush()
  return prompt
}

export const toTools = (tools: ReadonlyArray<ToolDefinition>): NonNullable<LanguageModelV4CallOptions["tools"]> =>
  tools.map((tool) => ({
    type: "function",
    name: tool.name,
    description: tool.description,
    inputSchema: { ...tool.inputSchema }
  }))
