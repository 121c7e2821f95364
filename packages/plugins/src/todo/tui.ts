/**
 * The terminal facet of the todo list: what is left of it stands above the editor, and a call shows the list that it wrote.
 */
import { type Block, span, text, type ToolRenderer, type TuiContext } from "@bezel/tui"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { chatSlots } from "../chat/contract.ts"
import { currentConversation } from "../chat/current.ts"
import { type TodoItem, TodoList } from "./contract.ts"

/** Rows above the editor, at most. */
const shownItems = 5

const decode = Schema.decodeUnknownOption(TodoList)

const itemsOf = (value: unknown): ReadonlyArray<TodoItem> => {
  const list = decode(value)
  return Option.isSome(list) ? list.value.items : []
}

const itemBlock = ({ status, text: words }: TodoItem): Block => {
  const isDone = status === "completed" || status === "cancelled"
  return text(span(words, { color: isDone ? "muted" : status === "in_progress" ? "accent" : "text" }), {
    wrap: "clip",
    indent: 2,
    marker: span(
      status === "completed" ? "✓ " : status === "cancelled" ? "✗ " : status === "in_progress" ? "▶ " : "○ ",
      {
        color: status === "completed" ? "success" : "muted"
      }
    )
  })
}

/** The items from the first that is open on; nothing where all is done. */
export const openBlocks = (value: unknown): ReadonlyArray<Block> => {
  const items = itemsOf(value)
  const first = items.findIndex(({ status }) => status === "pending" || status === "in_progress")
  if (first === -1) return []
  const shown = items.slice(first, first + shownItems)
  const more = items.length - first - shown.length
  const done = items.filter(({ status }) => status === "completed").length
  return [
    text(span(`Todo ${done}/${items.length}`, { color: "muted" }), { wrap: "clip" }),
    ...shown.map(itemBlock),
    ...(more > 0 ? [text(span(`  ${more} more`, { color: "muted" }), { wrap: "clip" })] : [])
  ]
}

/** How a call shows. */
export const todoRenderer: ToolRenderer = {
  title: ({ args }) => {
    const items: unknown = typeof args === "object" && args !== null ? Reflect.get(args, "items") : undefined
    return [span(Array.isArray(items) ? `${items.length} items` : "", { color: "muted" })]
  },
  body: (call, { expanded }) => {
    if (call.isError) return [text(span(call.output, { color: "error" }), { indent: 2 })]
    const items = itemsOf(call.details)
    const shown = expanded ? items : items.slice(0, 2 * shownItems)
    return [
      ...shown.map(itemBlock),
      ...(shown.length < items.length
        ? [text(span(`  ${items.length - shown.length} more`, { color: "muted" }), { wrap: "clip" })]
        : [])
    ]
  }
}

/** The terminal facet. */
export const tui = Effect.fn("todo/tui")(function*(ctx: TuiContext) {
  yield* ctx.toolRenderers.register("todo", todoRenderer)
  const current = yield* currentConversation(ctx)
  yield* ctx.slots.add(chatSlots.aboveEditor, {
    order: 40,
    render: () => openBlocks(current()?.view.value?.plugins["todo"])
  })
})
