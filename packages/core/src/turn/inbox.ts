/**
 * Inputs and boundaries: how what a person sends becomes a turn, and how a turn ends.
 *
 *   queued ──boundary──▶ placed ──▶ done(answer) | unanswered(reason)
 *
 * Boundaries are: an idle conversation, after tools (steers), after a final answer (steers, then follow-ups). Every input
 * ends in the same commit as its cause.
 */
import * as Schema from "effect/Schema"
import { type ConversationState, HarnessError, type Transaction } from "../harness/index.ts"
import type { JsonValue } from "../json/index.ts"
import type { FilePart, ModelRef, TextPart, UserMessage } from "../model/index.ts"
import type { InputConfig, InputRecord } from "../storage/index.ts"
import { entryKinds, taskKinds } from "./kinds.ts"

/** Input of a generation task. */
export interface GenerationInput {
  /** Which request of the turn this is; 1 is the first. */
  readonly step: number
  /** How many answers in a row had calls that could not be read. */
  readonly malformed: number
  /** Tools that results have asked to be offered. */
  readonly added: ReadonlyArray<string>
  /** How many times this turn was compacted since its last answer. */
  readonly collapses?: number
  /** The overflow that the compaction before this request was for, and the task of that compaction. */
  readonly overflow?: { readonly task: string; readonly message: string } | null
}

export type TurnEnd =
  | { readonly status: "done"; readonly entry: string }
  | {
    readonly status: "unanswered"
    readonly reason: "terminated" | "aborted" | "failed" | "stale"
    readonly error: { readonly kind: string; readonly message: string } | null
  }

const Content = Schema.Array(Schema.Union([
  Schema.Struct({ type: Schema.Literal("text"), text: Schema.String }),
  Schema.Struct({
    type: Schema.Literal("file"),
    mediaType: Schema.String,
    fileName: Schema.optionalKey(Schema.String),
    data: Schema.String
  })
]))

const decodeContent = Schema.decodeUnknownOption(Content)

/** The parts of an input, as they were sent. */
export const contentOf = (content: JsonValue): ReadonlyArray<TextPart | FilePart> => {
  const decoded = decodeContent(content)
  return decoded._tag === "Some" ? decoded.value : []
}

/** Whether it is what an input may consist of, and not nothing. */
export const isContent = (content: unknown): boolean => {
  const decoded = decodeContent(content)
  return decoded._tag === "Some" && decoded.value.length > 0
}

/** The text of an input, for lists; a file that the text names needs no name of its own. */
export const textOf = (content: ReadonlyArray<TextPart | FilePart>): string => {
  const text = content.flatMap((part) => part.type === "text" ? [part.text] : []).join("")
  const files = content.flatMap((part) => part.type === "file" ? [part.fileName ?? part.mediaType] : [])
  return text + files.filter((name) => !text.includes(name)).map((name) => `[${name}]`).join("")
}

export const isBusy = (state: ConversationState): boolean => state.sticky.turn !== null

/** Accepts an input: places it if the conversation is idle, queues it otherwise, or refuses. */
export const acceptInput = (
  tx: Transaction,
  state: ConversationState,
  input: {
    readonly content: ReadonlyArray<TextPart | FilePart>
    readonly whenBusy: InputRecord["whenBusy"]
    readonly requestID: string | null
    readonly config?: InputConfig | undefined
  }
): InputRecord => {
  const sticky = tx.sticky(state)
  const busy = sticky.turn !== null
  if (busy && input.whenBusy === "reject") {
    throw new HarnessError({
      code: "busy",
      message: "A turn is running in this conversation; wait for it, interrupt it, or send the input as a follow-up."
    })
  }
  const id = tx.id("i")
  const record: InputRecord = {
    id,
    ordinal: Number(id.slice(1)),
    conversation: state.record.id,
    requestID: input.requestID,
    status: "queued",
    whenBusy: input.whenBusy,
    content: input.content.map((part) => ({ ...part })),
    ...(input.config === undefined ? {} : { config: input.config }),
    answer: null,
    reason: null,
    createdAt: tx.now
  }
  tx.putInput(state, record)
  sticky.inbox.push({ id, text: textOf(input.content), whenBusy: input.whenBusy })
  if (busy) tx.emit(state, { type: "input.queued", id })
  else placeQueued(tx, state)
  return tx.input(id) ?? record
}

