/**
 * The session facet of the policy for sessions that nobody attends: with `deny`, what is asked while no client is there that
 * could answer is settled at once, and what was open is when the last one leaves. `bezel run` is like that whatever is set.
 */
import type { SessionContext } from "@bezel/core/host"
import * as Effect from "effect/Effect"
import { UnattendedSetting } from "./contract.ts"

/** The facet for session hosts. */
export const session = Effect.fn("unattended/session")(
  function*(ctx: Pick<SessionContext, "interactions" | "onSession" | "settings">) {
    if (ctx.settings.get(UnattendedSetting) !== "deny") return
    yield* ctx.onSession(({ identity }) => ctx.interactions.unattended(identity.sessionID, "deny"))
  }
)

export default session
