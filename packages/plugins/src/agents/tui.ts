/** The terminal facet of agents: `/agent` chooses the agent of the conversation that the terminal shows. */
import type { TuiContext } from "@bezel/tui"
import * as Effect from "effect/Effect"
import { currentConversation } from "../chat/current.ts"
import { AgentList } from "./contract.ts"

/** The terminal facet. */
export const tui = Effect.fn("agents/tui")(function*(ctx: TuiContext) {
  const current = yield* currentConversation(ctx)
  const opened = yield* Effect.cached(ctx.use(AgentList))

  yield* ctx.commands.register("agent.choose", {
    slash: "agent",
    argument: "[NAME]",
    description: "Choose the agent of this conversation",
    run: (wish) =>
      Effect.gen(function*() {
        const conversation = current()
        if (conversation === null) return yield* ctx.ui.notify("There is no conversation yet.", "warning")
        const all = yield* Effect.flatMap(opened, (agents) => agents.list())
        const name = wish.trim() !== ""
          ? wish.trim()
          : yield* ctx.ui.select({
            title: "Agent",
            options: all.map(({ description, name: value }) => ({ value, label: value, description }))
          })
        if (name === null) return
        if (!all.some((agent) => agent.name === name)) {
          const known = all.map((agent) => agent.name).join(", ")
          return yield* ctx.ui.notify(`There is no agent ${name}; there are ${known}.`, "error")
        }
        yield* conversation.configSet({ agent: name })
      })
  })
})
