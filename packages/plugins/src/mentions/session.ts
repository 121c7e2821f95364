/** The session facet of mentions: attaches what prompts name within the rules, and completes names for clients. */
import type { SessionContext } from "@bezel/core/host"
import * as Effect from "effect/Effect"
import { PermissionGate } from "../permissions/contract.ts"
import { isInside } from "../permissions/paths.ts"
import { attachMentions } from "./attach.ts"
import { type MentionRequest, Mentions, MentionService } from "./contract.ts"
import { makeFileIndex } from "./file-index.ts"

type Context = Pick<SessionContext, "location" | "provide" | "find">

/** The facet for session hosts. */
export const session = Effect.fn("mentions/session")(function*(ctx: Context) {
  const { directory } = ctx.location
  const index = yield* makeFileIndex(directory)

  const resolve = ({ conversation, text }: MentionRequest) =>
    Effect.gen(function*() {
      if (!text.includes("@")) return { files: [], notices: [] }
      const gate = yield* ctx.find(PermissionGate)
      return yield* attachMentions(text, {
        directory,
        // Without a gate nothing is asked about, so only what is plainly the project's is attached.
        mayRead: (access, file) =>
          gate === null
            ? Effect.succeed(isInside(directory, file))
            : Effect.map(gate.verdict({ access, subjects: [file] }, conversation), (verdict) => verdict === "allow")
      })
    })

  yield* ctx.provide(Mentions, { resolve })
  yield* ctx.provide(MentionService, {
    resolve,
    complete: ({ limit, word }) => index.find(word, Math.min(100, Math.max(1, limit ?? 20)))
  })
})
