/** The terminal facet of compaction: `/compact` and `/new`, over the conversation that the terminal shows. */
import type { Conversation } from "@bezel/core/host/contract"
import type { Facade } from "@bezel/core/service"
import type { TuiContext } from "@bezel/tui"
import * as Effect from "effect/Effect"
import { currentConversation } from "../chat/current.ts"

export const tui = Effect.fn("compaction/tui")(function*(ctx: TuiContext) {
  const current = yield* currentConversation(ctx)

  const withConversation = (
    run: (conversation: Facade<Conversation>) => Effect.Effect<void, { readonly message: string }>
  ) =>
    Effect.suspend(() => {
      const conversation = current()
      return conversation === null
        ? ctx.ui.notify("There is no conversation yet.", "warning")
        : Effect.catch(run(conversation), (error) => ctx.ui.notify(error.message, "error"))
    })

  yield* ctx.commands.register("conversation.compact", {
    slash: "compact",
    argument: "WHAT TO KEEP",
    description: "Summarize the older part of this conversation",
    run: (wish) =>
      withConversation((conversation) =>
        Effect.gen(function*() {
          const instructions = wish?.trim() ?? ""
          const ended = yield* conversation.collapse(instructions === "" ? {} : { instructions })
          yield* ended.status === "completed"
            ? ctx.ui.notify("The older part of the conversation was summarized.")
            : ctx.ui.notify(ended.message ?? "The conversation was not summarized.", "warning")
        })
      )
  })
  yield* ctx.commands.register("conversation.reset", {
    slash: "clear",
    description: "Start over with an empty context; what was said stays in the session",
    run: () => withConversation((conversation) => conversation.reset({}))
  })
})
