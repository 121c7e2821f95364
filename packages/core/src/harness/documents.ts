/**
 * The documents of a session: what is in each, and where it starts from.
 *
 * `rewindable` belongs to a conversation and is kept as of every commit, so a fork sees it as it was; `sticky` belongs to a
 * conversation and is only about the present; `session` is one for all conversations. Drafts of them are tracked, and
 * commits store operations.
 */
import type { JsonValue } from "../json/index.ts"
import type { ModelRef, UserMessage } from "../model/index.ts"
import type { ConversationConfig, ViewInput, ViewTurn, ViewUsage } from "./view.ts"

/** A draft's type: everything mutable, but for values that may be any JSON, which are replaced whole. */
export type Mutable<T> = JsonValue extends T ? T :
  T extends ReadonlyArray<infer A> ? Array<Mutable<A>> :
  T extends object ? { -readonly [K in keyof T]: Mutable<T[K]> } :
  T

export type PluginSlices = { [namespace: string]: { [key: string]: JsonValue } }

export interface SessionDocument {
  plugins: PluginSlices
}

export interface RewindableDocument {
  config: Mutable<ConversationConfig>
  /** Configuration of task kinds, by key; a key belongs to one kind. */
  kinds?: { [key: string]: JsonValue }
  plugins: PluginSlices
}

/** Working state of one live task; gone in the commit that ends it, and never part of the view. */
export interface Slot {
  memos: { [key: string]: JsonValue }
  /** What the task's kind keeps in it. */
  data: { [key: string]: JsonValue }
}

/** An entry that waits for the next boundary of a running turn. */
export interface PendingWrite {
  id: string
  kind: string
  data: JsonValue
  model: ReadonlyArray<UserMessage> | null
  /** The model is to be asked for an answer to it. */
  wake?: true
}

export interface StickyDocument {
  turn: Mutable<ViewTurn> | null
  inbox: Array<Mutable<ViewInput>>
  compaction: JsonValue
  usage: Mutable<ViewUsage>
  writes: Array<PendingWrite>
  /** The last turn was interrupted, so that nothing but an input begins one. */
  interrupted?: boolean
  /** How many turns were begun by entries since the last input. */
  woken?: number
  /** What the running turn is configured with, beside what the conversation was before. */
  lent?: {
    agent?: { before: string | null; during: string }
    model?: { before: Mutable<ModelRef> | null; during: Mutable<ModelRef> }
  }
  slots: { [task: string]: Slot }
  plugins: PluginSlices
}

export const emptySession = (): SessionDocument => ({ plugins: {} })

export const emptyRewindable = (config: ConversationConfig): RewindableDocument => ({
  config: { ...config },
  plugins: {}
})

export const emptySticky = (): StickyDocument => ({
  turn: null,
  inbox: [],
  compaction: null,
  usage: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, cost: 0, context: 0 },
  writes: [],
  slots: {},
  plugins: {}
})

export const sessionDocument = "session"
export const rewindableDocument = (conversation: string): string => `rewindable:${conversation}`
export const stickyDocument = (conversation: string): string => `sticky:${conversation}`
