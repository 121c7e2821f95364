/** A new session that is a copy of another one's main conversation, up to an entry. */
import type { LocationRef } from "@bezel/core/location"
import {
  exportSession,
  importSession,
  type SessionExport,
  type SessionRecord,
  type SessionStore
} from "@bezel/core/session"
import type { SessionStorage } from "@bezel/core/storage"
import * as Effect from "effect/Effect"
import { Exit, exitCode } from "../exit.ts"

/** `at` is an entry's id, or `latest`. */
export const forkSession = (
  sessionID: string,
  at: string,
  location: LocationRef
): Effect.Effect<SessionRecord, unknown, SessionStore | SessionStorage> =>
  Effect.gen(function*() {
    const exported = yield* exportSession(sessionID)
    return yield* importSession(yield* upTo(exported, at), { location, forkedFrom: sessionID })
  })

const upTo = (exported: SessionExport, at: string): Effect.Effect<SessionExport, Exit> => {
  const [main] = exported.conversations
  const entries = exported.entries.filter((entry) => entry.conversation === main?.id)
  const last = at === "latest" ? entries.at(-1) : entries.find((entry) => entry.id === at)
  if (main === undefined || last === undefined) {
    const message = at === "latest"
      ? "this session has nothing to fork yet"
      : `the session has no entry ${JSON.stringify(at)} to fork at; bezel session show ID --json lists them`
    return Effect.fail(new Exit(exitCode.usage, message))
  }
  return Effect.succeed({
    ...exported,
    conversations: [main],
    entries: entries.filter((entry) => entry.ordinal <= last.ordinal)
  })
}