/** Takes an input out of the queue for good: somebody has taken it back, or what it was said into is gone. */
export const dropInput = (
  tx: Transaction,
  state: ConversationState,
  record: InputRecord,
  reason: "aborted" | "stale"
): void => {
  const inbox = tx.sticky(state).inbox
  const index = inbox.findIndex((item) => item.id === record.id)
  if (index >= 0) inbox.splice(index, 1)
  tx.putInput(state, { ...record, status: "unanswered", reason })
  tx.emit(state, { type: "input.aborted", id: record.id, reason })
}

/** An idle boundary: begins a turn with what is queued, if anything is. */
const placeQueued = (tx: Transaction, state: ConversationState): void => {
  const sticky = tx.sticky(state)
  const wakes = flushWrites(tx, state)
  const placed = place(tx, state, () => true)
  if (placed.length > 0) {
    if (sticky.interrupted === true) sticky.interrupted = false
    beginTurn(tx, state, placed)
  } else if (wakes) wake(tx, state)
}

/** Configures the conversation as an input wants it. Of several of one turn the last one's holds. */
const lendConfig = (tx: Transaction, state: ConversationState, { agent, model }: InputConfig): void => {
  const { config } = tx.rewindable(state)
  const { lent } = tx.sticky(state)
  const next = { ...lent }
  if (agent !== undefined) {
    next.agent = { before: lent?.agent === undefined ? config.agent : lent.agent.before, during: agent }
    config.agent = agent
  }
  if (model !== undefined) {
    const before = lent?.model === undefined ? config.model : lent.model.before
    next.model = { before: copyOf(before), during: { provider: model.provider, model: model.model } }
    config.model = { provider: model.provider, model: model.model }
  }
  tx.sticky(state).lent = next
  tx.emit(state, { type: "config.changed" })
}

/** Configures the conversation as it was before its turn, but for what somebody has chosen meanwhile. */
const giveBackConfig = (tx: Transaction, state: ConversationState): void => {
  const sticky = tx.sticky(state)
  const { lent } = sticky
  if (lent === undefined) return
  const { config } = tx.rewindable(state)
  if (lent.agent !== undefined && config.agent === lent.agent.during) config.agent = lent.agent.before
  const { model } = lent
  if (
    model !== undefined && config.model?.provider === model.during.provider && config.model.model === model.during.model
  ) config.model = copyOf(model.before)
  delete sticky.lent
  tx.emit(state, { type: "config.changed" })
}

const copyOf = (ref: ModelRef | null) => ref === null ? null : { provider: ref.provider, model: ref.model }

const beginTurn = (tx: Transaction, state: ConversationState, inputs: Array<string>): void => {
  tx.sticky(state).turn = { inputs, generation: null, message: null, tools: [] }
  tx.emit(state, { type: "turn.started", inputs })
  nextGeneration(tx, state, { step: 1, malformed: 0, added: [] })
}

/** How many turns in a row entries may begin. What goes on beyond that without a word from anybody goes round in circles. */
export const wokenLimit = 20

/**
 * Begins a turn for what an extension wrote into an idle conversation. After an interrupt the entry waits for the next input
 * instead, as it does once too many turns have begun so.
 */
export const wake = (tx: Transaction, state: ConversationState): void => {
  const sticky = tx.sticky(state)
  const woken = sticky.woken ?? 0
  if (sticky.interrupted === true || woken >= wokenLimit) return
  sticky.woken = woken + 1
  beginTurn(tx, state, [])
}

/** The boundary after tools: what was written meanwhile, then the steers. They join the running turn. */
export const placeSteers = (tx: Transaction, state: ConversationState): void => {
  flushWrites(tx, state)
  const placed = place(tx, state, (item) => item.whenBusy === "steer")
  tx.sticky(state).turn?.inputs.push(...placed)
}

