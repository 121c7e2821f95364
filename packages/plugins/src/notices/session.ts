/** The session facet of notices: tells terminals what the settings say. */
import type { SessionContext } from "@bezel/core/host"
import * as Effect from "effect/Effect"
import { Notices, NotifySetting } from "./contract.ts"

/** The facet for session hosts. */
export const session = Effect.fn("notices/session")(function*(ctx: Pick<SessionContext, "provide" | "settings">) {
  yield* ctx.provide(Notices, { how: () => Effect.succeed(ctx.settings.get(NotifySetting)) })
})

export default session
