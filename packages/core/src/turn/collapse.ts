/**
 * The `bezel.collapse` kind: compaction. Summarizes the older part of a conversation, and lands the summary as a head.
 *
 *   initial ─▶ summarizing (in flight) ─▶ head entry, or a failure that says why
 *
 * It never splits an exchange, is void if another head landed meanwhile, and there is at most one live per conversation.
 * What it summarizes is sent as plain text, so it needs no tools and no pairing.
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import type { HarnessError } from "../harness/index.ts"
import {
  byPhase,
  type ConversationState,
  deriveContext,
  type Phase,
  type PhaseResult,
  runHandler,
  type RunnableKind,
  type Session,
  type TaskRuntime,
  type Transaction
} from "../harness/index.ts"
import { type Message, ModelError, type ModelRequest } from "../model/index.ts"
import type { TaskRecord } from "../storage/index.ts"
import { Answer } from "./answer.ts"
import { checkpointNumber, type FailedAttempt, nextAttempt, stoppedWhile } from "./attempts.ts"
import { type Cut, findCut } from "./cut.ts"
import { messagesTokens } from "./estimate.ts"
import { entryKinds, taskKinds } from "./kinds.ts"
import { anyAgent, compactionOf, defaultRetry, type TurnOptions } from "./options.ts"
import { sleepUntil } from "./sleep-until.ts"

export type CollapseReason = "threshold" | "overflow" | "manual"

const CollapseInput = Schema.Struct({
  reason: Schema.Literals(["threshold", "overflow", "manual"]),
  instructions: Schema.NullOr(Schema.String),
  /** The newest head when the collapse was asked for. */
  head: Schema.NullOr(Schema.String)
})

const decodeInput = Schema.decodeUnknownSync(CollapseInput)

/** Asks for a collapse, unless one is live; gives the task that does it. */
export const createCollapse = (
  tx: Transaction,
  session: Session,
  state: ConversationState,
  reason: CollapseReason,
  instructions: string | null
): string => {
  const live = liveCollapse(session, state)
  if (live !== null) return live
  const task = tx.createTask(state, {
    kind: taskKinds.collapse,
    input: { reason, instructions, head: newestHead(state) }
  })
  tx.sticky(state).compaction = { task: task.id, reason, status: "running", retryAt: null }
  tx.emit(state, { type: "compaction.started", task: task.id, reason })
  return task.id
}

/** Whether a person asked for this collapse; the others are a turn's. */
export const isManualCollapse = (task: TaskRecord): boolean => decodeInput(task.input).reason === "manual"

const liveCollapse = (session: Session, state: ConversationState): string | null => {
  for (const task of session.line.state.tasks.values()) {
    if (task.kind === taskKinds.collapse && task.conversation === state.record.id) return task.id
  }
  return null
}

const newestHead = (state: ConversationState): string | null =>
  state.transcript?.findLast((entry) => entry.head !== null)?.id ?? null

