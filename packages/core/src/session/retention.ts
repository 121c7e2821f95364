/**
 * Sessions that nobody has worked in for long: deleted whole, with all that belongs to them, where a setting says so.
 *
 * The age of a family counts: a session goes with its sub-agents' when nothing has happened in any of them. One whose record
 * says that it works, and one that somebody has open, is left alone. Each deletion is told in the log.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { StorageError } from "../storage/index.ts"
import type { InvalidCursor, SessionPage, SessionRecord } from "./record.ts"
import type { SessionStoreShape } from "./store-shape.ts"

const dayMillis = 24 * 60 * 60 * 1_000

const isAtWork = ({ status }: SessionRecord): boolean => status === "active"

type Store = Pick<SessionStoreShape, "list" | "remove">

/** All records, newest activity first. */
const everyRecord = (store: Store): Effect.Effect<ReadonlyArray<SessionRecord>, InvalidCursor | StorageError> =>
  Effect.gen(function*() {
    const records: Array<SessionRecord> = []
    let cursor: string | null = null
    do {
      const page: SessionPage = yield* store.list({ limit: 1_000, ...(cursor === null ? {} : { cursor }) })
      records.push(...page.sessions)
      cursor = page.cursor
    } while (cursor !== null)
    return records
  })

/** Deletes what is older than so many days; gives the ids of the sessions that are gone, without those of their children. */
export const expireSessions = Effect.fn("SessionStore.expire")(function*(
  store: Store,
  keepDays: number
): Effect.fn.Return<ReadonlyArray<string>, InvalidCursor | StorageError> {
  const before = (yield* Clock.currentTimeMillis) - keepDays * dayMillis
  const records = yield* everyRecord(store)
  const known = new Map(records.map((record) => [record.id, record]))
  const rootOf = (record: SessionRecord): SessionRecord => {
    let root = record
    for (const seen = new Set<string>(); root.parentID !== null && !seen.has(root.id);) {
      seen.add(root.id)
      root = known.get(root.parentID) ?? { ...root, parentID: null }
    }
    return root
  }
  const kept = new Set<string>()
  for (const record of records) if (isAtWork(record) || record.updatedAt >= before) kept.add(rootOf(record).id)
  const gone: Array<string> = []
  for (const record of records) {
    if (rootOf(record).id !== record.id || kept.has(record.id)) continue
    const removed = yield* store.remove(record.id).pipe(
      Effect.as(true),
      // In use is what is not to be deleted; the next time will find out about the rest.
      Effect.catch((error) =>
        Effect.as(Effect.logInfo(`Session ${record.id} was not deleted: ${error.message}`), false)
      )
    )
    if (!removed) continue
    gone.push(record.id)
    yield* Effect.logInfo(`Session ${record.id} was deleted: nothing has happened in it for ${keepDays} days.`)
  }
  return gone
})
