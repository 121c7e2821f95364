/** Which session a session belongs to: itself, or the one that it was made for, as a sub-agent's is, all the way up. */
import type { SessionRecord, SessionStoreShape } from "@bezel/core/session"
import * as Effect from "effect/Effect"

/** No chain of sub-agents is as long; a record that leads to itself ends here. */
const deepest = 64

/** The record at the top. An ancestor that is not there any more leaves the last one that is. */
export const rootOf = Effect.fnUntraced(function*(store: Pick<SessionStoreShape, "get">, sessionID: string) {
  let record: SessionRecord = yield* store.get(sessionID)
  for (let depth = 0; record.parentID !== null && depth < deepest; depth++) {
    const parent = yield* Effect.catchTag(store.get(record.parentID), "UnknownSession", () => Effect.succeed(null))
    if (parent === null) break
    record = parent
  }
  return record
})
