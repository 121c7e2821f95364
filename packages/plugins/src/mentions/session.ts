/**
 * The session facet of mentions: attaches what people's prompts name within the rules, whichever client they come from, and
 * completes names for clients.
 */
import type { SessionContext } from "@bezel/core/host"
import * as Effect from "effect/Effect"
import { PermissionGate } from "../permissions/contract.ts"
import { isInside } from "../permissions/paths.ts"
import { attachMentions } from "./attach.ts"
import { MentionService } from "./contract.ts"
import { makeFileIndex } from "./file-index.ts"

type Context = Pick<SessionContext, "location" | "provide" | "find" | "intake">

/** The facet for session hosts. */
export const session = Effect.fn("mentions/session")(function*(ctx: Context) {
  const { directory } = ctx.location
  const index = yield* makeFileIndex(directory)

  yield* ctx.intake(({ conversationID, files, sessionID, words }) =>
    Effect.gen(function*() {
      if (!words.includes("@")) return { files: [], notices: [] }
      const gate = yield* ctx.find(PermissionGate)
      return yield* attachMentions(words, {
        directory,
        attached: new Set(files.flatMap(({ fileName }) => fileName === undefined ? [] : [fileName])),
        // Without a gate nothing is asked about, so only what is plainly the project's is attached.
        mayRead: (access, file) =>
          gate === null
            ? Effect.succeed(isInside(directory, file))
            : Effect.map(
              gate.verdict({ access, subjects: [file] }, { sessionID, conversationID }),
              (verdict) => verdict === "allow"
            )
      })
    })
  )
  yield* ctx.provide(MentionService, {
    complete: ({ limit, word }) => index.find(word, Math.min(100, Math.max(1, limit ?? 20)))
  })
})
