/**
 * The `bezel.generation` kind: one model request, streamed into the live message and closed in one commit.
 *
 *   initial ─▶ requesting ─▶ (closing commit), or deferred ─▶ requesting
 *     ▲          │  │ failed, and worth another try
 *     │          │  └─▶ retrying ─▶ (another attempt)
 *     └ prepared ◀ suspended or closed in good order
 *
 * `requesting` is in flight: entered as a phase only after a crash, which counts as a failed attempt. Partial answers of
 * failed attempts stay for display only.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import {
  byPhase,
  type ConversationState,
  HarnessError,
  type Phase,
  type PhaseResult,
  runHandler,
  type RunnableKind,
  type Session,
  type TaskRuntime,
  type Transaction
} from "../harness/index.ts"
import type { JsonValue } from "../json/index.ts"
import { type DeferredPart, ModelError, type ModelInfo, type ModelRef, type ModelRequest } from "../model/index.ts"
import type { TaskRecord } from "../storage/index.ts"
import type { Answer } from "./answer.ts"
import { checkpointNumber, type FailedAttempt, nextAttempt, stoppedWhile } from "./attempts.ts"
import { closeAnswer } from "./close.ts"
import { type CollapseReason, createCollapse } from "./collapse.ts"
import { requestTokens } from "./estimate.ts"
import { endTurn, type GenerationInput, nextGeneration } from "./inbox.ts"
import { entryKinds, taskKinds } from "./kinds.ts"
import type { Materializations } from "./materializations.ts"
import { compactionOf, defaultFrames, defaultRetry, type TurnOptions } from "./options.ts"
import { prepareRequest } from "./request.ts"
import { sleepUntil } from "./sleep-until.ts"
import { streamAnswer } from "./stream.ts"

export const generationKind = (
  session: Session,
  options: TurnOptions,
  materializations: Materializations
): RunnableKind => {
  const retry = options.retry ?? defaultRetry

  const attempt = (task: TaskRecord, runtime: TaskRuntime, number: number): Effect.Effect<PhaseResult, HarnessError> =>
    Effect.gen(function*() {
      const input = generationInput(task)
      const state = runtime.conversation
      if (input.overflow != null) {
        const collapse = yield* Effect.mapError(
          session.storage.task(input.overflow.task),
          (error) => new HarnessError({ code: "faulted", message: error.message })
        )
        // Nothing was made room for, so the same request would overflow again.
        if (collapse?.status !== "completed") {
          return failedTurn(state, { kind: "overflow", message: input.overflow.message })
        }
      }
      const prepared = yield* Effect.result(prepareRequest(session, options, state, task.id, input))
      if (prepared._tag === "Failure") {
        if (prepared.failure instanceof HarnessError) return yield* prepared.failure
        return yield* failedAttempt(task, runtime, number, prepared.failure)
      }
      if ("end" in prepared.success) return endedByHook(state, prepared.success.end)
      const { materialization, model, request } = prepared.success
      if (number === 1 && (yield* isFull(state, model.info, request, input))) {
        return collapseFirst(state, input, "threshold", null)
      }
      const ref: ModelRef = { provider: model.info.provider, model: model.info.model }
      yield* runtime.checkpoint({ phase: "requesting", attempt: number, token: deferredToken(task) }, (tx) => {
        const turn = tx.sticky(state).turn
        if (turn === null) return
        turn.message = { parts: [] }
        turn.generation = {
          task: task.id,
          stage: "requesting",
          attempt: number,
          model: ref,
          retryAt: null,
          error: null
        }
        tx.emit(state, {
          type: "generation.started",
          task: task.id,
          attempt: number,
          step: input.step,
          model: `${ref.provider}/${ref.model}`
        })
      })
      const deferred = deferredToken(task)
      const stream = deferred === null
        ? model.stream(request)
        : model.resume?.(deferred, request) ?? Stream.fail(cannotResume)
      const outcome = yield* Effect.onInterrupt(
        streamAnswer(stream, runtime, options.frames ?? defaultFrames),
        () => asBefore(task, runtime, number, deferred)
      )
      if (
        outcome.error?.kind === "overflow" && (yield* compactionOf(options)).auto &&
        (input.collapses ?? 0) < overflowLimit
      ) {
        return collapseFirst(state, input, "overflow", outcome.error.message)
      }
      if (outcome.error !== null) return yield* failedAttempt(task, runtime, number, outcome.error)
      if (outcome.answer.deferred !== null) return yield* waitDeferred(task, runtime, number, outcome.answer.deferred)
      const cost = costOf(model.info, outcome.answer)
      yield* observeAnswer(task, state, outcome.answer, cost)
      const more = outcome.answer.calls().length === 0 ? yield* onYield(task, state, input, outcome.answer) : null
      materializations.keep(task.id, materialization)
      return {
        done: (tx) =>
          closeAnswer({ tx, state, task, input, answer: outcome.answer, model: ref, cost, materialization, more })
      }
    })

  /** Whether the context has reached the part of the model's window at which it is summarized before it is sent. */
  const isFull = (
    state: ConversationState,
    info: ModelInfo,
    request: ModelRequest,
    input: GenerationInput
  ): Effect.Effect<boolean> =>
    Effect.map(compactionOf(options), (compaction) => {
      // Once in a row: what is still too full behind a summary is for the provider to judge.
      if (!compaction.auto || info.contextWindow === null || (input.collapses ?? 0) > 0) return false
      const known = state.sticky.usage.context
      const estimated = requestTokens(state, request.messages)
      return Math.max(known, estimated) > info.contextWindow * compaction.threshold
    })

  /** Gives the turn to a collapse, and tries this request again behind it. */
  const collapseFirst = (
    state: ConversationState,
    input: GenerationInput,
    reason: CollapseReason,
    overflow: string | null
  ): PhaseResult => ({
    done: (tx) => {
      keepPartial(tx, state, "failed")
      const collapse = createCollapse(tx, session, state, reason, null)
      const behind = overflow === null ? null : { task: collapse, message: overflow }
      nextGeneration(tx, state, { ...input, collapses: (input.collapses ?? 0) + 1, overflow: behind }, [collapse])
      return { status: "completed" }
    }
  })

  /** What a plugin wants the model to go on with instead of yielding to the person; the first that wants something decides. */
  const onYield = Effect.fnUntraced(
    function*(task: TaskRecord, state: ConversationState, input: GenerationInput, answer: Answer) {
      for (const hook of session.extensions.hooksFor("generation", state)) {
        const handler = hook.handlers.onYield
        if (handler === undefined) continue
        const api = {
          sessionID: session.options.sessionID,
          conversationID: state.record.id,
          taskID: task.id,
          step: input.step
        }
        const at = { point: "onYield", who: hook.namespace, conversationID: state.record.id, limit: hook.options.limit }
        const wish = yield* runHandler(session, options, at, () => handler(answer.message(), api))
        if (wish?.continueWith !== undefined) return wish.continueWith
      }
      return null
    }
  )

  /**
   * A request that is suspended or closed in good order is not a failed attempt: the same one is made again. After a crash
   * nobody could say so, and after an abort this write is refused.
   */
  const asBefore = (
    task: TaskRecord,
    runtime: TaskRuntime,
    number: number,
    token: string | null
  ): Effect.Effect<void> =>
    Effect.ignore(runtime.checkpoint({ phase: "prepared", attempt: number, token }, (tx) => {
      const turn = tx.sticky(runtime.conversation).turn
      if (turn === null) return
      turn.message = null
      if (turn.generation?.task === task.id) turn.generation.stage = "preparing"
    }))

  const observeAnswer = Effect.fnUntraced(
    function*(task: TaskRecord, state: ConversationState, answer: Answer, cost: number) {
      for (const hook of session.extensions.hooksFor("generation", state)) {
        const handler = hook.handlers.afterResponse
        if (handler === undefined) continue
        const api = { sessionID: session.options.sessionID, conversationID: state.record.id, taskID: task.id, cost }
        const at = {
          point: "afterResponse",
          who: hook.namespace,
          conversationID: state.record.id,
          limit: hook.options.limit
        }
        yield* runHandler(session, options, at, () => handler(answer.message(), api))
      }
    }
  )

  /** Waits for another try in its own durable phase, or ends the turn. */
  const failedAttempt = (
    task: TaskRecord,
    runtime: TaskRuntime,
    number: number,
    error: FailedAttempt
  ): Effect.Effect<PhaseResult, HarnessError> =>
    Effect.gen(function*() {
      const state = runtime.conversation
      const next = yield* nextAttempt(retry, number, error)
      if (next === null) return failedTurn(state, error)
      const { attempt, until, wait } = next
      yield* runtime.checkpoint({ phase: "retrying", attempt, until, token: deferredToken(task) }, (tx) => {
        keepPartial(tx, state, "failed")
        tx.appendEntry(state, {
          kind: entryKinds.usage,
          data: { attempt: number, error: { kind: error.kind, message: error.message } }
        })
        const turn = tx.sticky(state).turn
        if (turn === null) return
        turn.message = null
        if (turn.generation !== null) {
          turn.generation.stage = "retrying"
          turn.generation.retryAt = until
          turn.generation.error = { kind: error.kind, message: error.message }
        }
        tx.emit(state, {
          type: "generation.retrying",
          task: task.id,
          attempt,
          retryAt: until,
          error: { kind: error.kind, message: error.message }
        })
      })
      return yield* waitAndRetry(task, runtime, attempt, until, wait)
    })

  /** The provider works on; its answer is asked for again, also by a later process. */
  const waitDeferred = (
    task: TaskRecord,
    runtime: TaskRuntime,
    number: number,
    deferred: DeferredPart
  ): Effect.Effect<PhaseResult, HarnessError> =>
    Effect.gen(function*() {
      const until = (yield* Clock.currentTimeMillis) + Math.max(0, Math.min(retry.longestWait, deferred.pollAfterMs))
      const state = runtime.conversation
      const waiting = yield* runtime.commit((tx) => {
        const turn = tx.sticky(state).turn
        if (turn?.generation != null) {
          turn.generation.stage = "deferred"
          turn.generation.retryAt = until
        }
        tx.emit(state, { type: "generation.deferred", task: task.id, retryAt: until })
        const current: TaskRecord = {
          ...tx.task(task.id) ?? task,
          checkpoint: { phase: "deferred", attempt: number, token: deferred.token, until }
        }
        tx.putTask(state, current)
        return current
      })
      return { again: waiting }
    })

  const askDeferred: Phase = (task, runtime) =>
    Effect.gen(function*() {
      yield* sleepUntil(checkpointNumber(task, "until", 0), retry.longestWait)
      return yield* attempt(task, runtime, checkpointNumber(task, "attempt", 1))
    })

  const waitAndRetry = (
    task: TaskRecord,
    runtime: TaskRuntime,
    number: number,
    until: number,
    longest: number
  ): Effect.Effect<PhaseResult, HarnessError> =>
    Effect.andThen(sleepUntil(until, longest), attempt(task, runtime, number))

  const abort: Phase = (_task, runtime) =>
    Effect.succeed({
      done: (tx) => {
        keepPartial(tx, runtime.conversation, "aborted")
        endTurn(tx, runtime.conversation, { status: "unanswered", reason: "aborted", error: null })
        return { status: "aborted" }
      }
    })

  return {
    name: taskKinds.generation,
    enter: byPhase((task, runtime) => Effect.andThen(showPreparing(runtime), attempt(task, runtime, 1)), {
      prepared: (task, runtime) => attempt(task, runtime, checkpointNumber(task, "attempt", 1)),
      requesting: (task, runtime) =>
        failedAttempt(task, runtime, checkpointNumber(task, "attempt", 1), stoppedWhile("answering")),
      deferred: askDeferred,
      retrying: (task, runtime) =>
        waitAndRetry(
          task,
          runtime,
          checkpointNumber(task, "attempt", 1),
          checkpointNumber(task, "until", 0),
          retry.longestWait
        )
    }),
    abort,
    failed: (tx, _task, conversation, message) => failTurn(tx, conversation, { kind: "internal", message })
  }
}

