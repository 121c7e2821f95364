/**
 * The session facet of hooks for people: runs their commands.
 *
 * Before a tool, a command that says no, fails or takes too long blocks the call: a gate never lets through by failing. What
 * it allows is what runs: if another plugin changes the call afterwards, it is asked again. After a tool and at the end of a
 * turn a failure is a warning. What a command has said before a call is kept with the call, so that a crash does not have it run
 * twice. Rules and approvals hold all the same, and see what a command has changed.
 */
import type { BeforeToolApi, BeforeToolDecision, HarnessError, HookApi, HookToolCall } from "@bezel/core/harness"
import type { SessionContext } from "@bezel/core/host"
import type { JsonObject, JsonValue } from "@bezel/core/json"
import type { AssistantMessage, TextPart } from "@bezel/core/model"
import type { ToolResult } from "@bezel/core/tool"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { createHash } from "node:crypto"
import { useIfThere } from "../optional/index.ts"
import { accessOfTool, coversAccess, PermissionGate } from "../permissions/contract.ts"
import { readOutcome, Said } from "./answer.ts"
import { type CallPlace, makeCalls } from "./calls.ts"
import { runHookCommand } from "./command.ts"
import { type CallStatus, HooksSetting, type ToolHook, type TurnHook } from "./contract.ts"

type Context =
  & Pick<
    SessionContext,
    "find" | "hooks" | "location" | "namespace" | "onActivate" | "onSession" | "settings" | "use"
  >
  & { readonly session: Pick<SessionContext["session"], "get"> }

const usualTimeout = 60
/** How often in a row hooks may keep a turn from ending. */
const maxContinuations = 5
/** Characters of a result or an answer that a command is given. */
const maxText = 256 * 1024

const namesOf = ({ match = "*" }: ToolHook): ReadonlyArray<string> => typeof match === "string" ? [match] : match

const matches = (hook: ToolHook, tool: string): boolean => {
  const access = Object.hasOwn(accessOfTool, tool) ? accessOfTool[tool] : undefined
  return namesOf(hook).some((name) => name === "*" || name === access || coversAccess(name, tool))
}

const limitOf = (hooks: ReadonlyArray<ToolHook | TurnHook>): Duration.Duration =>
  // The commands have limits of their own; this one is for what they cannot be blamed for.
  Duration.seconds(hooks.reduce((sum, { timeout }) => sum + (timeout ?? usualTimeout), 30))

const shown = ({ command }: ToolHook | TurnHook): string => {
  const text = (typeof command === "string" ? command : command.join(" ")).replaceAll(/\s+/g, " ")
  return JSON.stringify(text.length <= 80 ? text : `${text.slice(0, 79).toWellFormed()}…`)
}

