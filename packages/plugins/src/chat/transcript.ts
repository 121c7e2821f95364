/**
 * The transcript: a conversation's view as blocks.
 *
 * The answer that streams and the entry that it becomes go through the same functions, so nothing jumps when a turn closes.
 * Blocks of entries that did not change are the same objects at the next update; that is what keeps a long session quick.
 */
import type { ConversationView, ViewEntry, ViewMessagePart, ViewTool } from "@bezel/core/harness"
import type { JsonValue } from "@bezel/core/json"
import type { AssistantMessage, FilePart, Message, TextPart, ToolResultPart } from "@bezel/core/model"
import {
  type Block,
  gap,
  group,
  type GroupBlock,
  image,
  markdown,
  span,
  text,
  type ToolCallView,
  type TuiContext
} from "@bezel/tui"

/** Kinds of entries that have a shape of their own here; every other kind is shown by its renderer or its messages. */
const kinds = {
  usage: "bezel.usage",
  failure: "bezel.failure",
  notice: "bezel.notice",
  toolResult: "bezel.tool_result"
} as const

interface TranscriptOptions {
  /** Tool cards show everything. */
  readonly expanded: boolean
}

export interface Transcript {
  /** The blocks of a view; identical ones for what did not change since the last call. */
  readonly blocks: (view: ConversationView, options: TranscriptOptions) => ReadonlyArray<Block>
}

interface Result {
  readonly entry: ViewEntry
  readonly part: ToolResultPart
}

type Part =
  | { readonly type: "text" | "reasoning"; readonly text: string; readonly identity: object }
  | { readonly type: "tool"; readonly call: ToolCallView; readonly result?: ToolResultPart | undefined }
  | { readonly type: "file"; readonly file: FilePart }

type Renderers = Pick<TuiContext, "toolRenderers" | "entryRenderers">

/** The text of what may have files, which are shown below it. */
const textOf = (parts: ReadonlyArray<TextPart | FilePart>): string =>
  parts.flatMap((part) => part.type === "text" ? [part.text] : []).join("\n")

const fileBlocks = (parts: ReadonlyArray<TextPart | FilePart>): ReadonlyArray<Block> =>
  parts.flatMap((part) => part.type === "file" ? [image(part, { indent: 2 })] : [])

const resultText = (part: ToolResultPart): string => {
  if (part.modelOutput !== undefined) return textOf(part.modelOutput)
  return typeof part.result === "string" ? part.result : JSON.stringify(part.result)
}

const field = (value: JsonValue, key: string): JsonValue =>
  typeof value === "object" && value !== null && !Array.isArray(value) && Object.hasOwn(value, key)
    ? (value as { readonly [key: string]: JsonValue })[key] ?? null
    : null

/** Calls by id. */
type Calls = ReadonlyMap<string, { readonly result: Result | null; readonly isNewest: boolean }>

const noCalls: Calls = new Map()

/** A call from whatever is known of it: the part of the answer, the running tool, the result. */
const callView = (
  id: string,
  name: string,
  args: JsonValue,
  argsText: string,
  tool: ViewTool | undefined,
  result: Result | undefined,
  live: boolean
): ToolCallView => {
  const isError = result === undefined ? tool?.status === "failed" : result.part.isFailure
  const status = result !== undefined
    ? field(result.entry.data, "code") === "aborted" ? "aborted" : isError ? "failed" : "completed"
    : tool?.status ?? (live ? "writing" : "aborted")
  return {
    callID: id,
    name,
    args: tool?.args ?? args,
    argsText,
    status,
    output: result === undefined ? tool?.output ?? "" : resultText(result.part),
    progress: tool?.progress ?? null,
    details: result === undefined
      ? tool?.details ?? null
      : field(result.entry.data, "details") ?? tool?.details ?? null,
    isError
  }
}

const userBlocks = (content: ReadonlyArray<TextPart | FilePart>): ReadonlyArray<Block> => [
  gap,
  text(span(textOf(content), { bold: true }), { marker: span("› ", { color: "user", bold: true }) }),
  ...fileBlocks(content)
]

