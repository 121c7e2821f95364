/**
 * The `bezel.tool` kind: one call of an answer, from its check to its one result entry.
 *
 *   initial: readable? offered? valid? ─▶ beforeTool hooks, gates last ─▶ started ─▶ settle ─▶ result entry
 *
 * Every call always gets a result, whatever dies. Before `started`, recovery runs all of it again; behind it, the tool runs
 * again only if it is the very tool that was started and says that this is safe; else the result says `interrupted`.
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import {
  type BeforeToolApi,
  type BeforeToolDecision,
  byPhase,
  type ConversationState,
  defaultHookLimit,
  failureText,
  type HarnessError,
  type HookToolCall,
  memosOf,
  type Phase,
  type PhaseResult,
  pluginEvent,
  runHandler,
  type RunnableKind,
  type Session,
  type TaskRuntime,
  type Transaction,
  withLimit
} from "../harness/index.ts"
import { type JsonValue, JsonValue as JsonSchema } from "../json/index.ts"
import type { ToolResultPart } from "../model/index.ts"
import type { TaskRecord } from "../storage/index.ts"
import type { AcceptedCall, Materialization, ToolResult, ToolResultCode } from "../tool/index.ts"
import { type CallScopes, makeCallScopes } from "./call-scopes.ts"
import { entryKinds, taskKinds } from "./kinds.ts"
import type { Materializations } from "./materializations.ts"
import { anyAgent, type TurnOptions } from "./options.ts"
import { makeToolCall } from "./tool-call.ts"
import { updateTool } from "./tool-view.ts"

const Declaration = Schema.Struct({
  name: Schema.String,
  plugin: Schema.String,
  version: Schema.String,
  hash: Schema.String
})

const ToolInput = Schema.Struct({
  generation: Schema.String,
  callID: Schema.String,
  name: Schema.String,
  args: JsonSchema,
  malformed: Schema.NullOr(Schema.Struct({ error: Schema.String, text: Schema.String })),
  cutOff: Schema.Boolean,
  declaration: Schema.NullOr(Declaration)
})
type ToolInput = typeof ToolInput.Type

const Started = Schema.Struct({
  phase: Schema.Literal("started"),
  args: JsonSchema,
  declaration: Declaration,
  replay: Schema.String
})

const decodeInput = Schema.decodeUnknownSync(ToolInput)
const decodeStarted = Schema.decodeUnknownSync(Started)

/** Why a call has the result it has, where the tool did not make it or a person's part in it is missing. */
type ResultCode =
  | "malformed_arguments"
  | "unknown_tool"
  | "not_offered"
  | "invalid_arguments"
  | "stale_tool"
  | "blocked"
  | "interrupted"
  | "aborted"
  | "internal"
  | NonNullable<BeforeToolDecision["code"]>
  | ToolResultCode

