/**
 * The session facet of the sandbox. Where settings want it and it cannot be had, commands are refused: whoever asked for it
 * did not mean "if possible".
 */
import type { SessionContext } from "@bezel/core/host"
import { AppPaths } from "@bezel/core/settings"
import { ToolFailure } from "@bezel/core/tool"
import * as Effect from "effect/Effect"
import { homedir, tmpdir } from "node:os"
import { bubblewrap, problemOf } from "./bubblewrap.ts"
import { CommandSandbox, SandboxSetting } from "./contract.ts"
import { makeGuard } from "./guard.ts"

type Context = Pick<SessionContext, "location" | "settings" | "provide" | "onDispose">

const absolute = (folder: string): string => folder.replace(/^~(?=\/|$)/, homedir)

/** The facet for session hosts. */
export const session = Effect.fn("sandbox/session")(function*(ctx: Context) {
  const { bash = false, network = true, write = [] } = ctx.settings.get(SandboxSetting)
  if (!bash) return yield* ctx.provide(CommandSandbox, { confine: Effect.succeed, made: Effect.succeed([]) })
  const paths = yield* Effect.provide(AppPaths.use(Effect.succeed), AppPaths.layer)
  const words = () =>
    bubblewrap({
      workspace: ctx.location.directory,
      temporary: tmpdir(),
      write: write.map(absolute),
      hidden: [paths.data, paths.state, paths.config, paths.cache],
      network
    })
  const problem = yield* Effect.cached(problemOf(words()))
  const made = makeGuard(ctx.location.directory)
  yield* ctx.onDispose(
    Effect.flatMap(made, (said) => Effect.forEach(said, (sentence) => Effect.logWarning(sentence), { discard: true }))
  )
  yield* ctx.provide(CommandSandbox, {
    made,
    confine: (command) =>
      Effect.flatMap(problem, (why) =>
        why === null
          ? Effect.succeed([...words(), ...command])
          : Effect.fail(
            new ToolFailure({
              message:
                `Commands are to run in a sandbox (the setting sandbox.bash), and ${why}; so none is run. Only the person can change that.`
            })
          ))
  })
})
