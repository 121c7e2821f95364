/** A service that tells a client who it is to its host. */
import { Plugin } from "@bezel/core/host"
import { ClientIdentity, RemoteService } from "@bezel/core/service"
import { Effect, Schema } from "effect"

export class Who
  extends RemoteService.make("test.who")({ methods: { am: { success: Schema.NullOr(Schema.String) } } })
{}

export const whoPlugin = Plugin.define({
  id: "test.who",
  session: (ctx) => ctx.provide(Who, { am: () => Effect.map(ClientIdentity, (client) => client?.user ?? null) })
})
