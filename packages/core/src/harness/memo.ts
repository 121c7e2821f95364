/** Memos: values that the first writer stores in a task's slot, for whoever asks again, also after a crash. */
import * as Effect from "effect/Effect"
import type { JsonValue } from "../json/index.ts"
import { HarnessError, type Memo } from "./api.ts"
import type { TaskRuntime } from "./kind.ts"

/** Stores `candidate` under the key unless something is there, and gives what is stored. `null` is a value. */
export const memoOnce = <A extends JsonValue>(
  runtime: TaskRuntime,
  taskID: string,
  key: string,
  candidate: A
): Effect.Effect<A, HarnessError> =>
  Effect.flatMap(
    runtime.commit((tx) => {
      const slots = tx.sticky(runtime.conversation).slots
      if (!Object.hasOwn(slots, taskID)) slots[taskID] = { memos: {}, data: {} }
      const memos = slots[taskID]?.memos
      if (memos !== undefined && !Object.hasOwn(memos, key)) memos[key] = candidate
    }),
    () =>
      Effect.suspend(() => {
        const stored = runtime.conversation.sticky.slots[taskID]?.memos[key]
        return stored === undefined
          ? Effect.fail(
            new HarnessError({ code: "stale_invocation", message: "The call has ended; its memos are gone." })
          )
          // What is under a key was stored by the same code for the same purpose; the caller's type stands for it.
          : Effect.succeed(stored as A)
      })
  )

export const memoRead = (
  runtime: TaskRuntime,
  taskID: string,
  key: string
): Effect.Effect<JsonValue | undefined, HarnessError> =>
  Effect.sync(() => {
    const memos = runtime.conversation.sticky.slots[taskID]?.memos
    return memos !== undefined && Object.hasOwn(memos, key) ? memos[key] : undefined
  })

/** The memos of one namespace in a task's slot, for hooks that run in it. */
export const memosOf = (runtime: TaskRuntime, taskID: string, namespace: string): Memo => {
  function memo<A extends JsonValue>(name: string, candidate: A): Effect.Effect<A, HarnessError>
  function memo(name: string): Effect.Effect<JsonValue | undefined, HarnessError>
  function memo(name: string, candidate?: JsonValue): Effect.Effect<JsonValue | undefined, HarnessError> {
    const key = `${namespace}/${name}`
    return candidate === undefined ? memoRead(runtime, taskID, key) : memoOnce(runtime, taskID, key, candidate)
  }
  return memo
}