export const collapseKind = (session: Session, options: TurnOptions): RunnableKind => {
  const retry = options.retry ?? defaultRetry

  const run = (task: TaskRecord, runtime: TaskRuntime, attempt: number): Effect.Effect<PhaseResult, HarnessError> =>
    Effect.gen(function*() {
      const state = runtime.conversation
      const input = decodeInput(task.input)
      const transcript = yield* session.transcript(state)
      const compaction = yield* compactionOf(options)
      const cut = chooseCut(transcript, compaction.keepRecent, input.reason)
      if (cut === null) return failed(state, "There is nothing in this conversation that could be summarized.")
      const hooked = yield* beforeCollapse(task, state, cut)
      if (hooked?.cancel !== undefined) return failed(state, hooked.cancel)
      if (hooked?.summary !== undefined) return landed(state, input.head, cut, hooked.summary, input.reason)
      yield* runtime.checkpoint({ phase: "summarizing", attempt })
      const answered = yield* summarize(state, cut, input.instructions)
      if (answered instanceof ModelError) return yield* failedAttempt(task, runtime, attempt, answered)
      return answered.trim() === ""
        ? failed(state, "The model gave an empty summary.")
        : landed(state, input.head, cut, answered, input.reason)
    })

  const summarize = (
    state: ConversationState,
    cut: Cut,
    instructions: string | null
  ): Effect.Effect<string | ModelError, HarnessError> =>
    Effect.gen(function*() {
      const { agent: name, model: own } = state.rewindable.config
      const agent = yield* options.agent?.(name) ?? Effect.succeed(anyAgent)
      const model = yield* options.models.resolve(own ?? agent.model ?? null)
      const room = model.info.contextWindow === null ? 400_000 : Math.floor(model.info.contextWindow * 4 * 0.6)
      const request: ModelRequest = {
        messages: [
          { role: "system", content: summaryPrompt },
          { role: "user", content: [{ type: "text", text: summaryRequest(cut, instructions, room) }] }
        ],
        tools: [],
        thinking: "off",
        maxOutput: model.info.maxOutput,
        sessionID: session.options.sessionID
      }
      const answer = new Answer()
      yield* Stream.runForEach(model.stream(request), (part) => Effect.sync(() => answer.add(part)))
      if (answer.finish === null) return broken
      return answer.message().content.map((part) => part.type === "text" ? part.text : "").join("")
    }).pipe(Effect.catch((error: ModelError) => Effect.succeed(error)))

  const failedAttempt = (
    task: TaskRecord,
    runtime: TaskRuntime,
    attempt: number,
    error: FailedAttempt
  ): Effect.Effect<PhaseResult, HarnessError> =>
    Effect.gen(function*() {
      const state = runtime.conversation
      const next = yield* nextAttempt(retry, attempt, error)
      if (next === null) return failed(state, error.message)
      const { until: retryAt, wait } = next
      yield* runtime.checkpoint({ phase: "retrying", attempt: next.attempt, until: retryAt }, (tx) => {
        tx.sticky(state).compaction = {
          task: task.id,
          reason: decodeInput(task.input).reason,
          status: "retrying",
          retryAt
        }
        tx.emit(state, {
          type: "compaction.retrying",
          task: task.id,
          attempt: next.attempt,
          retryAt,
          error: { kind: error.kind, message: error.message }
        })
      })
      yield* sleepUntil(retryAt, wait)
      return yield* run(task, runtime, next.attempt)
    })

  const beforeCollapse = Effect.fnUntraced(function*(task: TaskRecord, state: ConversationState, cut: Cut) {
    const conversationID = state.record.id
    for (const hook of session.extensions.hooksFor("collapse", state)) {
      const handler = hook.handlers.beforeCollapse
      if (handler === undefined) continue
      const api = { sessionID: session.options.sessionID, conversationID, taskID: task.id }
      const messages = deriveContext(cut.older)
      const at = { point: "beforeCollapse", who: hook.namespace, conversationID, limit: hook.options.limit }
      const answer = yield* runHandler(session, options, at, () => handler({ messages }, api))
      if (answer?.cancel !== undefined || answer?.summary !== undefined) return answer
    }
    return null
  })

  const resumed = (task: TaskRecord, runtime: TaskRuntime): Effect.Effect<PhaseResult, HarnessError> =>
    failedAttempt(task, runtime, checkpointNumber(task, "attempt", 1), stoppedWhile("summarizing"))

  const retried: Phase = (task, runtime) =>
    Effect.andThen(
      sleepUntil(checkpointNumber(task, "until", 0), retry.longestWait),
      Effect.suspend(() => run(task, runtime, checkpointNumber(task, "attempt", 1)))
    )

  return {
    name: taskKinds.collapse,
    enter: byPhase((task, runtime) => run(task, runtime, 1), { summarizing: resumed, retrying: retried }),
    abort: (_task, runtime) =>
      Effect.succeed({
        done: (tx) => {
          clear(tx, runtime.conversation)
          tx.emit(runtime.conversation, { type: "compaction.failed", message: "The compaction was interrupted." })
          return { status: "aborted" }
        }
      }),
    failed: (tx, _task, state, message) => {
      clear(tx, state)
      tx.emit(state, { type: "compaction.failed", message })
      return { status: "failed", failure: { message } }
    }
  }
}

