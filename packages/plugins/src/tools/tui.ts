/**
 * How the built-in tools look in the terminal: what a call is about on its first row, and below it what matters of what it
 * did. Written against arguments and output as strict JSON of unknown shape: a model sends what it likes.
 */
import type { ConversationView } from "@bezel/core/harness"
import type { JsonValue } from "@bezel/core/json"
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
import { JobStatus } from "./contract.ts"

const argument = (call: ToolCallView, key: string): JsonValue => {
  const { args } = call
  return typeof args === "object" && args !== null && !Array.isArray(args) && Object.hasOwn(args, key)
    ? (args as { readonly [key: string]: JsonValue })[key] ?? null
    : null
}

const textArgument = (call: ToolCallView, key: string): string | null => {
  const value = argument(call, key)
  return typeof value === "string" ? value : null
}

const numberArgument = (call: ToolCallView, key: string): number | null => {
  const value = argument(call, key)
  return typeof value === "number" ? value : null
}

const muted = (words: string): Span => span(words, { color: "muted" })
const path = (call: ToolCallView): Span => span(textArgument(call, "path") ?? "", { color: "accent" })

const lineCount = (content: string): number => content === "" ? 0 : content.replace(/\n$/, "").split("\n").length

/** Nothing below while all went well; an error in full. */
const onlyErrors: ToolRenderer["body"] = (call, options) =>
  call.isError || options.expanded
    ? outputTail(call.output, options, call.isError ? { color: "error" } : { color: "muted" })
    : []

const linesIn = (content: string): string => {
  const count = lineCount(content)
  return count === 1 ? "1 line" : `${count} lines`
}

const counted = (call: ToolCallView): ReadonlyArray<Span> =>
  call.status === "completed" ? [muted(` (${linesIn(call.output)})`)] : []

/** Lines shown of each side of a change before it is cut. */
const shownLines = 12

const changeBlocks = (content: string, sign: "+" | "-", expanded: boolean): ReadonlyArray<Block> => {
  const lines = content.replace(/\n$/, "").split("\n")
  const shown = expanded ? lines : lines.slice(0, shownLines)
  const color = sign === "+" ? "added" : "removed"
  return [
    text(span(shown.map((line) => `${sign} ${line}`).join("\n"), { color }), { wrap: "clip", indent: 2 }),
    ...(shown.length < lines.length
      ? [text(muted(`… ${lines.length - shown.length} more lines`), { wrap: "clip", indent: 2 })]
      : [])
  ]
}

/** A unified diff without its file names. */
const diffBlocks = (diff: string, expanded: boolean): ReadonlyArray<Block> => {
  const lines = diff.replace(/\n$/, "").split("\n").filter((line) =>
    !line.startsWith("--- ") && !line.startsWith("+++ ")
  )
  const limit = expanded ? lines.length : 2 * shownLines
  const blocks: Array<Block> = lines.slice(0, limit).map((line) => {
    const color = line.startsWith("+") ? "added" : line.startsWith("-") ? "removed" : "muted"
    return text(span(line, { color }), { wrap: "clip", indent: 2 })
  })
  if (lines.length > limit) {
    blocks.push(text(muted(`… ${lines.length - limit} more lines`), { wrap: "clip", indent: 2 }))
  }
  return blocks
}

const diffOf = (call: ToolCallView): string | null => {
  const { details } = call
  const diff = typeof details === "object" && details !== null && "diff" in details ? details.diff : null
  return typeof diff === "string" && diff !== "" ? diff : null
}

/** Lines at the beginning and at the end that both texts share are not a change. */
const trimCommon = (before: string, after: string): { readonly removed: string; readonly added: string } => {
  const old = before.split("\n")
  const next = after.split("\n")
  let head = 0
  while (head < old.length && head < next.length && old[head] === next[head]) head += 1
  let tail = 0
  while (
    tail < old.length - head && tail < next.length - head && old[old.length - 1 - tail] === next[next.length - 1 - tail]
  ) tail += 1
  return {
    removed: old.slice(head, old.length - tail).join("\n"),
    added: next.slice(head, next.length - tail).join("\n")
  }
}

const failed = (call: ToolCallView): boolean => call.isError || call.status === "aborted"

