/**
 * The session facet of the built-in tools: offers them, and ends with each session what its commands have left running, and
 * with the first one what commands of a Bezel that was killed have.
 */
import type { SessionContext } from "@bezel/core/host"
import type { OpenSession } from "@bezel/core/session"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { CommandSandbox } from "../sandbox/contract.ts"
import { applyPatchTool } from "./apply-patch.ts"
import { bashTool, makeBackgroundProcesses } from "./bash.ts"
import { ToolsOptions } from "./contract.ts"
import { makeDirectories } from "./directories.ts"
import { editTool } from "./edit.ts"
import { makeFileState } from "./file-state.ts"
import { jobOutputTool, jobStopTool, startJob } from "./jobs.ts"
import { listTool } from "./list.ts"
import { readTool } from "./read.ts"
import { searchTool } from "./search.ts"
import type { Confine } from "./shell.ts"
import { endSurvivors } from "./survivors.ts"
import { writeTool } from "./write.ts"

/** The part of the session context that the tools need. */
export type ToolsContext = Pick<
  SessionContext,
  "location" | "options" | "onDispose" | "onSession" | "tool" | "namespace" | "hooks" | "job" | "find"
>

export const session = Effect.fn("tools/session")(function*(ctx: ToolsContext) {
  const options = yield* Schema.decodeUnknownEffect(ToolsOptions, { onExcessProperty: "error" })(ctx.options ?? {})
  const { directory } = ctx.location
  const files = makeFileState()
  const background = makeBackgroundProcesses()
  const directories = yield* makeDirectories(ctx, directory)
  const confine: Confine = (words) =>
    Effect.flatMap(ctx.find(CommandSandbox), (sandbox) => sandbox?.confine(words) ?? Effect.succeed(words))
  const made = Effect.flatMap(ctx.find(CommandSandbox), (sandbox) => sandbox?.made ?? Effect.succeed([]))
  const shells = { background, directories, confine, made, startJob: startJob(ctx.job, confine) }
  const open = new Map<string, OpenSession>()
  yield* ctx.onDispose(background.endAll)
  let swept = false
  yield* ctx.onSession((opened) =>
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
      Effect.acquireRelease(Effect.sync(() => open.set(opened.identity.sessionID, opened)), () =>
        Effect.andThen(
          background.end(opened.identity.sessionID),
          Effect.sync(() => {
            files.forget(opened.identity.sessionID)
            if (open.get(opened.identity.sessionID) === opened) open.delete(opened.identity.sessionID)
          })
        ))
    )
  )
  yield* ctx.tool.transform((draft) => {
    draft.set("read", readTool(directory, files))
    draft.set("write", writeTool(directory, files))
    draft.set("edit", editTool(directory, files))
    draft.set("apply_patch", applyPatchTool(directory, files))
    draft.set("bash", bashTool(directory, shells, options))
    draft.set("job_output", jobOutputTool(open))
    draft.set("job_stop", jobStopTool(open))
    draft.set("search", searchTool(directory))
    draft.set("list", listTool(directory))
  })
})

export default session
