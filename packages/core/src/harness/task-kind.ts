/**
 * Task kinds of extensions: durable work with phases of its own, as durable as the core's.
 *
 * `TaskKind.make` takes Schemas for everything that is stored and gives the token that creates and registers such tasks.
 * Types are erased here, and only here: stored values come back through the Schemas, so a kind never sees a shape that it
 * did not declare.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { type JsonObject, type JsonValue, toJson } from "../json/index.ts"
import type { TaskRecord } from "../storage/index.ts"
import { type ExtensionTransaction, HarnessError, type TaskKind as TaskKindToken } from "./api.ts"
import type { HookPoints, PayloadOf, ResultOf } from "./hook-point.ts"
import type { PhaseResult, RunnableKind, TaskEnd, TaskRuntime } from "./kind.ts"
import { type PointHost, runPoint } from "./run-hook.ts"
import type { Transaction } from "./transaction.ts"

/** A task as its kind sees it. */
export interface Task<I, C, S> {
  readonly id: string
  readonly conversationID: string
  readonly input: I
  /** `null` before the first checkpoint. */
  readonly checkpoint: C | null
  readonly slot: S
}

/** A commit of a running task: what any extension may do, its own slot and its checkpoint. */
export interface TaskTransaction<C, S> extends ExtensionTransaction {
  /** Working state that ends with the task, as a draft. */
  readonly slot: S
  readonly checkpoint: (checkpoint: C) => void
}

/** What an invocation may do. All of it is refused once the invocation has ended, was marked or replaced. */
export interface TaskApi<C, S, H = NoHooks> {
  readonly sessionID: string
  readonly conversationID: string
  readonly taskID: string
  /** The kind's settings as the conversation has them now. */
  readonly config: Effect.Effect<JsonObject, HarnessError>
  readonly commit: <A>(build: (tx: TaskTransaction<C, S>) => A) => Effect.Effect<A, HarnessError>
  /** Runs one of the kind's hook points; fails where a handler does and the point says that this blocks. */
  readonly hook: <N extends keyof H & string>(
    point: N,
    payload: PayloadOf<H[N]>
  ) => Effect.Effect<ResultOf<H[N]>, HarnessError>
}

/** A kind without points of its own. */
export type NoHooks = Readonly<Record<never, never>>

/** What a phase answers: another phase, the end, or the same phase once more. */
export type TaskStep<C, S, R, F> =
  | { readonly next: C | ((tx: TaskTransaction<C, S>) => C) }
  | { readonly done: (tx: TaskTransaction<C, S>) => TaskDone<R, F> }
  | "retry"

export type TaskDone<R, F> = { readonly status: "completed"; readonly result: R } | {
  readonly status: "failed"
  readonly failure: F
}

export interface TaskKindOptions<I, C extends { readonly phase: string }, S, R, F, H extends HookPoints = NoHooks> {
  readonly input: Schema.Codec<I, unknown>
  /** Tagged by `phase`: a program counter, nothing more. */
  readonly checkpoint: Schema.Codec<C, unknown>
  readonly slot: { readonly schema: Schema.Codec<S, unknown>; readonly initial: S }
  readonly result: Schema.Codec<R, unknown>
  readonly failure: Schema.Codec<F, unknown>
  /** Settings of the kind that travel with a conversation and its forks, with their defaults. Keys are unique among kinds. */
  readonly config?: JsonObject
  /** Places where code of others runs: `HookPoint.collect`, `first` or `chain`. The kind runs them with `api.hook`. */
  readonly hooks?: H
  /** Runs a task that was never started. */
  readonly initial: (
    task: Task<I, C, S>,
    api: TaskApi<C, S, H>
  ) => Effect.Effect<TaskStep<C, S, R, F>, { readonly message: string }>
  /** One for each phase of the checkpoint. A phase written before its effect is entered only after a crash. */
  readonly phases: {
    readonly [P in C["phase"]]: (
      task: Task<I, Extract<C, { readonly phase: P }>, S> & { readonly checkpoint: Extract<C, { readonly phase: P }> },
      api: TaskApi<C, S, H>
    ) => Effect.Effect<TaskStep<C, S, R, F>, { readonly message: string }>
  }
  /** Runs after a durable abort, with the old invocation gone; it may not create work. */
  readonly abort?: (task: Task<I, C, S>, api: TaskApi<C, S, H>) => Effect.Effect<void, { readonly message: string }>
  /** How the task shows in the view; without it, its phase. */
  readonly describe?: (task: Task<I, C, S>) => JsonValue
}