export const toolKind = (session: Session, options: TurnOptions, materializations: Materializations): RunnableKind => {
  const materialization = (input: ToolInput, state: ConversationState): Effect.Effect<Materialization> => {
    const kept = materializations.of(input.generation)
    if (kept !== undefined) return Effect.succeed(kept)
    // After a restart: what would be offered now, matched by declaration below.
    return Effect.flatMap(
      options.agent?.(state.rewindable.config.agent) ?? Effect.succeed(anyAgent),
      (agent) => options.tools.materialize({ enabled: agent.enabled, denied: agent.denied })
    )
  }

  const initial: Phase = (task, runtime) => {
    const scopes = makeCallScopes(session, options, runtime.conversation.record.id)
    return scopes.around(Effect.gen(function*() {
      const input = decodeInput(task.input)
      if (input.malformed !== null) return refused("malformed_arguments", malformedText(input))
      const offered = yield* materialization(input, runtime.conversation)
      const checked = offered.accept(input.name, input.args)
      if ("refused" in checked) return refused(checked.refused.code, checked.refused.message)
      if (input.declaration !== null && !isSame(checked.accepted, input.declaration)) {
        return refused("stale_tool", staleText(input.name))
      }
      const decided = yield* beforeTool(task, runtime, scopes, input, offered, checked.accepted)
      if ("blocked" in decided) return refused(decided.code, decided.blocked)
      const stale = offered.fresh(decided.call)
      if (stale !== null) return refused(stale.code, stale.message)
      const { call } = decided
      yield* runtime.checkpoint({
        phase: "started",
        args: call.args,
        declaration: { ...call.declaration },
        replay: call.tool.replay
      }, (tx) => {
        updateTool(tx, runtime.conversation, task.id, (tool) => {
          tool.status = "running"
          tool.waitingOn = null
          tool.args = call.args
        })
        tx.emit(runtime.conversation, { type: "tool.started", callId: input.callID, name: input.name, args: call.args })
      })
      return yield* run(task, runtime, input, offered, call)
    })).pipe(Effect.map((settled) => finished(runtime, task, settled)))
  }

  /** Entered only after a crash: the effect of the call may or may not have happened. */
  const started: Phase = (task, runtime) =>
    Effect.gen(function*() {
      const input = decodeInput(task.input)
      const checkpoint = decodeStarted(task.checkpoint)
      const offered = yield* materialization(input, runtime.conversation)
      const checked = offered.accept(input.name, checkpoint.args)
      if (
        "refused" in checked || !isSame(checked.accepted, checkpoint.declaration) ||
        checkpoint.replay !== "safe" || checked.accepted.tool.replay !== "safe"
      ) {
        return finished(runtime, task, refused("interrupted", interruptedText(input.name)))
      }
      return finished(runtime, task, yield* run(task, runtime, input, offered, checked.accepted))
    })

  const run = (
    task: TaskRecord,
    runtime: TaskRuntime,
    input: ToolInput,
    offered: Materialization,
    call: AcceptedCall
  ): Effect.Effect<Settled, HarnessError> =>
    Effect.scoped(Effect.gen(function*() {
      const api = yield* makeToolCall(session, options, runtime, {
        taskID: task.id,
        callID: input.callID,
        name: input.name
      })
      const hooked: HookToolCall = {
        callID: input.callID,
        name: input.name,
        args: call.args,
        permission: call.permission
      }
      const result = yield* offered.settle(call, api.call, {
        afterTool: (settled) => afterTool(task, runtime, hooked, settled)
      })
      yield* api.flush
      return { result, code: result.code ?? null }
    }))

  const beforeTool = (
    task: TaskRecord,
    runtime: TaskRuntime,
    scopes: CallScopes,
    input: ToolInput,
    offered: Materialization,
    accepted: AcceptedCall
  ): Effect.Effect<
    { readonly call: AcceptedCall } | { readonly blocked: string; readonly code: ResultCode },
    HarnessError
  > =>
    Effect.gen(function*() {
      yield* session.scheduler.released
      let call = accepted
      for (const hook of session.extensions.hooksFor("tool", runtime.conversation)) {
        const handler = hook.handlers.beforeTool
        if (handler === undefined) continue
        let waits = false
        const api = beforeToolApi(session, runtime, task, input, hook.namespace, () => {
          waits = true
        })
        const hooked: HookToolCall = {
          callID: input.callID,
          name: input.name,
          args: call.args,
          permission: call.permission
        }
        const limited = withLimit(
          Effect.suspend(() => scopes.provide(hook, handler(hooked, api))),
          hook.options.limit ?? options.hookLimit ?? defaultHookLimit,
          hook.namespace,
          () => waits
        )
        const cleared = Effect.onInterrupt(limited, () =>
          waits ? clearWaiting(session, runtime.conversation, task.id) : Effect.void)
        const decision = yield* Effect.catchCause(cleared, (cause) =>
          Effect.succeed<BeforeToolDecision>({
            block: `This call was blocked because a check of it failed: ${failureText(cause)}.`
          }))
        if (decision === undefined) {
          continue
        }
        if (decision.block !== undefined) {
          return { blocked: decision.block, code: decision.code ?? "blocked" } as const
        }
        if (decision.args === undefined || hook.options.gate === true) {
          continue
        }
        const rechecked = offered.accept(input.name, decision.args)
        if ("refused" in rechecked) {
          return {
            blocked:
              `A hook of "${hook.namespace}" changed the arguments of this call to something invalid: ${rechecked.refused.message}`,
            code: "blocked"
          } as const
        }
        call = rechecked.accepted
      }
      return { call }
    })

  const afterTool = (
    task: TaskRecord,
    runtime: TaskRuntime,
    call: HookToolCall,
    first: ToolResult
  ): Effect.Effect<ToolResult> =>
    Effect.gen(function*() {
      let result = first
      const conversationID = runtime.conversation.record.id
      for (const hook of session.extensions.hooksFor("tool", runtime.conversation)) {
        const handler = hook.handlers.afterTool
        if (handler === undefined) continue
        const current = result
        const api = { sessionID: session.options.sessionID, conversationID, taskID: task.id }
        const at = { point: "afterTool", who: hook.namespace, conversationID, limit: hook.options.limit }
        result = (yield* runHandler(session, options, at, () => handler(call, current, api))) ?? result
      }
      return result
    })

  return {
    name: taskKinds.tool,
    enter: byPhase(initial, { started }),
    abort: (task, runtime) => Effect.succeed(aborted(runtime, task)),
    failed: (tx, task, conversation, message) => {
      const input = decodeInput(task.input)
      writeResult(tx, conversation, task, input, errorResult(`The call failed inside Bezel: ${message}`), "internal")
      return { status: "failed", failure: { message } }
    }
  }
}

const isSame = (call: AcceptedCall, declaration: typeof Declaration.Type): boolean =>
  call.declaration.plugin === declaration.plugin && call.declaration.version === declaration.version &&
  call.declaration.hash === declaration.hash