/** What has waited for a compaction shows that it goes on. */
const showPreparing = (runtime: TaskRuntime): Effect.Effect<void, HarnessError> =>
  runtime.conversation.sticky.turn?.generation?.stage !== "waiting"
    ? Effect.void
    : runtime.commit((tx) => {
      const generation = tx.sticky(runtime.conversation).turn?.generation
      if (generation != null) generation.stage = "preparing"
    })

/** Compactions without an answer between them; after that the overflow is the turn's failure. */
const overflowLimit = 2

const failedTurn = (
  state: ConversationState,
  error: { readonly kind: string; readonly message: string }
): PhaseResult => ({
  done: (tx) => failTurn(tx, state, error)
})

const failTurn = (
  tx: Transaction,
  state: ConversationState,
  error: { readonly kind: string; readonly message: string }
) => {
  keepPartial(tx, state, "failed")
  tx.emit(state, { type: "generation.failed", error: { kind: error.kind, message: error.message } })
  endTurn(tx, state, { status: "unanswered", reason: "failed", error: { kind: error.kind, message: error.message } })
  return { status: "failed", failure: { kind: error.kind, message: error.message } } as const
}

const endedByHook = (state: ConversationState, reason: string): PhaseResult => ({
  done: (tx) => {
    endTurn(tx, state, { status: "unanswered", reason: "terminated", error: { kind: "terminated", message: reason } })
    return { status: "completed" }
  }
})

