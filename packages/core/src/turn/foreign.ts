/**
 * What of a conversation only the model that said it can read: its reasoning, which it may have signed, and what its provider
 * has attached to parts. To another model the reasoning is left out, and so is what was attached; words and calls stay.
 */
import type { AssistantMessage, Message, ModelInfo } from "../model/index.ts"
import type { EntryRecord } from "../storage/index.ts"
import { entryKinds } from "./kinds.ts"

const authorOf = ({ data, kind }: EntryRecord): string | null =>
  kind === entryKinds.assistant && typeof data === "object" && data !== null && "model" in data &&
    typeof data.model === "string"
    ? data.model
    : null

/** The messages of this transcript as `model` may see them. Its own are the same objects. */
export const forModel = (
  messages: Array<Message>,
  transcript: ReadonlyArray<EntryRecord>,
  model: Pick<ModelInfo, "provider" | "model">
): Array<Message> => {
  const name = `${model.provider}/${model.model}`
  const foreign = new Set<Message>()
  for (const entry of transcript) {
    const author = authorOf(entry)
    if (author !== null && author !== name) { for (const message of entry.model ?? []) foreign.add(message) }
  }
  if (foreign.size === 0) return messages
  return messages.flatMap((message) => {
    if (message.role !== "assistant" || !foreign.has(message)) return [message]
    const content = message.content.flatMap(plain)
    return content.length === 0 ? [] : [{ role: "assistant", content }]
  })
}

const plain = (part: AssistantMessage["content"][number]): ReadonlyArray<AssistantMessage["content"][number]> => {
  if (part.type === "reasoning") return []
  const { options, ...rest } = part
  if (options === undefined) return [part]
  // Ours belongs to no provider.
  return [options.bezel === undefined ? rest : { ...rest, options: { bezel: options.bezel } }]
}
