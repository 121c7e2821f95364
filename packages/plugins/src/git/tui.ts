/** The terminal facet of git: branch and changes in the status row. */
import { type Block, span, text, type TuiContext } from "@bezel/tui"
import * as Effect from "effect/Effect"
import { chatSlots } from "../chat/contract.ts"
import { Git, type GitStatus } from "./contract.ts"

/** `main +1 ~2 ?3 ↑1`: staged, changed and unknown files, commits ahead and behind. Nothing outside of a repository. */
export const gitBlocks = (status: GitStatus | null | undefined): ReadonlyArray<Block> => {
  if (status === null || status === undefined) return []
  const { ahead, behind, branch, changed, conflicts, head, staged, untracked } = status
  const counts = [["+", staged], ["~", changed], ["?", untracked], ["!", conflicts], ["↑", ahead], [
    "↓",
    behind
  ]] as const
  const shown = counts.flatMap(([mark, count]) => count === 0 ? [] : [`${mark}${count}`])
  return [text([
    span(branch ?? head?.slice(0, 8) ?? "no branch", { color: "accent" }),
    span(shown.length === 0 ? "" : ` ${shown.join(" ")}`, { color: conflicts > 0 ? "warning" : "muted" })
  ])]
}

/** The terminal facet. */
export const tui = Effect.fn("git/tui")(function*(ctx: TuiContext) {
  let status: GitStatus | null = null
  const opened = yield* Effect.cached(ctx.use(Git))
  yield* ctx.slots.add(chatSlots.status, { order: 10, render: () => gitBlocks(status) })
  yield* ctx.onActivate(Effect.asVoid(Effect.forkScoped(Effect.ignoreCause(
    Effect.flatMap(opened, (git) =>
      git.status.forEach((now) =>
        Effect.sync(() => {
          status = now
          ctx.ui.redraw()
        })
      ))
  ))))
})
