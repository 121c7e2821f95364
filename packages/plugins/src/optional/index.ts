/**
 * Services that a feature uses where they are and does without where their plugin was left out.
 */
import type { SessionContext } from "@bezel/core/host"
import type { LocalService } from "@bezel/core/service"
import * as Effect from "effect/Effect"

/** From activation on. What was found is used like any other: who holds it is reloaded with its provider. */
export const useIfThere = <A>(
  ctx: Pick<SessionContext, "find" | "use">,
  token: LocalService<A>
): Effect.Effect<A | null> =>
  Effect.flatMap(
    ctx.find(token),
    (found): Effect.Effect<A | null> => found === null ? Effect.succeed(null) : ctx.use(token)
  )