const canonical = (value: JsonValue): string => {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`
  if (value === null || typeof value !== "object") return JSON.stringify(value)
  const members = Object.entries(value).sort(([left], [right]) => left < right ? -1 : 1)
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${canonical(member)}`).join(",")}}`
}

const textOf = (parts: ReadonlyArray<{ readonly type: string; readonly text?: string }>): string =>
  parts.flatMap((part) => part.type === "text" && part.text !== undefined ? [part.text] : []).join("\n")
    .slice(0, maxText).toWellFormed()

const behind = (reason: string): string => reason === "" ? "." : `: ${reason}`

const callOf = (place: CallPlace, name: string, args: JsonValue, more: JsonObject = {}): JsonObject => ({
  id: place.callID,
  name,
  arguments: args,
  ...more
})

/** The facet for session hosts. */
export const session = Effect.fn("hooks/session")(function*(ctx: Context) {
  const { afterTool = [], beforeTool = [], turnEnd = [] } = ctx.settings.get(HooksSetting)
  if (beforeTool.length + afterTool.length + turnEnd.length === 0) return
  const namespace = yield* ctx.namespace("hooks", { sticky: { open: {} } })

  // Once all tools are there. Who has a slip of the pen in a name believes to have a gate.
  yield* ctx.onActivate(Effect.gen(function*() {
    const permissions = yield* useIfThere(ctx, PermissionGate)
    if (permissions === null) return
    for (const hook of [...beforeTool, ...afterTool]) {
      for (const { access, message } of yield* permissions.unknown(namesOf(hook))) {
        yield* Effect.logWarning(`The hook ${shown(hook)} does not run for ${JSON.stringify(access)}: ${message}`)
      }
    }
  }))

  const run = (
    hook: ToolHook | TurnHook,
    event: "beforeTool" | "afterTool" | "turnEnd",
    at: { readonly sessionID: string; readonly conversationID: string },
    more: JsonObject
  ): Effect.Effect<Said> => {
    const timeoutMs = (hook.timeout ?? usualTimeout) * 1_000
    const input: JsonObject = {
      event,
      sessionID: at.sessionID,
      conversationID: at.conversationID,
      directory: ctx.location.directory,
      ...more
    }
    const ran = runHookCommand({
      command: hook.command,
      directory: ctx.location.directory,
      timeoutMs,
      input: `${JSON.stringify(input)}\n`,
      environment: { BEZEL_SESSION_ID: at.sessionID }
    })
    return Effect.match(ran, {
      onSuccess: (outcome) => readOutcome(outcome, timeoutMs),
      onFailure: ({ message }): Said => ({ type: "failed", problem: message })
    }).pipe(Effect.withSpan("hooks.run", { attributes: { event } }))
  }

  const warn = (at: { readonly sessionID: string; readonly conversationID: string }, message: string) =>
    Effect.andThen(
      Effect.logWarning(message),
      Effect.ignore(
        namespace.update(`${at.sessionID}/${at.conversationID}`, () => {}, { name: "warning", data: { message } })
      )
    )

  /** Tells the commands behind a tool how a call ended; gives what they want the model to read, and whether one objects. */
  const runAfter = Effect.fnUntraced(
    function*(place: CallPlace, name: string, args: JsonValue, status: CallStatus, text: string) {
      const notes: Array<string> = []
      let objected = false
      for (const hook of afterTool.filter((one) => matches(one, name))) {
        const said = yield* run(hook, "afterTool", place, { call: callOf(place, name, args), result: { status, text } })
        if (said.type === "failed") yield* warn(place, `The hook ${shown(hook)} after ${name} failed: ${said.problem}.`)
        else if (said.type === "no") {
          objected = true
          notes.push(`A hook of the user objects to this result${behind(said.reason)}`)
        } else if (said.answer.message !== undefined) notes.push(said.answer.message)
      }
      return { notes, objected }
    }
  )

  const runTurnEnd = Effect.fnUntraced(
    function*(at: { readonly sessionID: string; readonly conversationID: string }, more: JsonObject) {
      let objection: string | null = null
      for (const hook of turnEnd) {
        const said = yield* run(hook, "turnEnd", at, more)
        if (said.type === "failed") {
          yield* warn(at, `The hook ${shown(hook)} at the end of the turn failed: ${said.problem}.`)
        }
        if (said.type === "no") objection ??= said.reason
      }
      return objection
    }
  )

  /** Sub-agents' turns are parts of the turn that started them. */
  const isOwnTurn = (sessionID: string) =>
    Effect.match(ctx.session.get(sessionID), {
      onSuccess: ({ parentID }) => parentID === null,
      onFailure: () => true
    })

  /** Conversations whose turn's end was told before it came, and how often in a row it was put off. */
  const asked = new Map<string, { step: number; continued: number }>()
  const mains = new Map<string, string>()

  const calls = makeCalls({
    namespace,
    onEnd: (place, call, status, text) => Effect.asVoid(runAfter(place, call.name, call.arguments, status, text)),
    onTurnEnd: ({ conversationID, error, sessionID, status }) =>
      Effect.gen(function*() {
        const wasAsked = asked.delete(`${sessionID}/${conversationID}`)
        if (turnEnd.length === 0 || (status === "done" && wasAsked) || !(yield* isOwnTurn(sessionID))) return
        yield* runTurnEnd({ sessionID, conversationID }, { status, error, text: "" })
      })
  })

  /** What a command has said before this call as it is now, in this process or before a crash; it is run where it is not known. */
  const runOnce = Effect.fnUntraced(
    function*(hook: ToolHook, place: CallPlace, input: JsonObject, memo: BeforeToolApi["memo"]) {
      const name = createHash("sha256").update(canonical([beforeTool.indexOf(hook), shown(hook), input])).digest("hex")
      const known = Schema.decodeUnknownOption(Said)(yield* memo(name))
      if (Option.isSome(known)) return known.value
      const said = yield* run(hook, "beforeTool", place, { call: input })
      yield* memo(name, Schema.encodeSync(Said)(said))
      return said
    }
  )

  /** What the commands before a tool make of a call: what it runs with, or why it does not. */
  const runBefore = Effect.fnUntraced(function*(place: CallPlace, call: HookToolCall, memo: BeforeToolApi["memo"]) {
    let args = call.args
    for (const hook of beforeTool.filter((one) => matches(one, call.name))) {
      const { access, subjects } = call.permission
      const input = callOf(place, call.name, args, { access, subjects: [...subjects] })
      const said = yield* runOnce(hook, place, input, memo)
      if (said.type === "no") return { block: `A hook of the user blocked this call${behind(said.reason)}` }
      if (said.type === "failed") {
        return {
          block: `This call was blocked because the hook ${
            shown(hook)
          } of the user, which has to allow it, failed: ${said.problem}.`
        }
      }
      args = said.answer.arguments ?? args
    }
    return { args }
  })

  const placeOf = (call: HookToolCall, { conversationID, sessionID }: HookApi): CallPlace => ({
    sessionID,
    conversationID,
    callID: call.callID
  })
  const concerns = (name: string) => [...beforeTool, ...afterTool].some((hook) => matches(hook, name))
  /** What has been allowed, by task. */
  const allowed = new Map<string, string>()

  const before = Effect.fn("hooks.beforeTool")(function*(call: HookToolCall, api: BeforeToolApi) {
    if (!concerns(call.name)) return undefined
    const place = placeOf(call, api)
    yield* calls.begin(place, { name: call.name, arguments: call.args })
    const decided = yield* runBefore(place, call, api.memo)
    if ("block" in decided) return decided
    allowed.set(api.taskID, canonical(decided.args))
    return decided.args === call.args ? undefined : { args: decided.args }
  })

  /** The call as it will run: if it is another one by now, the commands have not allowed it yet. */
  const gate = Effect.fn("hooks.gate")(function*(
    call: HookToolCall,
    api: BeforeToolApi
  ): Effect.fn.Return<BeforeToolDecision | undefined, HarnessError> {
    const seen = allowed.get(api.taskID)
    allowed.delete(api.taskID)
    if (!beforeTool.some((hook) => matches(hook, call.name)) || seen === canonical(call.args)) return undefined
    const decided = yield* runBefore(placeOf(call, api), call, api.memo)
    if ("block" in decided) return decided
    return canonical(decided.args) === canonical(call.args)
      ? undefined
      : { block: "This call was blocked: a hook of the user and a plugin do not agree on what it should run with." }
  })

  const after = Effect.fn("hooks.afterTool")(function*(call: HookToolCall, result: ToolResult, api: HookApi) {
    if (!concerns(call.name)) return undefined
    const place = placeOf(call, api)
    const status = result.isError ? "error" : "ok"
    const { notes, objected } = yield* runAfter(place, call.name, call.args, status, textOf(result.content))
    yield* calls.end(place)
    if (notes.length === 0) return undefined
    const added = notes.map((text): TextPart => ({ type: "text", text }))
    return { ...result, content: [...result.content, ...added], isError: result.isError || objected }
  })

  const onYield = Effect.fn("hooks.onYield")(
    function*(message: AssistantMessage, api: HookApi & { readonly step: number }) {
      const key = `${api.sessionID}/${api.conversationID}`
      if (mains.get(api.sessionID) !== api.conversationID || !(yield* isOwnTurn(api.sessionID))) return undefined
      const last = asked.get(key)
      const continued = last !== undefined && last.step < api.step ? last.continued : 0
      asked.set(key, { step: api.step, continued })
      const objection = yield* runTurnEnd(api, {
        status: "done",
        error: null,
        text: textOf(message.content),
        continued
      })
      if (objection === null) return undefined
      if (continued >= maxContinuations) {
        yield* warn(api, `A hook kept the turn from ending ${continued} times in a row; now it has ended.`)
        return undefined
      }
      asked.set(key, { step: api.step, continued: continued + 1 })
      return { continueWith: `A hook of the user wants you to go on${behind(objection)}` }
    }
  )

  yield* ctx.onSession((open) =>
    Effect.gen(function*() {
      const { sessionID } = open.identity
      mains.set(sessionID, open.main.id)
      yield* Effect.addFinalizer(() => Effect.sync(() => mains.delete(sessionID)))
      yield* calls.open(open, turnEnd.length > 0)
    })
  )
  if (beforeTool.length + afterTool.length > 0) {
    const limit = Duration.max(limitOf(beforeTool), limitOf(afterTool))
    yield* ctx.hooks(namespace, "tool", { beforeTool: before, afterTool: after }, { limit })
    yield* ctx.hooks(namespace, "tool", { beforeTool: gate }, { gate: true, limit })
  }
  if (turnEnd.length > 0) yield* ctx.hooks(namespace, "generation", { onYield }, { limit: limitOf(turnEnd) })
})

export default session