const broken = new ModelError({
  kind: "truncated",
  message: "The model's summary broke off before it was finished.",
  retryable: true,
  retryAfterMs: null
})
/** What must be said is cut smaller when nothing else helps: a manual or overflow collapse would rather keep less than fail. */
const chooseCut = (
  transcript: Parameters<typeof findCut>[0],
  keepRecent: number,
  reason: CollapseReason
): Cut | null => {
  const tries = reason === "threshold" ? [keepRecent] : [keepRecent, Math.floor(keepRecent / 4), 0]
  for (const keep of tries) {
    const cut = findCut(transcript, keep)
    if (cut !== null) return cut
  }
  return null
}

const failed = (state: ConversationState, message: string): PhaseResult => ({
  done: (tx) => {
    clear(tx, state)
    tx.emit(state, { type: "compaction.failed", message })
    return { status: "failed", failure: { message } }
  }
})

const landed = (
  state: ConversationState,
  head: string | null,
  cut: Cut,
  summary: string,
  reason: CollapseReason
): PhaseResult => ({
  done: (tx) => {
    clear(tx, state)
    if (newestHead(state) !== head) {
      tx.emit(state, {
        type: "compaction.failed",
        message: "The conversation was cut elsewhere meanwhile; this summary was dropped."
      })
      return { status: "failed", failure: { message: "stale" } }
    }
    const message: Message = {
      role: "user",
      content: [{ type: "text", text: `${summaryPreface}\n\n${summary.trim()}` }]
    }
    const entry = tx.appendEntry(state, {
      kind: entryKinds.summary,
      data: { reason },
      head: { after: cut.after },
      model: [message]
    })
    const kept = (state.transcript ?? []).filter((candidate) => !cut.older.includes(candidate))
    const tokens = messagesTokens([message, ...deriveContext(kept)])
    tx.sticky(state).usage.context = tokens
    tx.emit(state, { type: "head.moved", entry: entry.id })
    tx.emit(state, { type: "compaction.finished", entry: entry.id, context: tokens })
    return { status: "completed", result: { entry: entry.id } }
  }
})

const clear = (tx: Transaction, state: ConversationState): void => {
  tx.sticky(state).compaction = null
}

const summaryPreface = "The earlier part of this conversation was summarized to make room. What happened so far:"

const summaryPrompt = [
  "You write the summary that replaces the older part of a conversation between a user and a coding agent.",
  "The agent goes on with your summary alone, so keep what it needs: the user's goals and constraints in their own terms,",
  "decisions and why they were made, files and symbols that matter with their paths, what was done and verified, what failed,",
  "and what is left to do. Leave out greetings, repetition and tool output that no longer matters. Write plain text."
].join("\n")

/** The older part as text, the newest of it kept whole when it does not fit `room` characters. */
const summaryRequest = (cut: Cut, instructions: string | null, room: number): string => {
  const lines = deriveContext(cut.older).map(describe)
  let length = 0
  let from = lines.length
  while (from > 0 && length + (lines[from - 1]?.length ?? 0) <= room) {
    from--
    length += lines[from]?.length ?? 0
  }
  const left = from === 0 ? "" : `[${from} older messages did not fit and are left out]\n\n`
  const wish = instructions === null || instructions.trim() === ""
    ? ""
    : `\n\nThe user asks of this summary: ${instructions.trim()}`
  return `Summarize this conversation.\n\n<conversation>\n${left}${
    lines.slice(from).join("\n\n")
  }\n</conversation>${wish}`
}

/** Characters of one tool result that a summary gets to see. */
const resultCharacters = 2_000

const describe = (message: Message): string => {
  if (message.role === "system") return `System: ${message.content}`
  return message.content.map((part) => {
    switch (part.type) {
      case "text":
        return `${message.role === "user" ? "User" : "Agent"}: ${part.text}`
      case "reasoning":
        return ""
      case "file":
        return `[file ${part.fileName ?? part.mediaType}]`
      case "tool-call":
        return `Agent called ${part.name}: ${JSON.stringify(part.params).slice(0, resultCharacters)}`
      case "tool-result": {
        const text = typeof part.result === "string" ? part.result : JSON.stringify(part.result)
        return `Result of ${part.name}${part.isFailure ? " (failed)" : ""}: ${
          text.length > resultCharacters ? `${text.slice(0, resultCharacters)} […]` : text
        }`
      }
    }
  }).filter((line) => line !== "").join("\n")
}
