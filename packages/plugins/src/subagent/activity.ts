/**
 * What a sub-agent does, read from its conversation: on one line while it works, and in sums when it has ended.
 */
import type { Conversation, ConversationView, HarnessError, ViewTool } from "@bezel/core/harness"
import { apply, type JsonValue } from "@bezel/core/json"
import { entryKinds } from "@bezel/core/turn"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { SubagentDetails, SubagentProgress, type SubagentUsage } from "./contract.ts"

/** Characters of an activity that are shown. */
const shown = 160

const oneLine = (text: string): string => {
  const points = [...text.slice(0, shown * 8).replace(/\s+/g, " ").trim()]
  return points.length > shown ? `${points.slice(0, shown - 1).join("")}…` : points.join("")
}

const telling = ["command", "path", "pattern", "url", "question", "description"]

/** A call by its name and its most telling argument; of a sub-agent's sub-agent, what that one does. */
const callLine = (tool: ViewTool): string => {
  const below = Schema.decodeUnknownOption(SubagentProgress)(tool.progress)
  const args = typeof tool.args === "object" && tool.args !== null ? Object.entries(tool.args) : []
  const texts = args.filter((argument): argument is [string, string] => typeof argument[1] === "string")
  const named = telling.flatMap((name) => texts.filter(([key]) => key === name))[0] ?? texts[0]
  const line = `${tool.name} ${named?.[1] ?? ""}`
  return Option.isSome(below) ? `${line}: ${below.value.activity}` : line
}

/** What a conversation does now, on one line. */
export const activityOf = (view: ConversationView): string => {
  const { turn } = view
  if (turn === null) return "starting"
  const open = turn.tools.filter((tool) => tool.entry === null)
  const waiting = open.find((tool) => tool.status === "waiting")
  if (waiting !== undefined) return oneLine(`waits for an answer: ${callLine(waiting)}`)
  const running = open.find((tool) => tool.status === "running") ?? open[0]
  if (running !== undefined) return oneLine(callLine(running))
  if (turn.generation?.stage === "retrying") {
    return oneLine(`tries again: ${turn.generation.error?.message ?? "a request failed"}`)
  }
  return turn.message?.parts.at(-1)?.type === "text" ? "writing" : "thinking"
}

const isResult = ({ kind }: { readonly kind: string }): boolean => kind === entryKinds.toolResult

/**
 * Shows what a conversation does, each time that it does something else, until interrupted. Where a watch ends, because its
 * reader was too slow or the session was opened anew, it is taken up again.
 */
export const follow = (
  conversation: () => Conversation | undefined,
  show: (now: { readonly activity: string; readonly calls: number }) => Effect.Effect<void>
): Effect.Effect<never> => {
  const once = Effect.scoped(Effect.gen(function*() {
    const followed = conversation()
    if (followed === undefined) return
    const watch = yield* followed.watch
    let { view } = watch
    let entries: ConversationView["entries"] = []
    let calls = 0
    let last = ""
    const look = Effect.suspend(() => {
      if (view.entries !== entries) {
        entries = view.entries
        calls = entries.filter(isResult).length
      }
      const activity = activityOf(view)
      if (`${calls} ${activity}` === last) return Effect.void
      last = `${calls} ${activity}`
      return show({ activity, calls })
    })
    yield* look
    yield* Stream.runForEach(watch.envelopes, (envelope) => {
      view = apply(view, envelope.operations)
      return look
    })
  }))
  return Effect.forever(Effect.andThen(Effect.ignoreCause(once), Effect.sleep("500 millis")))
}

const noUsage: SubagentUsage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, cost: 0 }

export const addUsage = (left: SubagentUsage, right: SubagentUsage): SubagentUsage => ({
  input: left.input + right.input,
  output: left.output + right.output,
  cacheRead: left.cacheRead + right.cacheRead,
  cacheWrite: left.cacheWrite + right.cacheWrite,
  cost: left.cost + right.cost
})

const Result = Schema.Struct({
  name: Schema.String,
  details: Schema.Json,
  code: Schema.optionalKey(Schema.String)
})

/** What a sub-agent has done, that of its own sub-agents included. */
export interface Sums {
  readonly calls: number
  readonly usage: SubagentUsage
  /** Something was denied because nobody was there to be asked. */
  readonly unattended: boolean
}

const detailsOf = (name: string, details: JsonValue): Option.Option<SubagentDetails> =>
  name === "subagent" ? Schema.decodeUnknownOption(SubagentDetails)(details) : Option.none()

/** Adds up a conversation, from its own totals and the results of its calls. */
export const sumsOf = (conversation: Conversation): Effect.Effect<Sums, HarnessError> =>
  Effect.gen(function*() {
    const { view } = yield* conversation.snapshot
    const entries = yield* conversation.entries({ kind: entryKinds.toolResult })
    const { cacheRead, cacheWrite, cost, input, output } = view.usage
    let usage: SubagentUsage = { input, output, cacheRead, cacheWrite, cost }
    let unattended = false
    for (const { data } of entries) {
      const result = Schema.decodeUnknownOption(Result)(data)
      if (Option.isNone(result)) continue
      unattended ||= result.value.code === "unattended"
      usage = addUsage(
        usage,
        Option.match(detailsOf(result.value.name, result.value.details), {
          onNone: () => noUsage,
          onSome: (details) => details.usage
        })
      )
    }
    return { calls: entries.length, usage, unattended }
  })
