/**
 * A sub-agent's call in the terminal: what it was asked and what it does, and, once it has answered, what that took; and
 * `/subagents`, which shows the session of one, and `/back`, which leads out of it. Written against strict JSON of unknown
 * shape: a model sends what it likes.
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

interface KnownSubagent {
  readonly sessionID: string
  readonly name: string
  readonly state: string
}

/** The sub-agents that a conversation knows of, each once, the newest first. */
export const subagentsOf = (
  view: Pick<ConversationView, "entries" | "tasks" | "turn"> | undefined
): ReadonlyArray<KnownSubagent> => {
  const found = new Map<string, KnownSubagent>()
  const add = (known: KnownSubagent) => {
    found.delete(known.sessionID)
    found.set(known.sessionID, known)
  }
  const named = (agent: string, description: string) => `${agent} ${description}`.trim().replace(/\s+/g, " ")
  for (const { data } of view?.entries ?? []) {
    const details: unknown = typeof data === "object" && data !== null ? Reflect.get(data, "details") : undefined
    const ended = Option.getOrNull(Schema.decodeUnknownOption(SubagentDetails)(details))
    if (ended === null) continue
    const { agent, description, sessionID, status } = ended
    add({ sessionID, name: named(agent, description), state: status === "completed" ? "has answered" : status })
  }
  for (const { kind, status } of Object.values(view?.tasks ?? {})) {
    const known = kind === backgroundKindName
      ? Option.getOrNull(Schema.decodeUnknownOption(SubagentStatus)(status))
      : null
    if (known === null) continue
    add({ sessionID: known.sessionID, name: named(known.agent, known.description), state: "in the background" })
  }
  for (const { args, progress } of view?.turn?.tools ?? []) {
    const known = Option.getOrNull(Schema.decodeUnknownOption(SubagentProgress)(progress))
    if (known === null) continue
    const description: unknown = typeof args === "object" && args !== null ? Reflect.get(args, "description") : ""
    const name = typeof description === "string" ? named("", description) : ""
    add({ sessionID: known.sessionID, name, state: known.activity })
  }
  return [...found.values()].toReversed()
}

/** The terminal facet. */
export const tui = Effect.fn("subagent/tui")(function*(ctx: TuiContext) {
  yield* ctx.toolRenderers.register("subagent", subagentRenderer)
  const current = yield* currentConversation(ctx)
  yield* ctx.slots.add(chatSlots.aboveEditor, { order: 45, render: () => backgroundBlocks(current()?.view.value) })

  /** The sessions out of which those of sub-agents were opened, each in the one before. */
  let cameFrom: ReadonlyArray<{ readonly from: string; readonly to: string }> = []
  yield* ctx.slots.add(chatSlots.aboveEditor, {
    order: 46,
    render: () => {
      const here = current()?.view.value?.conversation.sessionID
      return cameFrom.some(({ to }) => to === here)
        ? [
          text(span("This is the session of a sub-agent; /back leads to the one that you were in.", { color: "muted" }))
        ]
        : []
    }
  })
  yield* ctx.commands.register("subagent.show", {
    slash: "subagents",
    description: "Show what a sub-agent of this session does, or has done",
    run: () =>
      Effect.gen(function*() {
        const here = yield* ctx.session.current
        const known = subagentsOf(current()?.view.value)
        if (here === null || known.length === 0) return yield* ctx.ui.notify("This session has no sub-agents.")
        const sessionID = yield* ctx.ui.select({
          title: "Sub-agents",
          search: true,
          options: known.map(({ name, sessionID: value, state }) => ({ value, label: name, description: state }))
        })
        if (sessionID === null) return
        yield* ctx.session.select(sessionID)
        cameFrom = [...cameFrom, { from: here.sessionID, to: sessionID }]
      })
  })
  yield* ctx.commands.register("subagent.back", {
    slash: "back",
    description: "Go back to the session whose sub-agent is shown",
    run: () =>
      Effect.gen(function*() {
        const here = (yield* ctx.session.current)?.sessionID
        const last = cameFrom.findLast(({ to }) => to === here)
        if (last === undefined) return yield* ctx.ui.notify("This session was not opened as a sub-agent's.")
        cameFrom = cameFrom.slice(0, cameFrom.lastIndexOf(last))
        yield* ctx.session.select(last.from)
      })
  })
})
