/**
 * The session facet of the built-in tools: offers them, and ends with each session what its commands have left running, and
 * with the first one what commands of a Bezel that was killed have.
 */
import type { SessionContext } from "@bezel/core/host"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { applyPatchTool } from "./apply-patch.ts"
import { bashTool, makeBackgroundProcesses } from "./bash.ts"
import { ToolsOptions } from "./contract.ts"
import { editTool } from "./edit.ts"
import { makeFileState } from "./file-state.ts"
import { listTool } from "./list.ts"
import { readTool } from "./read.ts"
import { searchTool } from "./search.ts"
import { endSurvivors } from "./survivors.ts"
import { writeTool } from "./write.ts"

/** The part of the session context that the tools need. */
export type ToolsContext = Pick<SessionContext, "location" | "options" | "onDispose" | "onSession" | "tool">

export const session = Effect.fn("tools/session")(function*(ctx: ToolsContext) {
  const options = yield* Schema.decodeUnknownEffect(ToolsOptions, { onExcessProperty: "error" })(ctx.options ?? {})
  const { directory } = ctx.location
  const files = makeFileState()
  const background = makeBackgroundProcesses()
  yield* ctx.onDispose(background.endAll)
  let swept = false
  yield* ctx.onSession(({ identity }) =>
    Effect.andThen(
      Effect.suspend(() => {
        if (swept) return Effect.void
        swept = true
        const sweep = Effect.flatMap(endSurvivors, (count) =>
          count === 0
            ? Effect.void
            : Effect.logInfo(`Ended ${count} processes that a Bezel which was killed had left running.`))
        // A short session waits for it at its end.
        return Effect.forkScoped(Effect.uninterruptible(sweep))
      }),
      Effect.acquireRelease(Effect.void, () =>
        Effect.andThen(
          background.end(identity.sessionID),
          Effect.sync(() => files.forget(identity.sessionID))
        ))
    )
  )
  yield* ctx.tool.transform((draft) => {
    draft.set("read", readTool(directory, files))
    draft.set("write", writeTool(directory, files))
    draft.set("edit", editTool(directory, files))
    draft.set("apply_patch", applyPatchTool(directory, files))
    draft.set("bash", bashTool(directory, background, options))
    draft.set("search", searchTool(directory))
    draft.set("list", listTool(directory))
  })
})

export default session