/** What had arrived of an answer that never finished: kept where a person sees it and no model does. */
const keepPartial = (tx: Transaction, state: ConversationState, why: "failed" | "aborted"): void => {
  const parts = state.sticky.turn?.message?.parts ?? []
  if (parts.length === 0) return
  tx.appendEntry(state, {
    kind: entryKinds.assistant,
    data: { partial: why, parts: parts.map((part) => ({ ...part })) }
  })
}

export const generationInput = (task: TaskRecord): GenerationInput => {
  const input = task.input
  const field = (name: string): JsonValue =>
    input !== null && typeof input === "object" && !Array.isArray(input) ? Reflect.get(input, name) ?? null : null
  const added = field("added")
  return {
    step: Number(field("step") ?? 1),
    malformed: Number(field("malformed") ?? 0),
    added: Array.isArray(added) ? added.filter((name) => typeof name === "string") : [],
    collapses: Number(field("collapses") ?? 0),
    overflow: decodeOverflow(field("overflow"))
  }
}

const decodeOverflow = (value: JsonValue): { readonly task: string; readonly message: string } | null =>
  value !== null && typeof value === "object" && !Array.isArray(value)
    ? { task: String(Reflect.get(value, "task")), message: String(Reflect.get(value, "message")) }
    : null

/** What a deferred answer is asked for by; `null` for a request of its own. */
const deferredToken = (task: TaskRecord): string | null => {
  const { checkpoint } = task
  const token: unknown = checkpoint !== null && typeof checkpoint === "object" ? Reflect.get(checkpoint, "token") : null
  return typeof token === "string" ? token : null
}

const cannotResume = new ModelError({
  kind: "invalid_request",
  message: "The answer was deferred, and this model cannot be asked for it again; send the input once more.",
  retryable: false,
  retryAfterMs: null
})

/** US dollars, or 0 where the prices are not known. */
const costOf = (info: ModelInfo, answer: Answer): number => {
  if (info.cost === null) return 0
  const { cacheRead, cacheWrite, input, output } = answer.usage
  const uncached = Math.max(0, input - cacheRead - cacheWrite)
  return (uncached * info.cost.input + output * info.cost.output + cacheRead * info.cost.cacheRead +
    cacheWrite * info.cost.cacheWrite) / 1_000_000
}
