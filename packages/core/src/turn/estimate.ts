/**
 * How much of a model's context messages take, by a plain rule: four characters are a token, a file is a thousand. Good
 * enough to decide when to compact; what a request really took is what the provider says afterwards.
 */
import type { Message } from "../model/index.ts"
import type { EntryRecord } from "../storage/index.ts"

const charactersPerToken = 4
const tokensPerFile = 1_000

const counted = new WeakMap<Message, number>()

/** Messages do not change, so each is counted once. */
export const messageTokens = (message: Message): number => {
  let tokens = counted.get(message)
  if (tokens === undefined) counted.set(message, tokens = countTokens(message))
  return tokens
}

const countTokens = (message: Message): number => {
  if (message.role === "system") return Math.ceil(message.content.length / charactersPerToken)
  let characters = 0
  let files = 0
  for (const part of message.content) {
    switch (part.type) {
      case "text":
      case "reasoning":
        characters += part.text.length
        break
      case "file":
        files++
        break
      case "tool-call":
        characters += part.name.length + JSON.stringify(part.params).length
        break
      case "tool-result":
        characters += typeof part.result === "string" ? part.result.length : JSON.stringify(part.result).length
        files += part.modelOutput?.filter((output) => output.type === "file").length ?? 0
    }
  }
  return Math.ceil(characters / charactersPerToken) + files * tokensPerFile
}

export const entryTokens = (entry: EntryRecord): number =>
  (entry.model ?? []).reduce((sum, message) => sum + messageTokens(message), 0)

export const messagesTokens = (messages: ReadonlyArray<Message>): number =>
  messages.reduce((sum, message) => sum + messageTokens(message), 0)

interface Counted {
  readonly messages: ReadonlyArray<Message>
  readonly tokens: ReadonlyArray<number>
}

const newest = new WeakMap<object, Counted>()

/** The same for the next request of `owner`: what stands where it stood in the one before is not counted again. */
export const requestTokens = (owner: object, messages: ReadonlyArray<Message>): number => {
  const before = newest.get(owner)
  let sum = 0
  const tokens = messages.map((message, index) => {
    const known = before?.messages[index] === message ? before.tokens[index] : undefined
    const count = known ?? messageTokens(message)
    sum += count
    return count
  })
  newest.set(owner, { messages, tokens })
  return sum
}
