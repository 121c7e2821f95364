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

interface Others {
  readonly name: string
  /** What other models than `name` have said in the first `length` entries. */
  readonly messages: Set<Message>
  length: number
}

const seen = new WeakMap<ReadonlyArray<EntryRecord>, Others>()

/** Of a transcript that only ever grows at its end, each call looks at what has come since the last one. */
const othersIn = (transcript: ReadonlyArray<EntryRecord>, name: string): ReadonlySet<Message> => {
  let known = seen.get(transcript)
  if (known === undefined || known.name !== name) {
    known = { name, messages: new Set(), length: 0 }
    seen.set(transcript, known)
  }
  for (const entry of transcript.slice(known.length)) {
    const author = authorOf(entry)
    if (author !== null && author !== name) { for (const message of entry.model ?? []) known.messages.add(message) }
  }
  known.length = transcript.length
  return known.messages
}

/** The messages of this transcript as `model` may see them. Its own are the same objects. */
export const forModel = (
  messages: Array<Message>,
  transcript: ReadonlyArray<EntryRecord>,
  model: Pick<ModelInfo, "provider" | "model">
): Array<Message> => {
  const foreign = othersIn(transcript, `${model.provider}/${model.model}`)
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
