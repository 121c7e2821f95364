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
  LanguageModelV4ToolResultOutput
} from "@ai-sdk/provider"
import type { FilePart, Message, TextPart, ToolDefinition, ToolResultPart } from "@bezel/core/model"
import { type FileOptions, filePart, options, wellFormed } from "./ai-sdk-files.ts"

export interface PromptOptions extends FileOptions {
  /** Whether a tool's result may hold files; else they follow as a message of the user. */
  readonly filesInResults: boolean
}

const textPart = (part: TextPart): LanguageModelV4TextPart => ({
  type: "text",
  text: wellFormed(part.text),
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