/** Makes an extension's transaction; given by the session that runs the kind. */
export type MakeTransaction = (tx: Transaction, options: { readonly mayCreate: boolean }) => ExtensionTransaction

/** The token with what runs it. */
export interface CustomTaskKind<I, H extends HookPoints = NoHooks> extends TaskKindToken<I> {
  readonly configKeys: ReadonlyArray<string>
  readonly hooks: H
  readonly runnable: (
    session: {
      readonly sessionID: string
      readonly transaction: (conversation: TaskRuntime["conversation"]) => MakeTransaction
      readonly points: PointHost
    }
  ) => RunnableKind
}

export const isCustomKind = <I>(kind: TaskKindToken<I>): kind is CustomTaskKind<I> => "runnable" in kind

export type TaskKind<I = never> = TaskKindToken<I>

export const TaskKind = {
  make: <I, C extends { readonly phase: string }, S, R, F, H extends HookPoints = NoHooks>(
    name: string,
    options: TaskKindOptions<I, C, S, R, F, H>
  ): CustomTaskKind<I, H> => ({
    name,
    input: options.input,
    // Without `hooks` there are no points, which is what `NoHooks` says.
    hooks: options.hooks ?? {} as H,
    configKeys: Object.keys(options.config ?? {}),
    runnable: (session) => makeRunnable(name, options, session)
  })
} as const

