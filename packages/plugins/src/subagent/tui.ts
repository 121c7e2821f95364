/**
 * A sub-agent's call in the terminal: what it was asked and what it does, and, once it has answered, what that took. Written
 * against strict JSON of unknown shape: a model sends what it likes.
 */
import type { ConversationView } from "@bezel/core/harness"
import {
  type Block,
  outputTail,
  type Span,
  span,
  text,
  type ToolCallView,
  type ToolRenderer,
  type TuiContext
} from "@bezel/tui"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { chatSlots } from "../chat/contract.ts"
import { currentConversation } from "../chat/current.ts"
import { backgroundKindName, SubagentDetails, SubagentProgress, SubagentStatus } from "./contract.ts"

const muted = (words: string): Span => span(words, { color: "muted" })

const textArgument = (call: ToolCallView, key: string): string | null => {
  const { args } = call
  if (typeof args !== "object" || args === null || !Object.hasOwn(args, key)) return null
  const value: unknown = Reflect.get(args, key)
  return typeof value === "string" ? value : null
}

const counted = (count: number, thing: string): string =>
  `${count.toLocaleString("en-US")} ${thing}${count === 1 ? "" : "s"}`

const tookLine = ({ calls, usage }: SubagentDetails): string => {
  const tokens = usage.input + usage.output
  return [
    counted(calls, "call"),
    ...(tokens === 0 ? [] : [counted(tokens, "token")]),
    ...(usage.cost === 0 ? [] : [`$${Number(usage.cost.toPrecision(2))}`])
  ].join(" · ")
}

/** How the call shows. */
export const subagentRenderer: ToolRenderer = {
  title: (call) => {
    const agent = textArgument(call, "agent")
    const description = textArgument(call, "description")
    return [
      ...(agent === null ? [] : [span(agent, { color: "accent" }), " "]),
      description === null ? muted(call.argsText) : description
    ]
  },
  body: (call, options): ReadonlyArray<Block> => {
    const details = Schema.decodeUnknownOption(SubagentDetails)(call.details)
    if (Option.isSome(details)) {
      if (details.value.status === "background") return [text(muted("in the background"), { indent: 2 })]
      return [
        text(muted(tookLine(details.value)), { wrap: "clip", indent: 2 }),
        ...(call.isError
          ? outputTail(call.output, options, { color: "error" })
          : options.expanded
          ? outputTail(call.output, options)
          : [])
      ]
    }
    const progress = Schema.decodeUnknownOption(SubagentProgress)(call.progress)
    const isOver = call.isError || call.status === "aborted"
    if (Option.isSome(progress) && !isOver) {
      const { activity, calls } = progress.value
      return [
        text([activity, ...(calls === 0 ? [] : [muted(`  (${counted(calls, "call")} so far)`)])], {
          wrap: "clip",
          indent: 2
        })
      ]
    }
    if (isOver) return outputTail(call.output, options, { color: "error" })
    const prompt = options.expanded ? textArgument(call, "prompt") : null
    return prompt === null ? [] : [text(muted(prompt), { indent: 2 })]
  }
}

/** The sub-agents of a conversation that work in the background, a line each. */
export const backgroundBlocks = (view: ConversationView | undefined): ReadonlyArray<Block> =>
  Object.values(view?.tasks ?? {}).flatMap(({ kind, status }) => {
    const known = kind === backgroundKindName ? Schema.decodeUnknownOption(SubagentStatus)(status) : Option.none()
    if (Option.isNone(known)) return []
    const { agent, description } = known.value
    return [text([muted(`${agent} `), description], { wrap: "clip", marker: span("⚙ ", { color: "accent" }) })]
  })

/** The terminal facet. */
export const tui = Effect.fn("subagent/tui")(function*(ctx: TuiContext) {
  yield* ctx.toolRenderers.register("subagent", subagentRenderer)
  const current = yield* currentConversation(ctx)
  yield* ctx.slots.add(chatSlots.aboveEditor, { order: 45, render: () => backgroundBlocks(current()?.view.value) })
})