/** Moves matching inputs, in order of admission and as many as the conversation's settings say, into the transcript. */
const place = (
  tx: Transaction,
  state: ConversationState,
  matches: (item: { readonly whenBusy: string }) => boolean
): Array<string> => {
  const sticky = tx.sticky(state)
  const placed: Array<string> = []
  const limit = state.rewindable.config.queue === "all" ? Infinity : 1
  for (const id of sticky.inbox.filter(matches).slice(0, limit).map((item) => item.id)) {
    const record = tx.input(id)
    sticky.inbox.splice(sticky.inbox.findIndex((item) => item.id === id), 1)
    if (record === undefined) continue
    const message: UserMessage = { role: "user", content: contentOf(record.content) }
    tx.appendEntry(state, { kind: entryKinds.user, data: { input: id }, model: [message] })
    tx.putInput(state, { ...record, status: "placed" })
    tx.emit(state, { type: "input.placed", id })
    if (record.config !== undefined) lendConfig(tx, state, record.config)
    placed.push(id)
  }
  if (placed.length > 0 && (sticky.woken ?? 0) > 0) sticky.woken = 0
  return placed
}

/** Appends what extensions wrote while a turn ran; whether any of it asks for an answer. */
export const flushWrites = (tx: Transaction, state: ConversationState): boolean => {
  const sticky = tx.sticky(state)
  if (sticky.writes.length === 0) return false
  const wakes = sticky.writes.some((write) => write.wake === true)
  for (const write of sticky.writes) {
    tx.appendEntry(state, {
      id: write.id,
      kind: write.kind,
      data: structured(write.data),
      model: write.model === null
        ? null
        : write.model.map((message) => ({ role: message.role, content: contentOf(structured(message.content)) }))
    })
  }
  sticky.writes.splice(0)
  return wakes
}

/** A detached copy of what a draft holds. */
const structured = (value: unknown): JsonValue => JSON.parse(JSON.stringify(value))

export const nextGeneration = (
  tx: Transaction,
  state: ConversationState,
  input: GenerationInput,
  after: ReadonlyArray<string> = []
): void => {
  const task = tx.createTask(state, {
    kind: taskKinds.generation,
    input: {
      step: input.step,
      malformed: input.malformed,
      added: [...input.added],
      collapses: input.collapses ?? 0,
      overflow: input.overflow == null ? null : { ...input.overflow }
    },
    after
  })
  const turn = tx.sticky(state).turn
  if (turn === null) return
  const stage = after.length === 0 ? "preparing" : "waiting"
  turn.generation = { task: task.id, stage, attempt: 1, model: null, retryAt: null, error: null }
  turn.message = null
  turn.tools = []
}

/** Ends the turn and its inputs; unless it was aborted, what is queued begins the next one. */
export const endTurn = (tx: Transaction, state: ConversationState, end: TurnEnd): void => {
  const sticky = tx.sticky(state)
  const inputs = [...sticky.turn?.inputs ?? []]
  sticky.turn = null
  giveBackConfig(tx, state)
  const entry = end.status === "done" ? end.entry : failureEntry(tx, state, end, inputs)
  for (const id of inputs) {
    const record = tx.input(id)
    if (record === undefined) continue
    tx.putInput(state, {
      ...record,
      status: end.status,
      answer: entry,
      reason: end.status === "done" ? null : end.reason
    })
  }
  tx.emit(state, {
    type: "turn.ended",
    status: end.status,
    inputs,
    ...(end.status === "done"
      ? { entry: end.entry }
      : { reason: end.reason, error: end.error === null ? null : { ...end.error } })
  })
  if (end.status === "unanswered" && end.reason === "aborted") {
    sticky.interrupted = true
    flushWrites(tx, state)
  } else placeQueued(tx, state)
}

const failureEntry = (
  tx: Transaction,
  state: ConversationState,
  end: Extract<TurnEnd, { readonly status: "unanswered" }>,
  inputs: ReadonlyArray<string>
): string =>
  tx.appendEntry(state, {
    kind: entryKinds.failure,
    data: { reason: end.reason, error: end.error === null ? null : { ...end.error }, inputs: [...inputs] }
  }).id
