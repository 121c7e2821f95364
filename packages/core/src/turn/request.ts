/**
 * Prepares one model request: resolves the model, materializes the tools, assembles the system message and the context.
 */
import * as Effect from "effect/Effect"
import { contextOf, type ConversationState, type HarnessError, runHandler, type Session } from "../harness/index.ts"
import type { Message, Model, ModelError, ModelRequest } from "../model/index.ts"
import type { Materialization } from "../tool/index.ts"
import { forModel } from "./foreign.ts"
import type { GenerationInput } from "./inbox.ts"
import { anyAgent, type TurnOptions } from "./options.ts"

export interface PreparedRequest {
  readonly model: Model
  readonly materialization: Materialization
  readonly request: ModelRequest
}

/** Why a turn ends before it asks the model. */
export interface EndedByHook {
  readonly end: string
}

export const prepareRequest = Effect.fn("Turn.prepare")(function*(
  session: Session,
  options: TurnOptions,
  state: ConversationState,
  taskID: string,
  input: GenerationInput
): Effect.fn.Return<PreparedRequest | EndedByHook, ModelError | HarnessError> {
  yield* session.scheduler.released
  yield* beforePrepare(session, options, state, taskID)
  const transcript = yield* session.transcript(state)
  const { config } = state.rewindable
  const agent = yield* options.agent?.(config.agent) ?? Effect.succeed(anyAgent)
  const model = yield* options.models.resolve(config.model ?? agent.model ?? null)
  const enabled = { ...agent.enabled, ...Object.fromEntries(input.added.map((name) => [name, true])) }
  const materialization = yield* options.tools.materialize({ enabled, denied: agent.denied })
  const system = yield* systemText(session, options, state, taskID, agent.prompt)
  const messages: Array<Message> = forModel(contextOf(transcript), transcript, model.info)
  if (system !== "") messages.unshift({ role: "system", content: system })
  const request: ModelRequest = {
    messages,
    tools: materialization.definitions,
    thinking: !model.info.reasoning ? "off" : config.thinking === "off" ? agent.thinking ?? "off" : config.thinking,
    maxOutput: model.info.maxOutput,
    sessionID: session.options.sessionID
  }
  const hooked = yield* beforeRequest(session, options, state, taskID, input, model, request)
  return "end" in hooked ? hooked : { model, materialization, request: hooked }
})

const beforePrepare = Effect.fnUntraced(
  function*(session: Session, options: TurnOptions, state: ConversationState, taskID: string): Effect.fn.Return<void> {
    const conversationID = state.record.id
    for (const hook of session.extensions.hooksFor("generation", state)) {
      const handler = hook.handlers.beforePrepare
      if (handler === undefined) continue
      const api = { sessionID: session.options.sessionID, conversationID, taskID }
      const at = { point: "beforePrepare", who: hook.namespace, conversationID, limit: hook.options.limit }
      yield* runHandler(session, options, at, () => handler(api))
    }
  }
)

const systemText = Effect.fnUntraced(function*(
  session: Session,
  options: TurnOptions,
  state: ConversationState,
  taskID: string,
  prompt: string | null
): Effect.fn.Return<string> {
  const conversationID = state.record.id
  const texts: Array<string> = prompt === null ? [] : [prompt]
  const at = (point: string, who: string) => ({ point, who, conversationID })
  for (const section of session.extensions.sections()) {
    const text = yield* runHandler(
      session,
      options,
      at("section", section.id),
      () => section.text({ conversationID, config: state.rewindable.config })
    )
    if (typeof text === "string" && text !== "") texts.push(text)
  }
  for (const hook of session.extensions.hooksFor("generation", state)) {
    const handler = hook.handlers.systemInstructions
    if (handler === undefined) continue
    const api = { sessionID: session.options.sessionID, conversationID, taskID }
    const text = yield* runHandler(session, options, {
      ...at("systemInstructions", hook.namespace),
      limit: hook.options.limit
    }, () => handler(api))
    if (typeof text === "string" && text !== "") texts.push(text)
  }
  return texts.join("\n\n")
})

const beforeRequest = Effect.fnUntraced(function*(
  session: Session,
  options: TurnOptions,
  state: ConversationState,
  taskID: string,
  input: GenerationInput,
  model: Model,
  first: ModelRequest
): Effect.fn.Return<ModelRequest | EndedByHook> {
  const conversationID = state.record.id
  let request = first
  for (const hook of session.extensions.hooksFor("generation", state)) {
    const handler = hook.handlers.beforeRequest
    if (handler === undefined) continue
    const api = { sessionID: session.options.sessionID, conversationID, taskID, model: model.info, step: input.step }
    const current = request
    const at = { point: "beforeRequest", who: hook.namespace, conversationID, limit: hook.options.limit }
    const answer = yield* runHandler(session, options, at, () => handler(current, api))
    if (answer === undefined) continue
    if (answer.end !== undefined) return { end: answer.end }
    if (answer.request !== undefined) request = answer.request
  }
  return request
})
