/** The conversation that the terminal shows: the main one of the attached session, for facets that act on it. */
import { Conversation } from "@bezel/core/host/contract"
import type { Facade } from "@bezel/core/service"
import type { TuiContext } from "@bezel/tui"
import * as Effect from "effect/Effect"

/** Gives what answers with it at any time, `null` while there is none. */
export const currentConversation = Effect.fnUntraced(function*(ctx: Pick<TuiContext, "observe">) {
  let current: Facade<Conversation> | null = null
  yield* ctx.observe(Conversation, (instance) =>
    Effect.gen(function*() {
      yield* Effect.addFinalizer(() =>
        Effect.sync(() => {
          if (current === instance) current = null
        })
      )
      yield* instance.view.forEach(({ conversation }) =>
        Effect.sync(() => {
          // Forks and sub-agents are conversations of the session too.
          if (conversation.parent === null && conversation.owner === null) current = instance
        })
      )
    }))
  return () => current
})
