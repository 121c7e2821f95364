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
  /** Tokens up to and with each message. */
  readonly sums: Array<number>
}

const newest = new WeakMap<object, Counted>()

/** The same for the next request of `owner`: only what comes behind the messages of the one before is counted. */
export const requestTokens = (owner: object, messages: ReadonlyArray<Message>): number => {
  const { messages: before, sums } = newest.get(owner) ?? { messages: [], sums: [] }
  let index = 0
  while (index < before.length && before[index] === messages[index]) index++
  sums.length = index
  let sum = sums[index - 1] ?? 0
  for (const message of messages.slice(index)) {
    sum += messageTokens(message)
    sums.push(sum)
  }
  newest.set(owner, { messages, sums })
  return sum
}
