/** The sessions that are open in a location, for facets that look into more than the one they are called for. */
import type { SessionContext } from "@bezel/core/host"
import type { OpenSession } from "@bezel/core/session"
import * as Effect from "effect/Effect"

/** By id, as they come and go. */
export const openSessions = (ctx: Pick<SessionContext, "onSession">) =>
  Effect.gen(function*() {
    const open = new Map<string, OpenSession>()
    yield* ctx.onSession((session) => {
      const { sessionID } = session.identity
      return Effect.asVoid(Effect.acquireRelease(
        Effect.sync(() => open.set(sessionID, session)),
        () =>
          Effect.sync(() => {
            if (open.get(sessionID) === session) open.delete(sessionID)
          })
      ))
    })
    return open
  })
