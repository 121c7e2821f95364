/**
 * The tool-facing API of a running call, over the call's task: streamed output and progress in the view, memos in the task's
 * slot, abort effects, files and processes. Streamed output is coalesced to one commit per 100 ms and shows its tail only.
 */
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import { type HarnessError, memoOnce, memoRead, type Session, type TaskRuntime } from "../harness/index.ts"
import { append, type JsonValue, truncate } from "../json/index.ts"
import { type ToolCall, ToolFailure } from "../tool/index.ts"
import type { TurnOptions } from "./options.ts"
import { updateTool } from "./tool-view.ts"
import { makeToolWork } from "./tool-work.ts"

const frameMillis = 100
/** UTF-16 units of streamed output that the view shows. */
const shownUnits = 8_192

const placeless = Effect.fail(
  new ToolFailure({
    message: "There are no files and processes for tools here: the harness was opened without a place."
  })
)

export interface RunningCall {
  readonly call: ToolCall
  /** Shows what has been streamed and not been shown yet. */
  readonly flush: Effect.Effect<void, HarnessError>
}

export const makeToolCall = Effect.fnUntraced(function*(
  session: Session,
  options: TurnOptions,
  runtime: TaskRuntime,
  identity: { readonly taskID: string; readonly callID: string; readonly name: string }
): Effect.fn.Return<RunningCall, never, Scope.Scope> {
  const { taskID } = identity
  const state = runtime.conversation
  const scope = yield* Effect.scope
  const { place } = options
  const decoder = new TextDecoder()
  const dirty = Latch.makeUnsafe(false)
  const frames = Semaphore.makeUnsafe(1)
  let text = ""
  let progress: { readonly value: JsonValue } | null = null

  const flush = Effect.uninterruptible(frames.withPermit(Effect.suspend(() => {
    dirty.closeUnsafe()
    const chunk = text
    const shown = progress
    text = ""
    progress = null
    if (chunk === "" && shown === null) return Effect.void
    return runtime.commit((tx) =>
      updateTool(tx, state, taskID, (tool) => {
        if (chunk !== "") {
          append(tool, "output", chunk)
          const over = tool.output.length - shownUnits
          if (over > 0) truncate(tool, "output", over)
        }
        if (shown !== null) tool.progress = shown.value
      })
    )
  })))

  yield* Effect.forkScoped(
    Effect.ignore(Effect.forever(Effect.andThen(dirty.await, Effect.andThen(Effect.sleep(frameMillis), flush))))
  )

  const aborts: Array<Effect.Effect<void>> = []
  // The durable mark decides: a crash, a suspend or a close interrupts just the same, and is no abort.
  yield* Effect.addFinalizer(() =>
    Effect.suspend(() =>
      session.line.state.tasks.get(taskID)?.abort == null
        ? Effect.void
        : Effect.forEach(aborts, (effect) => Effect.ignoreCause(effect), { concurrency: "unbounded", discard: true })
    )
  )

  function memo<A extends JsonValue>(name: string, candidate: A): Effect.Effect<A>
  function memo(name: string): Effect.Effect<JsonValue | undefined>
  function memo(name: string, candidate?: JsonValue): Effect.Effect<JsonValue | undefined> {
    const key = `tool/${name}`
    // A memo that cannot be stored means that this invocation is over; the tool must not go on without it.
    return Effect.orDie(
      candidate === undefined ? memoRead(runtime, taskID, key) : memoOnce(runtime, taskID, key, candidate)
    )
  }

  return {
    flush: Effect.andThen(
      Effect.sync(() => {
        text += decoder.decode()
      }),
      flush
    ),
    call: {
      sessionID: session.options.sessionID,
      conversationID: state.record.id,
      taskID,
      callID: identity.callID,
      name: identity.name,
      stream: (chunk) =>
        Effect.sync(() => {
          text += typeof chunk === "string" ? chunk : decoder.decode(chunk, { stream: true })
          // Nobody sees more than the tail, so a flood between two frames costs constant memory.
          if (text.length > 2 * shownUnits) text = text.slice(-shownUnits)
          dirty.openUnsafe()
        }),
      progress: (value) =>
        Effect.sync(() => {
          progress = { value }
          dirty.openUnsafe()
        }),
      memo,
      onAbort: (effect) =>
        Effect.sync(() => {
          aborts.push(effect)
        }),
      artifact: options.artifact,
      fs: place?.filesystem ?? placeless,
      process: {
        spawn: (command) => place === undefined ? placeless : Scope.provide(place.process.spawn(command), scope)
      },
      ...makeToolWork(session, runtime, taskID)
    }
  }
})
