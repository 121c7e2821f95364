/**
 * A plugin as somebody outside of this repository writes it: one file, copied into `.bezel/plugins/` of a project or named in
 * `plugins` of `bezel.jsonc`. It gives the model a tool that looks up tickets in `tickets.json`, and the terminal a way to show
 * such a call.
 */
import { Plugin, type SessionContext } from "@bezel/core/host"
import { tool, ToolFailure } from "@bezel/core/tool"
import { span, type TuiContext } from "@bezel/tui"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { readFile } from "node:fs/promises"
import { join } from "node:path"

const Ticket = Schema.Struct({
  id: Schema.String,
  title: Schema.String,
  status: Schema.Literals(["open", "done"])
})

const decodeTickets = Schema.decodeUnknownEffect(Schema.fromJsonString(Schema.Array(Ticket)))

/** Runs beside the sessions of one folder. */
const session = Effect.fn("ticket/session")(function*(ctx: SessionContext) {
  const file = join(ctx.location.directory, "tickets.json")
  const tickets = Effect.tryPromise(() => readFile(file, "utf8")).pipe(
    Effect.flatMap(decodeTickets),
    Effect.mapError(() => new ToolFailure({ message: `There is no list of tickets in ${file}.` }))
  )
  const ticket = tool({
    description: "Looks up a ticket of this project by its id.",
    input: Schema.Struct({ id: Schema.String.annotate({ description: "The ticket's id, as in SHOP-12" }) }),
    output: Ticket,
    toContent: ({ id, status, title }) => `${id} (${status}): ${title}`,
    replay: "safe",
    execute: ({ id }) =>
      Effect.flatMap(tickets, (all) => {
        const found = all.find((item) => item.id === id)
        return found === undefined
          ? Effect.fail(
            new ToolFailure({
              message: `There is no ticket ${id}; there are ${all.map((item) => item.id).join(", ")}.`
            })
          )
          : Effect.succeed(found)
      })
  })
  yield* ctx.tool.transform((draft) => draft.set("ticket", ticket))
})

/** Runs in the terminal; it sees the call's arguments and the output above as `details`. */
const tui = Effect.fn("ticket/tui")(function*(ctx: TuiContext) {
  yield* ctx.toolRenderers.register("ticket", {
    title: ({ args, details }) => {
      const found = Schema.decodeUnknownOption(Ticket)(details)
      if (found._tag === "None") return [JSON.stringify(args)]
      const { id, status, title } = found.value
      return [
        span(id, { color: "accent" }),
        ` ${title} `,
        span(status, { color: status === "done" ? "success" : "warning" })
      ]
    }
  })
})

export default Plugin.define({ id: "example.ticket", version: "1.0.0", session, tui })
