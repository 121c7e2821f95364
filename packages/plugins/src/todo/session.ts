/**
 * The session facet of the todo list: a tool by which the model keeps a list of what is to be done, for itself and for the
 * person who watches.
 *
 * The list is state of the conversation: it goes back with it, a fork has it as it was there, and clients see it in the view.
 * What is left of it is told to the model again after its context was summarized, for then the calls that made it are gone.
 */
import type { SessionContext } from "@bezel/core/host"
import type { JsonValue } from "@bezel/core/json"
import type { ModelRequest } from "@bezel/core/model"
import { tool, toolResult } from "@bezel/core/tool"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { type TodoItem, TodoList, TodoStatus } from "./contract.ts"

type Context = Pick<SessionContext, "namespace" | "hooks" | "tool">

const maxItems = 50
const maxText = 500

const Input = Schema.Struct({
  items: Schema.Array(
    Schema.Struct({
      text: Schema.NonEmptyString.check(Schema.isMaxLength(maxText)).annotate({
        description: "What is to be done, in a few words."
      }),
      status: TodoStatus
    })
  ).check(Schema.isMaxLength(maxItems)).annotate({
    description: "The whole list in order; it replaces the one before. An empty one clears it."
  })
})

const description =
  "Keeps a list of what is to be done, which the user sees. Use it for work of three steps or more: write the list first, mark " +
  "an item in_progress when you begin it and completed as soon as it is done, one in progress at a time. Not for a single step."

const marks = { pending: "[ ]", in_progress: "[~]", completed: "[x]", cancelled: "[-]" } as const

/** The list as the model reads it. */
export const todoText = (items: ReadonlyArray<TodoItem>): string =>
  items.map(({ status, text }) => `${marks[status]} ${text}`).join("\n")

const listOf = (state: JsonValue): ReadonlyArray<TodoItem> => {
  const list = Schema.decodeUnknownOption(TodoList)(state)
  return Option.isSome(list) ? list.value.items : []
}

const isOpen = ({ status }: TodoItem): boolean => status === "pending" || status === "in_progress"

const hasTodoCall = ({ messages }: ModelRequest): boolean =>
  messages.some((message) =>
    message.role === "assistant" && message.content.some((part) => part.type === "tool-call" && part.name === "todo")
  )

const withList = (request: ModelRequest, items: ReadonlyArray<TodoItem>): ModelRequest => {
  const told = `Your todo list (see the todo tool):\n${todoText(items)}`
  const [first, ...others] = request.messages
  return {
    ...request,
    messages: first?.role === "system"
      ? [{ ...first, content: `${first.content}\n\n${told}` }, ...others]
      : [{ role: "system", content: told }, ...request.messages]
  }
}

const oneLine = (text: string): string => text.replace(/\s+/g, " ").trim()

/** The facet for session hosts. */
export const session = Effect.fn("todo/session")(function*(ctx: Context) {
  const namespace = yield* ctx.namespace("todo", { rewindable: { items: [] } }, {
    view: (state) => {
      const items = listOf(state)
      return items.length === 0 ? null : { items: items.map(({ status, text }) => ({ text, status })) }
    }
  })

  // Told only while no call that wrote it is in the context: a system message that changes with each call would cost the
  // provider's cache of all that follows it.
  yield* ctx.hooks(namespace, "generation", {
    beforeRequest: (request, api) =>
      Effect.map(namespace.get(`${api.sessionID}/${api.conversationID}`), (state) => {
        const items = listOf(state)
        return items.some(isOpen) && !hasTodoCall(request) ? { request: withList(request, items) } : undefined
      })
  })

  yield* ctx.tool.transform((draft) =>
    draft.set(
      "todo",
      tool({
        description,
        input: Input,
        replay: "safe",
        executionMode: "sequential",
        permission: () => ({ access: "todo", subjects: [] }),
        execute: Effect.fn("todo.write")(function*(input, call) {
          const items = input.items.map(({ status, text }) => ({ text: oneLine(text), status }))
          yield* namespace.update(`${call.sessionID}/${call.conversationID}`, (draft) => {
            draft.items = items
          }, { name: "changed", data: { open: items.filter(isOpen).length, all: items.length } })
          const open = items.filter(isOpen).length
          return toolResult({
            content: items.length === 0
              ? "The list is empty."
              : `${todoText(items)}\n(${open === 0 ? "all done" : `${open} of ${items.length} open`})`,
            details: { items } satisfies TodoList
          })
        })
      })
    )
  )
})
