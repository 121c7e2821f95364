/**
 * Closes an answer, inside the closing commit: the assistant entry, the cleared live message, and either the tasks of its
 * calls or the end of the turn.
 */
import type { ConversationState, TaskEnd, Transaction } from "../harness/index.ts"
import type { ModelRef } from "../model/index.ts"
import type { TaskRecord } from "../storage/index.ts"
import type { Materialization } from "../tool/index.ts"
import type { Answer, AnswerCall } from "./answer.ts"
import { endTurn, type GenerationInput, nextGeneration, placeSteers } from "./inbox.ts"
import { entryKinds, taskKinds } from "./kinds.ts"

/** How many answers in a row may hold calls that cannot be read before the turn is given up. */
export const malformedLimit = 3

export interface ClosingAnswer {
  readonly tx: Transaction
  readonly state: ConversationState
  readonly task: TaskRecord
  readonly input: GenerationInput
  readonly answer: Answer
  readonly model: ModelRef
  /** US dollars. */
  readonly cost: number
  readonly materialization: Materialization
  /** What the model is to go on with, where a final answer would have ended the turn. */
  readonly more: string | null
}

export const closeAnswer = (closing: ClosingAnswer): TaskEnd => {
  const { answer, cost, model, state, task, tx } = closing
  const message = answer.message()
  const calls = answer.calls()
  const broken = calls.filter((call) => call.malformed !== null)
  const entry = tx.appendEntry(state, {
    kind: entryKinds.assistant,
    data: {
      model: `${model.provider}/${model.model}`,
      finish: answer.finish,
      usage: { ...answer.usage },
      cost,
      ...(broken.length === 0
        ? {}
        : {
          malformed: broken.map((call) => ({
            callID: call.id,
            error: call.malformed?.error ?? "",
            text: call.malformed?.text ?? ""
          }))
        })
    },
    // An answer without content is left out of later requests: providers refuse empty messages.
    model: message.content.length === 0 ? null : [message]
  })
  countUsage(tx, state, answer, cost)
  const sticky = tx.sticky(state)
  if (sticky.turn !== null) {
    sticky.turn.message = null
    sticky.turn.generation = null
  }
  tx.emit(state, {
    type: "generation.completed",
    task: task.id,
    entry: entry.id,
    finish: answer.finish,
    usage: { ...answer.usage },
    cost
  })
  if (calls.length > 0) {
    createCalls(closing, calls, broken.length > 0 ? closing.input.malformed + 1 : 0)
  } else {
    if (answer.finish === "length") {
      tx.emit(state, { type: "warning", message: "The answer was cut off at the model's output limit." })
    }
    if (closing.more === null) endTurn(tx, state, { status: "done", entry: entry.id })
    else goOnWith(closing, closing.more)
  }
  return { status: "completed", result: { entry: entry.id } }
}

const goOnWith = ({ input, state, tx }: ClosingAnswer, text: string): void => {
  tx.appendEntry(state, { kind: entryKinds.notice, model: [{ role: "user", content: [{ type: "text", text }] }] })
  placeSteers(tx, state)
  nextGeneration(tx, state, { step: input.step + 1, malformed: 0, added: input.added, collapses: 0 })
}

/** One task per call, then the task that goes on behind them. A call that must run alone waits for those before it. */
const createCalls = (closing: ClosingAnswer, calls: ReadonlyArray<AnswerCall>, malformed: number): void => {
  const { input, materialization, state, task, tx } = closing
  const created: Array<string> = []
  let barrier: string | null = null
  for (const call of calls) {
    const decision = call.malformed === null ? materialization.accept(call.name, call.params) : null
    const accepted = decision !== null && "accepted" in decision ? decision.accepted : null
    const alone = accepted?.tool.executionMode === "sequential"
    const tool = tx.createTask(state, {
      kind: taskKinds.tool,
      input: {
        generation: task.id,
        callID: call.id,
        name: call.name,
        args: call.params,
        malformed: call.malformed === null ? null : { ...call.malformed },
        cutOff: closing.answer.finish === "length",
        declaration: accepted === null ? null : { ...accepted.declaration }
      },
      after: alone ? [...created] : barrier === null ? [] : [barrier]
    })
    if (alone) barrier = tool.id
    created.push(tool.id)
    const turn = tx.sticky(state).turn
    turn?.tools.push({
      task: tool.id,
      callId: call.id,
      name: call.name,
      args: call.params,
      status: "pending",
      waitingOn: null,
      output: "",
      progress: null,
      details: null,
      continuedBy: null,
      entry: null
    })
  }
  tx.createTask(state, {
    kind: taskKinds.postTools,
    input: { generation: task.id, step: input.step, malformed, added: [...input.added], tools: created },
    after: created
  })
}

const countUsage = (tx: Transaction, state: ConversationState, answer: Answer, cost: number): void => {
  const usage = tx.sticky(state).usage
  usage.input += answer.usage.input
  usage.output += answer.usage.output
  usage.cacheRead += answer.usage.cacheRead
  usage.cacheWrite += answer.usage.cacheWrite
  usage.cost += cost
  usage.context = answer.usage.input + answer.usage.output
}