const makeRunnable = <I, C extends { readonly phase: string }, S, R, F, H extends HookPoints>(
  name: string,
  options: TaskKindOptions<I, C, S, R, F, H>,
  session: {
    readonly sessionID: string
    readonly transaction: (conversation: TaskRuntime["conversation"]) => MakeTransaction
    readonly points: PointHost
  }
): RunnableKind => {
  const codecs = {
    input: Schema.toCodecJson(options.input),
    checkpoint: Schema.toCodecJson(options.checkpoint),
    slot: Schema.toCodecJson(options.slot.schema),
    result: Schema.toCodecJson(options.result),
    failure: Schema.toCodecJson(options.failure)
  }
  const encode = <A>(codec: Schema.Codec<A, unknown>, value: A): JsonValue => json(Schema.encodeSync(codec)(value))

  const taskOf = (record: TaskRecord, slot: unknown): Task<I, C, S> => ({
    id: record.id,
    conversationID: record.conversation,
    input: Schema.decodeUnknownSync(codecs.input)(record.input),
    checkpoint: record.checkpoint === null ? null : Schema.decodeUnknownSync(codecs.checkpoint)(record.checkpoint),
    slot: slot === undefined ? options.slot.initial : Schema.decodeUnknownSync(codecs.slot)(slot)
  })

  const slotOf = (runtime: TaskRuntime, id: string): unknown => runtime.conversation.sticky.slots[id]?.data

  const taskTransaction = (
    tx: Transaction,
    runtime: TaskRuntime,
    id: string,
    mayCreate: boolean
  ): TaskTransaction<C, S> => {
    const base = session.transaction(runtime.conversation)(tx, { mayCreate })
    const slots = tx.sticky(runtime.conversation).slots
    const draft = () => {
      if (!Object.hasOwn(slots, id)) slots[id] = { memos: {}, data: members(encode(codecs.slot, options.slot.initial)) }
      return slots[id]?.data
    }
    return {
      ...base,
      // The draft has the shape of the encoded slot, which for strict JSON schemas is the slot itself.
      get slot() {
        return draft() as S
      },
      checkpoint: (checkpoint) => {
        const record = tx.task(id)
        if (record !== undefined) {
          tx.putTask(runtime.conversation, {
            ...record,
            status: "running",
            checkpoint: encode(codecs.checkpoint, checkpoint)
          })
        }
      }
    }
  }

  const apiOf = (runtime: TaskRuntime, id: string, mayCreate: boolean): TaskApi<C, S, H> => ({
    sessionID: session.sessionID,
    conversationID: runtime.conversation.record.id,
    taskID: id,
    config: runtime.commit(() => ({
      ...options.config,
      ...pick(runtime.conversation.rewindable.kinds ?? {}, Object.keys(options.config ?? {}))
    })),
    commit: (build) => runtime.commit((tx) => build(taskTransaction(tx, runtime, id, mayCreate))),
    hook: <N extends keyof H & string>(point: N, payload: PayloadOf<H[N]>) => {
      const declared = options.hooks?.[point]
      const identity = { sessionID: session.sessionID, conversationID: runtime.conversation.record.id, taskID: id }
      const result = declared === undefined
        ? Effect.die(new Error(`The task kind "${name}" has no hook point "${point}".`))
        : runPoint(session.points, { kind: name, name: point, point: declared }, runtime, identity, payload)
      // The fold that the point declares gives its result.
      return result as Effect.Effect<ResultOf<H[N]>, HarnessError>
    }
  })

  const answer = (
    step: TaskStep<C, S, R, F>,
    record: TaskRecord,
    runtime: TaskRuntime
  ): Effect.Effect<PhaseResult, HarnessError> => {
    if (step === "retry") return Effect.map(currentRecord(runtime, record), (again) => ({ again }))
    if ("done" in step) {
      return Effect.succeed({
        done: (tx) => {
          const end = step.done(taskTransaction(tx, runtime, record.id, true))
          return end.status === "completed"
            ? { status: "completed", result: encode(codecs.result, end.result) }
            : { status: "failed", failure: encode(codecs.failure, end.failure) }
        }
      })
    }
    const { next } = step
    return Effect.map(
      runtime.commit((tx) => {
        const checkpoint = typeof next === "function" ? next(taskTransaction(tx, runtime, record.id, true)) : next
        const current = tx.task(record.id) ?? record
        const moved: TaskRecord = { ...current, status: "running", checkpoint: encode(codecs.checkpoint, checkpoint) }
        tx.putTask(runtime.conversation, moved)
        return moved
      }),
      (again) => ({ again })
    )
  }

  const invalid = (error: { readonly message: string }): HarnessError =>
    error instanceof HarnessError ? error : new HarnessError({ code: "invalid", message: error.message })

  const enter = (record: TaskRecord, runtime: TaskRuntime): Effect.Effect<PhaseResult, HarnessError> =>
    Effect.suspend(() => {
      const task = taskOf(record, slotOf(runtime, record.id))
      const api = apiOf(runtime, record.id, true)
      const run = task.checkpoint === null ? options.initial(task, api) : enterPhase(task, task.checkpoint, api)
      return Effect.flatMap(Effect.mapError(run, invalid), (step) => answer(step, record, runtime))
    })

  /** The table is exhaustive over the checkpoint's phases; which entry takes which checkpoint is erased here. */
  const enterPhase = (task: Task<I, C, S>, checkpoint: C, api: TaskApi<C, S, H>) => {
    const phases = options.phases as {
      readonly [phase: string]: (
        task: unknown,
        api: TaskApi<C, S, H>
      ) => Effect.Effect<TaskStep<C, S, R, F>, { readonly message: string }>
    }
    const phase = Object.hasOwn(phases, checkpoint.phase) ? phases[checkpoint.phase] : undefined
    return phase === undefined
      ? Effect.fail(
        new HarnessError({
          code: "invalid",
          message: `The task ${task.id} stopped in the phase "${checkpoint.phase}", which ${name} does not have.`
        })
      )
      : phase(task, api)
  }

  return {
    name,
    enter,
    abort: (record, runtime) =>
      Effect.suspend(() => {
        const task = taskOf(record, slotOf(runtime, record.id))
        const run = options.abort?.(task, apiOf(runtime, record.id, false)) ?? Effect.void
        return Effect.as(Effect.mapError(run, invalid), { done: (): TaskEnd => ({ status: "aborted" }) })
      }),
    failed: (_tx, _task, _conversation, message) => ({ status: "failed", failure: { message } }),
    describe: (record, slot) => {
      if (options.describe === undefined) return { phase: phaseName(record.checkpoint) }
      return options.describe(taskOf(record, slot))
    }
  }
}

const currentRecord = (runtime: TaskRuntime, record: TaskRecord): Effect.Effect<TaskRecord, HarnessError> =>
  runtime.commit((tx) => tx.task(record.id) ?? record)

const phaseName = (checkpoint: JsonValue): string => {
  const phase: unknown = checkpoint !== null && typeof checkpoint === "object" ? Reflect.get(checkpoint, "phase") : null
  return typeof phase === "string" ? phase : "starting"
}

const json = (value: unknown): JsonValue => Result.getOrThrow(toJson(value))

const pick = (values: JsonObject, keys: ReadonlyArray<string>): JsonObject =>
  Object.fromEntries(keys.flatMap((key) => values[key] === undefined ? [] : [[key, values[key]]]))

const members = (value: JsonValue): { [key: string]: JsonValue } =>
  value !== null && typeof value === "object" && !Array.isArray(value) ? Object.fromEntries(Object.entries(value)) : {}
