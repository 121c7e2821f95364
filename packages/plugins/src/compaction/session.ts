/** The session facet of compaction: what the settings say of when a conversation is summarized. */
import type { SessionContext } from "@bezel/core/host"
import { defaultCompaction } from "@bezel/core/turn"
import * as Effect from "effect/Effect"
import { CompactionSetting } from "../settings/contract.ts"

export const session = Effect.fn("compaction/session")(function*(ctx: SessionContext) {
  yield* ctx.turns.configure({
    compaction: Effect.sync(() => {
      const { auto, keepRecent, threshold } = ctx.settings.get(CompactionSetting)
      return {
        auto: auto ?? defaultCompaction.auto,
        keepRecent: keepRecent ?? defaultCompaction.keepRecent,
        threshold: threshold ?? defaultCompaction.threshold
      }
    })
  })
})