const malformedText = (input: ToolInput): string =>
  input.cutOff
    ? `The arguments of this call were cut off at the output limit, so it was not run. Call ${input.name} again with shorter arguments.`
    : `The arguments of this call are not valid JSON (${
      input.malformed?.error ?? "unreadable"
    }), so it was not run. Call ${input.name} again with one valid JSON object.`

const staleText = (name: string): string =>
  `The tool ${name} was changed after it was offered, so this call was not run. The next request offers its new definition.`

const interruptedText = (name: string): string =>
  `Bezel was stopped while ${name} was running. It is unknown whether the call took effect; check before you repeat it.`

const errorResult = (text: string): ToolResult => ({
  content: [{ type: "text", text }],
  isError: true,
  details: null,
  control: {}
})

/** How a call has ended, before that is written. */
interface Settled {
  readonly result: ToolResult
  readonly code: ResultCode | null
}

const refused = (code: ResultCode, text: string): Settled => ({ result: errorResult(text), code })

const finished = (runtime: TaskRuntime, task: TaskRecord, { code, result }: Settled): PhaseResult => ({
  done: (tx) => {
    const entry = writeResult(tx, runtime.conversation, task, decodeInput(task.input), result, code)
    return { status: "completed", result: { entry, control: controlOf(result) } }
  }
})

const aborted = (runtime: TaskRuntime, task: TaskRecord): PhaseResult => ({
  done: (tx) => {
    const input = decodeInput(task.input)
    const text = task.status === "pending"
      ? "The user interrupted before this call was run."
      : "The user interrupted this call; it may have taken effect in part."
    writeResult(tx, runtime.conversation, task, input, errorResult(text), "aborted")
    return { status: "aborted" }
  }
})

const controlOf = (result: ToolResult): JsonValue => ({
  ...(result.control.terminate === true ? { terminate: true } : {}),
  ...(result.control.handoff === undefined ? {} : { handoff: result.control.handoff }),
  ...(result.control.addTools === undefined ? {} : { addTools: [...result.control.addTools] })
})

/** The one result of a call: its entry, its state in the view, and the event. */
const writeResult = (
  tx: Transaction,
  state: ConversationState,
  task: TaskRecord,
  input: ToolInput,
  result: ToolResult,
  code: ResultCode | null
): string => {
  const text = result.content.map((part) => part.type === "text" ? part.text : `[${part.fileName ?? part.mediaType}]`)
    .join("\n")
  const part: ToolResultPart = {
    type: "tool-result",
    id: input.callID,
    name: input.name,
    isFailure: result.isError,
    result: text,
    ...(result.content.some((content) => content.type === "file") ? { modelOutput: result.content } : {})
  }
  const entry = tx.appendEntry(state, {
    kind: entryKinds.toolResult,
    data: {
      callID: input.callID,
      name: input.name,
      isError: result.isError,
      details: result.details,
      ...(code === null ? {} : { code })
    },
    model: [{ role: "tool", content: [part] }]
  })
  updateTool(tx, state, task.id, (tool) => {
    tool.status = code === "aborted" ? "aborted" : result.isError ? "failed" : "completed"
    tool.waitingOn = null
    tool.details = result.details
    tool.entry = entry.id
  })
  tx.emit(state, {
    type: code === "aborted" ? "tool.aborted" : "tool.finished",
    callId: input.callID,
    name: input.name,
    isError: result.isError,
    entry: entry.id,
    ...(code === null ? {} : { code })
  })
  return entry.id
}

const beforeToolApi = (
  session: Session,
  runtime: TaskRuntime,
  task: TaskRecord,
  input: ToolInput,
  namespace: string,
  onWaiting: () => void
): BeforeToolApi => ({
  sessionID: session.options.sessionID,
  conversationID: runtime.conversation.record.id,
  taskID: task.id,
  waiting: Effect.suspend(() => {
    onWaiting()
    return runtime.commit((tx) => {
      const known = runtime.conversation.sticky.turn?.tools.find((tool) => tool.task === task.id)
      if (known?.waitingOn === namespace) return
      updateTool(tx, runtime.conversation, task.id, (tool) => {
        tool.status = "waiting"
        tool.waitingOn = namespace
      })
      tx.emit(runtime.conversation, {
        type: "tool.waiting",
        callId: input.callID,
        name: input.name,
        waitingOn: namespace
      })
    })
  }),
  memo: memosOf(runtime, task.id, namespace),
  emit: (name, data) => runtime.commit((tx) => tx.emit(runtime.conversation, pluginEvent(namespace, name, data)))
})

/** A handler that unwinds without an answer waits no more; the mark goes in a commit of its own. */
const clearWaiting = (session: Session, state: ConversationState, taskID: string): Effect.Effect<void> =>
  Effect.ignore(session.line.commit((tx) => {
    updateTool(tx, state, taskID, (tool) => {
      if (tool.waitingOn === null) return
      tool.waitingOn = null
      tool.status = "pending"
    })
  }))
