/**
 * Task kinds: how durable work runs, and what its phases may answer.
 *
 *   pending ──initial──▶ running ──phase──▶ … ──▶ completed | failed | aborted
 *      │                    │  ▲
 *      │                    │  └─ reopened after a crash: the phase that the checkpoint names
 *      └──── abort mark ────┴──▶ `abort` runs fresh, then aborted
 *
 * An in-flight phase is written before its effect, so it is entered only after a crash.
 */
import * as Effect from "effect/Effect"
import type { JsonValue } from "../json/index.ts"
import type { TaskRecord } from "../storage/index.ts"
import { HarnessError } from "./api.ts"
import type { ConversationState } from "./state.ts"
import type { Transaction } from "./transaction.ts"

/** A checkpoint names its phase; the rest is the phase's own. */
export interface Checkpoint {
  readonly phase: string
  readonly [key: string]: JsonValue
}

export type TaskEnd =
  | { readonly status: "completed"; readonly result?: JsonValue }
  | { readonly status: "failed"; readonly failure: JsonValue }
  | { readonly status: "aborted" }

/** What a phase answers: enter again as the task is now, or the end; `done` runs inside the closing commit. */
export type PhaseResult =
  | { readonly again: TaskRecord }
  | { readonly done: (tx: Transaction, task: TaskRecord) => TaskEnd }

/** What an invocation may do. Every method is refused once the invocation has ended, was marked or replaced. */
export interface TaskRuntime {
  readonly conversation: ConversationState
  readonly commit: <A>(build: (tx: Transaction) => A) => Effect.Effect<A, HarnessError>
  /** Writes a checkpoint, together with whatever else `build` writes. */
  readonly checkpoint: (checkpoint: Checkpoint, build?: (tx: Transaction) => void) => Effect.Effect<void, HarnessError>
}

export type Phase = (task: TaskRecord, runtime: TaskRuntime) => Effect.Effect<PhaseResult, HarnessError>

export interface RunnableKind {
  readonly name: string
  /** Runs a task: from its start, or in the phase that its checkpoint names. */
  readonly enter: Phase
  /** Runs after the abort mark, with the old invocation gone. Creates no work. */
  readonly abort: Phase
  /** The end of a task whose invocation failed for a reason of its own (a defect, a misuse). */
  readonly failed: (tx: Transaction, task: TaskRecord, conversation: ConversationState, message: string) => TaskEnd
  /** How a task outside of turns shows in the view, from its record and what its slot holds. */
  readonly describe?: (task: TaskRecord, slot: JsonValue | undefined) => JsonValue
}

/** Enters a task by its checkpoint's phase; `initial` for one that was never started. */
export const byPhase = (initial: Phase, phases: { readonly [phase: string]: Phase }): Phase => (task, runtime) => {
  const { checkpoint } = task
  if (checkpoint === null || typeof checkpoint !== "object") return initial(task, runtime)
  const name: unknown = Reflect.get(checkpoint, "phase")
  const phase = typeof name === "string" && Object.hasOwn(phases, name) ? phases[name] : undefined
  return phase === undefined
    ? Effect.fail(
      new HarnessError({
        code: "invalid",
        message: `The task ${task.id} stopped in the phase "${name}", which ${task.kind} does not have.`
      })
    )
    : phase(task, runtime)
}
