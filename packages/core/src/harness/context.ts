/**
 * What a model sees of a transcript: pure, from entries to messages.
 *
 * The newest head starts it, edits apply, and pairing is guaranteed: each call of an assistant message is followed by
 * exactly one result, in call order, in one tool message; a call whose result was cut off by a fork gets a synthetic error
 * result. Results without a call are left out. Messages without content are left out, for providers refuse them.
 */
import type { AssistantMessage, Message, ToolCallPart, ToolResultPart } from "../model/index.ts"
import type { EntryRecord, RecordID } from "../storage/index.ts"

/**
 * The entries that are active, oldest first: the newest head with what it keeps and what follows it. Of a list that is active
 * already, the same list.
 */
export const activeEntries = (entries: ReadonlyArray<EntryRecord>): ReadonlyArray<EntryRecord> => {
  const index = entries.findLastIndex((entry) => entry.head !== null)
  const head = entries[index]
  if (head === undefined || head.head === null) return entries
  const following = entries.slice(index + 1)
  const before = entries.slice(0, index)
  if ("at" in head.head) {
    const until = ordinalOf(before, head.head.at) ?? 0
    return [...activeEntries(before.filter((entry) => entry.ordinal <= until)), head, ...following]
  }
  const { after } = head.head
  if (after === null) return [head, ...following]
  // An entry list that was cut before no longer holds the entry that the head names; then all of it is kept.
  const start = ordinalOf(before, after) ?? 0
  // Earlier heads are superseded, also where what the newest one keeps lies before them.
  const kept = activeEntries(before).filter((entry) => entry.ordinal > start && entry.head === null)
  return [head, ...kept, ...following]
}

const ordinalOf = (entries: ReadonlyArray<EntryRecord>, id: RecordID): number | undefined =>
  entries.find((entry) => entry.id === id)?.ordinal

/** The messages of a transcript (oldest entry first), without system messages. */
export const deriveContext = (entries: ReadonlyArray<EntryRecord>): ReadonlyArray<Message> => pair(entries).messages

const pair = (entries: ReadonlyArray<EntryRecord>): Pairing => {
  const pairing = new Pairing()
  const active = activeEntries(entries)
  const edited = new Map<RecordID, ReadonlyArray<Message> | null>()
  for (const entry of active) for (const edit of entry.edits ?? []) edited.set(edit.entry, edit.model)
  for (const entry of active) pairing.add((edited.has(entry.id) ? edited.get(entry.id) : entry.model) ?? [])
  return pairing
}

interface Derived {
  readonly pairing: Pairing
  length: number
}

const derived = new WeakMap<ReadonlyArray<EntryRecord>, Derived>()

/**
 * The same for an active transcript that only ever grows at its end: each call costs what has come since the last one, and a
 * copy of the list, which is the caller's.
 */
export const contextOf = (transcript: ReadonlyArray<EntryRecord>): Array<Message> => {
  let known = derived.get(transcript)
  if (known !== undefined && known.length < transcript.length) {
    const grown = transcript.slice(known.length)
    // An edit is of something earlier, which has been paired already.
    if (grown.some((entry) => entry.edits !== null)) known = undefined
    else for (const entry of grown) known.pairing.add(entry.model ?? [])
  }
  if (known === undefined) {
    known = { pairing: pair(transcript), length: 0 }
    derived.set(transcript, known)
  }
  known.length = transcript.length
  return known.pairing.messages.slice()
}

const isCall = (part: { readonly type: string }): boolean => part.type === "tool-call"

/** Messages with each call followed by its result. */
class Pairing {
  readonly messages: Array<Message> = []
  /** Where the results of the newest calls are; results behind the next calls are of those, even if a provider repeats ids. */
  #results = -1
  #open: ReadonlyArray<ToolCallPart> = []
  readonly #answered = new Map<string, ToolResultPart>()

  add(messages: ReadonlyArray<Message>): void {
    for (const message of messages) {
      if (message.content.length === 0) continue
      if (message.role === "tool") this.#answer(message.content)
      else {
        this.messages.push(message)
        if (message.role === "assistant" && message.content.some(isCall)) {
          this.#begin(message.content.filter((part) => part.type === "tool-call"))
        }
      }
    }
  }

  #begin(calls: ReadonlyArray<ToolCallPart>): void {
    this.#open = calls
    this.#answered.clear()
    this.#results = this.messages.length
    this.messages.push({ role: "tool", content: calls.map(missingResult) })
  }

  /** The list of results is replaced, not changed: an earlier request may still hold it. */
  #answer(results: ReadonlyArray<ToolResultPart>): void {
    if (this.#results < 0) return
    for (const result of results) if (!this.#answered.has(result.id)) this.#answered.set(result.id, result)
    this.messages[this.#results] = {
      role: "tool",
      content: this.#open.map((call) => this.#answered.get(call.id) ?? missingResult(call))
    }
  }
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
