/** Adds to a prompt what is known of the tickets that its writer names. */
import { Plugin, type SessionContext } from "@bezel/core/host"
import * as Effect from "effect/Effect"

const tickets = Effect.fn("tickets/session")(function*(ctx: SessionContext) {
  yield* ctx.intake(({ words }) =>
    Effect.succeed({
      files: [...words.matchAll(/#(\d+)/g)].map(([name, id]) => ({
        type: "file" as const,
        mediaType: "text/plain",
        fileName: name,
        data: Buffer.from(`Ticket ${id}`).toString("base64")
      })),
      notices: []
    })
  )
})

export default Plugin.define({ id: "example.tickets", version: "1.0.0", session: tickets })
