/**
 * The roll: which sessions a server has worked with, on disk, so that its successor on the same data folder takes up those
 * whose work was cut off, however the server ended.
 *
 * A session is entered before anything is done with it. Sessions that only other programs have used are not on it: what
 * somebody has interrupted elsewhere does not go on because a server starts.
 */
import type { SessionRecord, SessionStoreShape } from "@bezel/core/session"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Schema from "effect/Schema"
import * as fs from "node:fs"

const Sessions = Schema.Array(Schema.String)
const decode = Schema.decodeUnknownExit(Schema.fromJsonString(Sessions))

export interface Roll {
  /** Remembers a session. */
  readonly enter: (sessionID: string) => Effect.Effect<void>
  /** Those that have work which nobody has ended. */
  readonly unfinished: (records: Pick<SessionStoreShape, "get">) => Effect.Effect<ReadonlyArray<SessionRecord>>
  /** Forgets all that have been entered, but for these. */
  readonly retain: (sessions: ReadonlyArray<string>) => Effect.Effect<void>
}

/** As many as are kept; older ones have rested for long. */
const most = 10_000

const read = (file: string): ReadonlyArray<string> => {
  try {
    const exit = decode(fs.readFileSync(file, "utf8"))
    return Exit.isSuccess(exit) ? exit.value : []
  } catch {
    return []
  }
}

/** Kept in a file whose folder is there. */
export const makeRoll = (file: string): Roll => {
  let sessions = new Set(read(file))
  const write = Effect.try({
    try: () => {
      const temporary = `${file}.${process.pid}`
      fs.writeFileSync(temporary, JSON.stringify([...sessions].slice(-most)), { mode: 0o600 })
      fs.renameSync(temporary, file)
    },
    catch: (error) => error instanceof Error ? error.message : String(error)
  }).pipe(
    Effect.catch((why) => Effect.logWarning(`${file} cannot be written, so work is not taken up after a crash: ${why}`))
  )
  return {
    enter: (sessionID) =>
      Effect.suspend(() => {
        if (sessions.has(sessionID)) return Effect.void
        sessions.add(sessionID)
        return write
      }),
    unfinished: Effect.fnUntraced(function*(records) {
      const found = yield* Effect.forEach(
        [...sessions],
        (id) => Effect.orElseSucceed(records.get(id), () => null)
      )
      return found.flatMap((record) => record?.status === "active" ? [record] : [])
    }),
    retain: (kept) =>
      Effect.suspend(() => {
        sessions = new Set(kept)
        return write
      })
  }
}
