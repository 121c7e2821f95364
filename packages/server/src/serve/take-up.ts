/** Work that was cut off goes on without anybody asking: that of an earlier server, and that of a host which has died. */
import type { SessionRecord } from "@bezel/core/session"
import * as Effect from "effect/Effect"
import * as Equal from "effect/Equal"
import * as Stream from "effect/Stream"
import type { FleetShape } from "./fleet.ts"
import type { Roll } from "./roll.ts"

type WorkingFleet = Pick<FleetShape, "records" | "session"> & {
  readonly processes: Pick<FleetShape["processes"], "changes">
}

/** Has these sessions go on. */
export const takeUp = (fleet: WorkingFleet, sessions: ReadonlyArray<SessionRecord>): Effect.Effect<void> =>
  Effect.forEach(
    sessions,
    ({ id }) =>
      Effect.flatMap(fleet.session(id), (session) => session.resume(id)).pipe(
        Effect.scoped,
        Effect.catch((error) => Effect.logWarning(`The session ${id} could not be taken up again: ${error.message}`))
      ),
    { concurrency: 4, discard: true }
  )

/** The same for each host that dies, unless it has died too often: then it waits for somebody. Never completes. */
export const takeUpAfterDeaths = (fleet: WorkingFleet, roll: Pick<Roll, "unfinished">): Effect.Effect<void> =>
  Stream.runForEach(
    Stream.filter(fleet.processes.changes, ({ state }) => state === "waiting"),
    ({ location }) =>
      Effect.flatMap(
        roll.unfinished(fleet.records),
        (unfinished) => takeUp(fleet, unfinished.filter((record) => Equal.equals(record.location, location)))
      )
  )