/** Why inputs stayed unanswered, in words. */
const failureBlocks = (data: JsonValue): ReadonlyArray<Block> => {
  const message = field(field(data, "error"), "message")
  const reason = field(data, "reason")
  if (reason === "aborted") {
    return [gap, text(span("Interrupted.", { color: "warning" }), { marker: span("⊘ ", { color: "warning" }) })]
  }
  const words = typeof message === "string"
    ? message
    : typeof reason === "string"
    ? `No answer: ${reason}.`
    : "No answer."
  return [gap, text(span(words, { color: "error" }), { marker: span("✗ ", { color: "error" }) })]
}

/** A part of an answer that never finished. */
const partialPart = (part: JsonValue): ReadonlyArray<Part> => {
  const content = field(part, "text")
  if (typeof content !== "string") return []
  const type = field(part, "type")
  if (type === "text" || type === "reasoning") return [{ type, text: content, identity: Object(part) }]
  const id = field(part, "id")
  const name = field(part, "name")
  if (type !== "tool-call" || typeof id !== "string" || typeof name !== "string") return []
  return [{ type: "tool", call: callView(id, name, null, content, undefined, undefined, false) }]
}

export const makeTranscript = (context: Renderers): Transcript => {
  /** What the blocks of an entry were made from, and the blocks. */
  const known = new WeakMap<ViewEntry, { readonly from: ReadonlyArray<unknown>; readonly block: GroupBlock }>()
  /** Markdown that streams keeps its parser by the place it stands in. */
  let identities: Array<object> = []
  let turnTask: string | null = null
  let settled: {
    readonly from: ReadonlyArray<unknown>
    readonly blocks: ReadonlyArray<Block>
    readonly group: GroupBlock
  } = {
    from: [],
    blocks: [],
    group: group([])
  }

  const same = (a: ReadonlyArray<unknown>, b: ReadonlyArray<unknown>): boolean =>
    a.length === b.length && a.every((value, index) => value === b[index])

  const partBlocks = (parts: ReadonlyArray<Part>, options: TranscriptOptions): ReadonlyArray<Block> => {
    const blocks: Array<Block> = []
    let previous: Part["type"] | null = null
    for (const part of parts) {
      if (part.type === "tool") {
        if (previous !== "tool") blocks.push(gap)
        blocks.push(...context.toolRenderers.render(part.call, { expanded: options.expanded }))
        blocks.push(...fileBlocks(part.result?.modelOutput ?? []))
      } else if (part.type === "file") {
        blocks.push(gap, image(part.file))
      } else {
        if (part.text.trim() === "") continue
        blocks.push(gap)
        blocks.push(
          part.type === "text"
            ? markdown(part.text.trim(), { identity: part.identity })
            : text(span(part.text.trim(), { dim: true, italic: true }), { marker: span("┊ ", { color: "muted" }) })
        )
      }
      previous = part.type
    }
    return blocks
  }

  const assistantParts = (
    message: AssistantMessage,
    tools: ReadonlyMap<string, ViewTool>,
    results: ReadonlyMap<string, Result>
  ): ReadonlyArray<Part> =>
    message.content.flatMap((part): ReadonlyArray<Part> => {
      switch (part.type) {
        case "text":
        case "reasoning":
          return [{ type: part.type, text: part.text, identity: part }]
        case "file":
          return [{ type: "file", file: part }]
        case "tool-call":
          return [{
            type: "tool",
            result: results.get(part.id)?.part,
            call: callView(
              part.id,
              part.name,
              part.params,
              JSON.stringify(part.params),
              tools.get(part.id),
              results.get(part.id),
              false
            )
          }]
      }
    })

  const messageBlocks = (
    message: Message,
    tools: ReadonlyMap<string, ViewTool>,
    results: ReadonlyMap<string, Result>,
    options: TranscriptOptions
  ): ReadonlyArray<Block> => {
    switch (message.role) {
      case "user":
        return userBlocks(message.content)
      case "assistant":
        return partBlocks(assistantParts(message, tools, results), options)
      case "system":
        return []
      case "tool":
        return []
    }
  }

  const entryBlocks = (
    entry: ViewEntry,
    tools: ReadonlyMap<string, ViewTool>,
    results: ReadonlyMap<string, Result>,
    options: TranscriptOptions
  ): ReadonlyArray<Block> => {
    const own = context.entryRenderers.render(entry)
    if (own !== null) return own
    switch (entry.kind) {
      case kinds.usage:
      case kinds.toolResult:
        return []
      case kinds.failure:
        return failureBlocks(entry.data)
      case kinds.notice:
        return [
          gap,
          text(
            span(textOf((entry.model ?? []).flatMap((message) => message.role === "user" ? message.content : [])), {
              color: "muted"
            }),
            { marker: span("· ", { color: "muted" }) }
          )
        ]
    }
    if (entry.model === null) {
      // A display-only answer: what a failed or aborted request had said.
      const parts = field(entry.data, "parts")
      return Array.isArray(parts) ? partBlocks(parts.flatMap(partialPart), options) : []
    }
    return entry.model.flatMap((message) => messageBlocks(message, tools, results, options))
  }

  const callsOf = (entry: ViewEntry): ReadonlyArray<string> =>
    (entry.model ?? []).flatMap((message) =>
      message.role === "assistant" ? message.content.flatMap((part) => part.type === "tool-call" ? [part.id] : []) : []
    )

  /**
   * The calls of each entry with their results. Providers may use an id again in a later answer, so a result is of the newest
   * call before it, and what runs now is of the newest of all.
   */
  const findResults = (entries: ReadonlyArray<ViewEntry>): ReadonlyMap<ViewEntry, Calls> => {
    const found = new Map<ViewEntry, Calls>()
    const next = new Map<string, Result>()
    const seen = new Set<string>()
    for (const entry of entries.toReversed()) {
      for (const message of entry.model ?? []) {
        if (message.role === "tool") { for (const part of message.content) next.set(part.id, { entry, part }) }
      }
      const ids = callsOf(entry)
      if (ids.length === 0) continue
      found.set(entry, new Map(ids.map((id) => [id, { result: next.get(id) ?? null, isNewest: !seen.has(id) }])))
      for (const id of ids) {
        next.delete(id)
        seen.add(id)
      }
    }
    return found
  }

  const settledBlock = (view: ConversationView, options: TranscriptOptions): GroupBlock => {
    const source: ReadonlyArray<unknown> = [view.entries, options.expanded, ...(view.turn?.tools ?? [])]
    if (same(settled.from, source)) return settled.group
    const tools = new Map((view.turn?.tools ?? []).map((tool) => [tool.callId, tool]))
    const found = findResults(view.entries)
    const blocks = view.entries.map((entry) => {
      const calls = found.get(entry) ?? noCalls
      const own = new Map([...calls].flatMap(([id, { isNewest }]) => {
        const tool = isNewest ? tools.get(id) : undefined
        return tool === undefined ? [] : [[id, tool] as const]
      }))
      const results = new Map([...calls].flatMap(([id, { result }]) => result === null ? [] : [[id, result] as const]))
      const from: ReadonlyArray<unknown> = [
        options.expanded,
        ...[...calls.keys()].flatMap((id) => [own.get(id), results.get(id)?.entry])
      ]
      const last = known.get(entry)
      if (last !== undefined && same(last.from, from)) return last.block
      const block = group(entryBlocks(entry, own, results, options))
      known.set(entry, { from, block })
      return block
    })
    settled = same(settled.blocks, blocks)
      ? { ...settled, from: source }
      : { from: source, blocks, group: group(blocks) }
    return settled.group
  }

  const liveBlocks = (view: ConversationView, options: TranscriptOptions): ReadonlyArray<Block> => {
    const parts = view.turn?.message?.parts
    if (parts === undefined) return []
    const task = view.turn?.generation?.task ?? null
    if (task !== turnTask) {
      turnTask = task
      identities = []
    }
    return partBlocks(
      parts.map((part: ViewMessagePart, index): Part =>
        part.type === "tool-call"
          ? { type: "tool", call: callView(part.id, part.name, null, part.text, undefined, undefined, true) }
          : { type: part.type, text: part.text, identity: identities[index] ??= {} }
      ),
      options
    )
  }

  return {
    blocks: (view, options) => {
      const live = liveBlocks(view, options)
      // One block, as the entry will be that it becomes.
      return live.length === 0 ? [settledBlock(view, options)] : [settledBlock(view, options), group(live)]
    }
  }
}
