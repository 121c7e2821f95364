/**
 * What a model sees of a transcript: pure, from entries to messages.
 *
 * The newest head starts it, edits apply, and pairing is guaranteed: each call of an assistant message is followed by
 * exactly one result, in call order, in one tool message; a call whose result was cut off by a fork gets a synthetic error
 * result. Results without a call are left out. Messages without content are left out, for providers refuse them.
 */
import type { AssistantMessage, Message, ToolCallPart, ToolResultPart } from "../model/index.ts"
import type { EntryRecord, RecordID } from "../storage/index.ts"

/** The entries that are active: the newest head first, then what follows it. */
export const activeEntries = (entries: ReadonlyArray<EntryRecord>): ReadonlyArray<EntryRecord> => {
  const head = entries.findLast((entry) => entry.head !== null)
  if (head === undefined || head.head === null) return entries
  const after = head.head.after
  // An entry list that was cut before no longer holds the entry that the head names; then all of it is kept.
  const start = after === null ? head.ordinal : ordinalOf(entries, after) ?? 0
  // Earlier heads are superseded, also where what the newest one keeps lies before them.
  return [head, ...entries.filter((entry) => entry.ordinal > start && entry.head === null)]
}

const ordinalOf = (entries: ReadonlyArray<EntryRecord>, id: RecordID): number | undefined =>
  entries.find((entry) => entry.id === id)?.ordinal

/** The messages of a transcript (oldest entry first), without system messages. */
export const deriveContext = (entries: ReadonlyArray<EntryRecord>): ReadonlyArray<Message> => {
  const active = activeEntries(entries)
  const edited = new Map<RecordID, ReadonlyArray<Message> | null>()
  for (const entry of active) for (const edit of entry.edits ?? []) edited.set(edit.entry, edit.model)
  const messages = active.flatMap((entry) => (edited.has(entry.id) ? edited.get(entry.id) : entry.model) ?? [])
  return pairCalls(messages.filter(hasContent))
}

const hasContent = (message: Message): boolean => message.content.length > 0

const isCall = (part: { readonly type: string }): boolean => part.type === "tool-call"

const hasCalls = (message: Message): boolean => message.role === "assistant" && message.content.some(isCall)

const pairCalls = (messages: ReadonlyArray<Message>): ReadonlyArray<Message> => {
  const paired: Array<Message> = []
  for (const [index, message] of messages.entries()) {
    if (message.role === "tool") continue
    paired.push(message)
    if (message.role !== "assistant" || !hasCalls(message)) continue
    const results = resultsBehind(messages, index)
    const calls = message.content.filter((part) => part.type === "tool-call")
    paired.push({ role: "tool", content: calls.map((call) => results.get(call.id) ?? missingResult(call)) })
  }
  return paired
}

/** Results up to the next message with calls, so that a provider which repeats call ids mixes nothing up. */
const resultsBehind = (messages: ReadonlyArray<Message>, index: number): ReadonlyMap<string, ToolResultPart> => {
  const results = new Map<string, ToolResultPart>()
  for (let next = index + 1; next < messages.length; next++) {
    const message = messages[next]
    if (message === undefined || hasCalls(message)) break
    if (message.role !== "tool") continue
    for (const result of message.content) if (!results.has(result.id)) results.set(result.id, result)
  }
  return results
}

const missingResult = (call: ToolCallPart): ToolResultPart => ({
  type: "tool-result",
  id: call.id,
  name: call.name,
  isFailure: true,
  result: "The result of this call is not part of this conversation; it may or may not have run."
})

/** The text of an answer: what a person reads of it. */
export const answerText = (message: AssistantMessage): string =>
  message.content.map((part) => (part.type === "text" ? part.text : "")).join("")
