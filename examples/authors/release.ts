/** Definitions that come with a plugin: an agent, and a command that hands it its work. */
import { Plugin, type SessionContext } from "@bezel/core/host"
import * as Effect from "effect/Effect"

const session = Effect.fn("release/session")(function*(ctx: SessionContext) {
  yield* ctx.agent.transform((draft) =>
    draft.set("releaser", {
      description: "Prepares releases.",
      prompt: "You prepare releases. Never push.",
      permissions: { bash: { "git push*": "deny" } }
    })
  )
  yield* ctx.command.transform((draft) =>
    draft.set("release", {
      description: "Prepare a release",
      argument: "VERSION",
      template: "Prepare the release $1: update the changelog and the version.",
      agent: "releaser"
    })
  )
})

export default Plugin.define({ id: "example.release", version: "1.0.0", session })
