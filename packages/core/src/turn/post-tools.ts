/**
 * The `bezel.post_tools` kind: runs once all calls of an answer have results, folds what they ask for in call order, and
 * goes on to the next request or ends the turn.
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import {
  type ConversationState,
  HarnessError,
  type Phase,
  runHandler,
  type RunnableKind,
  type Session,
  type TaskRuntime,
  type Transaction
} from "../harness/index.ts"
import type { TaskRecord } from "../storage/index.ts"
import type { ToolControl } from "../tool/index.ts"
import { malformedLimit } from "./close.ts"
import { endTurn, nextGeneration, placeSteers } from "./inbox.ts"
import { entryKinds, taskKinds } from "./kinds.ts"
import type { Materializations } from "./materializations.ts"
import type { TurnOptions } from "./options.ts"

const PostToolsInput = Schema.Struct({
  generation: Schema.String,
  step: Schema.Int,
  malformed: Schema.Int,
  added: Schema.Array(Schema.String),
  tools: Schema.Array(Schema.String)
})

const ToolTaskResult = Schema.Struct({
  entry: Schema.String,
  control: Schema.Struct({
    terminate: Schema.optionalKey(Schema.Boolean),
    handoff: Schema.optionalKey(Schema.String),
    addTools: Schema.optionalKey(Schema.Array(Schema.String))
  })
})

const decodeInput = Schema.decodeUnknownSync(PostToolsInput)
const decodeResult = Schema.decodeUnknownOption(ToolTaskResult)

export const postToolsKind = (
  session: Session,
  options: TurnOptions,
  materializations: Materializations
): RunnableKind => {
  const afterTools = Effect.fnUntraced(function*(task: TaskRecord, runtime: TaskRuntime) {
    yield* session.scheduler.released
    const conversationID = runtime.conversation.record.id
    const calls = (runtime.conversation.sticky.turn?.tools ?? []).map((tool) => ({
      callID: tool.callId,
      name: tool.name,
      isError: tool.status !== "completed"
    }))
    for (const hook of session.extensions.hooksFor("post_tools", runtime.conversation)) {
      const handler = hook.handlers.afterTools
      if (handler === undefined) continue
      const api = { sessionID: session.options.sessionID, conversationID, taskID: task.id }
      const at = { point: "afterTools", who: hook.namespace, conversationID, limit: hook.options.limit }
      yield* runHandler(session, options, at, () => handler(calls, api))
    }
  })

  const initial: Phase = (task, runtime) =>
    Effect.gen(function*() {
      const input = decodeInput(task.input)
      yield* afterTools(task, runtime)
      const controls: Array<ToolControl> = []
      for (const id of input.tools) {
        const record = yield* Effect.mapError(session.storage.task(id), (error) =>
          new HarnessError({ code: "faulted", message: error.message }))
        const result = decodeResult(record?.result)
        if (result._tag === "Some") {
          controls.push(result.value.control)
        }
      }
      materializations.drop(input.generation)
      return {
        done: (tx) => {
          goOn(tx, runtime.conversation, input, controls)
          return { status: "completed" }
        }
      }
    })

  return {
    name: taskKinds.postTools,
    enter: initial,
    abort: (task, runtime) => {
      materializations.drop(decodeInput(task.input).generation)
      return Effect.succeed({
        done: (tx) => {
          endTurn(tx, runtime.conversation, { status: "unanswered", reason: "aborted", error: null })
          return { status: "aborted" }
        }
      })
    },
    failed: (tx, _task, conversation, message) => {
      endTurn(tx, conversation, { status: "unanswered", reason: "failed", error: { kind: "internal", message } })
      return { status: "failed", failure: { message } }
    }
  }
}

const goOn = (
  tx: Transaction,
  state: ConversationState,
  input: typeof PostToolsInput.Type,
  controls: ReadonlyArray<ToolControl>
): void => {
  if (input.malformed >= malformedLimit) {
    const message =
      `The model sent calls that could not be read ${input.malformed} times in a row, so the turn was ended.`
    return endTurn(tx, state, { status: "unanswered", reason: "failed", error: { kind: "malformed", message } })
  }
  if (controls.some((control) => control.terminate === true)) {
    const message = "A tool ended the turn."
    return endTurn(tx, state, { status: "unanswered", reason: "terminated", error: { kind: "terminated", message } })
  }
  const handoff = controls.map((control) => control.handoff).filter((text) => text !== undefined)
  if (handoff.length > 0) {
    const entry = tx.appendEntry(state, {
      kind: entryKinds.handoff,
      head: { after: null },
      model: [{ role: "user", content: [{ type: "text", text: handoff.join("\n\n") }] }]
    })
    tx.emit(state, { type: "head.moved", entry: entry.id })
  }
  placeSteers(tx, state)
  const added = new Set([...input.added, ...controls.flatMap((control) => control.addTools ?? [])])
  nextGeneration(tx, state, { step: input.step + 1, malformed: input.malformed, added: [...added], collapses: 0 })
}
