/**
 * Where a transcript may be cut: never inside an exchange, so that each call keeps its result on its own side.
 */
import type { EntryRecord } from "../storage/index.ts"
import { entryTokens } from "./estimate.ts"

export interface Cut {
  /** What is summarized, oldest first. */
  readonly older: ReadonlyArray<EntryRecord>
  /** The newest entry of `older`: the context goes on after it. */
  readonly after: string
}

/**
 * The latest boundary that leaves at least `keepRecent` tokens behind it; `null` where nothing can be cut off. `active`
 * starts with its head, if it has one; an earlier summary alone is nothing to summarize.
 */
export const findCut = (active: ReadonlyArray<EntryRecord>, keepRecent: number): Cut | null => {
  const boundaries = closedBoundaries(active)
  let behind = 0
  for (let index = active.length; index > 0; index--) {
    const entry = active[index - 1]
    // A rewind only marks a place; a summary and a hand-off begin the list.
    if (entry === undefined || entry.head !== null && "after" in entry.head) return null
    if (boundaries.has(index) && behind >= keepRecent) return { older: active.slice(0, index), after: entry.id }
    behind += entryTokens(entry)
  }
  return null
}

/** Indexes before which every call has its result. */
const closedBoundaries = (active: ReadonlyArray<EntryRecord>): ReadonlySet<number> => {
  const boundaries = new Set<number>()
  const open = new Set<string>()
  active.forEach((entry, index) => {
    for (const message of entry.model ?? []) {
      if (message.role === "assistant") {
        for (const part of message.content) if (part.type === "tool-call") open.add(part.id)
      }
      if (message.role === "tool") { for (const part of message.content) open.delete(part.id) }
    }
    // A question stays with its answer: a cut behind a user message would summarize it away unanswered.
    if (open.size === 0 && !isQuestion(entry)) boundaries.add(index + 1)
  })
  return boundaries
}

const isQuestion = (entry: EntryRecord): boolean => entry.model?.at(-1)?.role === "user" && entry.head === null