export const toolRenderers: { readonly [name: string]: ToolRenderer } = {
  read: {
    title: (call) => {
      const offset = numberArgument(call, "offset")
      const limit = numberArgument(call, "limit")
      const range = offset === null && limit === null
        ? ""
        : ` from line ${offset ?? 1}${limit === null ? "" : `, ${limit} lines`}`
      return [path(call), muted(range), ...counted(call)]
    },
    body: onlyErrors
  },
  list: {
    title: (call) => [span(textArgument(call, "path") ?? ".", { color: "accent" }), ...counted(call)],
    body: onlyErrors
  },
  search: {
    title: (call) => {
      const place = [textArgument(call, "path"), textArgument(call, "glob")].filter((word) => word !== null).join(" ")
      return [
        span(textArgument(call, "pattern") ?? "", { color: "accent" }),
        muted(place === "" ? "" : ` in ${place}`),
        ...counted(call)
      ]
    },
    body: onlyErrors
  },
  write: {
    title: (call) => {
      const content = textArgument(call, "content")
      return [path(call), muted(content === null ? "" : ` (${linesIn(content)})`)]
    },
    body: (call, options) => {
      const content = textArgument(call, "content")
      const diff = diffOf(call)
      if (diff !== null && !failed(call)) return diffBlocks(diff, options.expanded)
      return failed(call) || content === null
        ? outputTail(call.output, options, { color: "error" })
        : changeBlocks(content, "+", options.expanded)
    }
  },
  edit: {
    title: (call) => {
      const edits = argument(call, "edits")
      const count = Array.isArray(edits) && edits.length > 1 ? ` (${edits.length} edits)` : ""
      return [path(call), muted(argument(call, "all") === true ? " everywhere" : count)]
    },
    body: (call, options) => {
      const before = textArgument(call, "oldText")
      const after = textArgument(call, "newText")
      const diff = diffOf(call)
      if (diff !== null && !failed(call)) return diffBlocks(diff, options.expanded)
      if (failed(call) || before === null || after === null) return outputTail(call.output, options, { color: "error" })
      const { added, removed } = trimCommon(before, after)
      return [
        ...(removed === "" ? [] : changeBlocks(removed, "-", options.expanded)),
        ...(added === "" ? [] : changeBlocks(added, "+", options.expanded))
      ]
    }
  },
  apply_patch: {
    title: (call) => {
      const patch = textArgument(call, "patch") ?? call.argsText
      const files = [...patch.matchAll(/\*\*\* (?:Add|Update|Delete) File: (.+)/g)].map((match) => match[1] ?? "")
      return [
        span(files.slice(0, 3).join(", "), { color: "accent" }),
        muted(files.length > 3 ? ` and ${files.length - 3} more` : "")
      ]
    },
    body: (call, options) => {
      const diff = diffOf(call)
      if (diff !== null && !failed(call)) return diffBlocks(diff, options.expanded)
      return outputTail(call.output, options, failed(call) ? { color: "error" } : {})
    }
  },
  job_output: { title: (call) => [muted(textArgument(call, "job") ?? "")] },
  job_stop: { title: (call) => [muted(textArgument(call, "job") ?? "")] },
  bash: {
    title: (call) => {
      const description = textArgument(call, "description")
      const timeout = numberArgument(call, "timeout")
      return [
        span(textArgument(call, "command") ?? call.argsText, { color: "code" }),
        muted(argument(call, "background") === true ? "  in the background" : ""),
        muted(`${description === null ? "" : `  # ${description}`}${timeout === null ? "" : `  (timeout ${timeout})`}`)
      ]
    }
  }
}

/** The background jobs of a conversation that run, one line each with the end of what they print. */
export const jobBlocks = (view: ConversationView | undefined): ReadonlyArray<Block> =>
  Object.entries(view?.tasks ?? {}).flatMap(([id, { kind, status }]) => {
    const job = kind === "bezel.job" ? Schema.decodeUnknownOption(JobStatus)(status) : Option.none()
    if (Option.isNone(job)) return []
    const { command, output } = job.value
    const last = output.trimEnd().split("\n").at(-1) ?? ""
    return [
      text([
        muted(`${id} `),
        span((command.at(-1) ?? "").replaceAll(/\s+/g, " "), { color: "code" }),
        muted(last === "" ? "" : `  ${last}`)
      ], { wrap: "clip", marker: span("⚙ ", { color: "accent" }) })
    ]
  })

/** The terminal facet. */
export const tui = Effect.fn("tools/tui")(function*(ctx: TuiContext) {
  for (const [name, renderer] of Object.entries(toolRenderers)) yield* ctx.toolRenderers.register(name, renderer)
  const current = yield* currentConversation(ctx)
  yield* ctx.slots.add(chatSlots.aboveEditor, { order: 50, render: () => jobBlocks(current()?.view.value) })
})
