/**
 * The session facet of the context plugin: the sections of the system message that every conversation begins with.
 *
 * The order is from what never changes to what may: base prompt, environment, instructions of the project and the user, and what
 * the caller adds. Files are read for each request, so an edited `AGENTS.md` holds from the next one on.
 */
import type { SessionContext } from "@bezel/core/host"
import { AppPaths } from "@bezel/core/settings"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { ContextOptions } from "./contract.ts"
import { environment } from "./environment.ts"
import { instructionProblems, instructions } from "./instructions.ts"
import { basePrompt } from "./prompt.ts"

type Context = Pick<SessionContext, "options" | "location" | "section">

/** The facet for session hosts. */
export const session = Effect.fn("context/session")(function*(ctx: Context) {
  const options = yield* Schema.decodeUnknownEffect(ContextOptions, { onExcessProperty: "error" })(ctx.options ?? {})
  const configDirectory = options.configDirectory ??
    (yield* Effect.provide(AppPaths.use((paths) => Effect.succeed(paths.config)), AppPaths.layer))
  const { directory } = ctx.location
  // The model is told with each request; a person only here.
  const problems = yield* instructionProblems(directory, configDirectory)
  yield* Effect.forEach(problems, (problem) => Effect.logWarning(problem), { discard: true })
  yield* ctx.section({ id: "context.base", order: 0, text: () => Effect.succeed(basePrompt) })
  yield* ctx.section({ id: "context.environment", order: 100, text: () => environment(directory) })
  yield* ctx.section({ id: "context.instructions", order: 200, text: () => instructions(directory, configDirectory) })
  const system = options.system?.trim() ?? ""
  if (system !== "") yield* ctx.section({ id: "context.system", order: 900, text: () => Effect.succeed(system) })
})
