/** The todo list as others see it: what a conversation's model plans to do, and how far it is. */
import * as Schema from "effect/Schema"

export const TodoStatus = Schema.Literals(["pending", "in_progress", "completed", "cancelled"])

export type TodoItem = typeof TodoItem.Type
export const TodoItem = Schema.Struct({ text: Schema.String, status: TodoStatus })

/** What the view's `plugins.todo` holds, and the `details` of a result of the tool. */
export type TodoList = typeof TodoList.Type
export const TodoList = Schema.Struct({ items: Schema.Array(TodoItem) })
