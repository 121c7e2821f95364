/**
 * The event stream of the whole server: sessions that come, change and go, and the hosts that they run in.
 *
 * Other processes write the catalogue too, and nobody is told of that; so it is looked at, once a second and at each change
 * through this API, while somebody listens, and not at all otherwise. Ids are of this server's life: who comes back after
 * another one has started is told of a gap.
 */
import { durableLog, MutableDurableEvents } from "@bezel/core/service"
import type { SessionRecord } from "@bezel/core/session"
import { FleetEvent } from "@bezel/sdk/api"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { FleetShape } from "../serve/fleet.ts"
import { comment, frame, heartbeat, writeAll } from "./event-frames.ts"
import { EventStream } from "./handler.ts"
import { toSession } from "./shapes.ts"

export interface FleetEvents {
  /** Something was changed through this server. */
  readonly poke: Effect.Effect<void>
  readonly deleted: (sessionID: string) => Effect.Effect<void>
  readonly stream: (place: string | null) => EventStream
}

/** The newest sessions, which are those that change. */
const watched = 200

export const makeFleetEvents = (fleet: FleetShape): Effect.Effect<FleetEvents, never, Scope.Scope> =>
  Effect.gen(function*() {
    const events = yield* MutableDurableEvents.make(FleetEvent, { keep: 1_000 })
    const due = Latch.makeUnsafe(false)
    const followed = Latch.makeUnsafe(false)
    let followers = 0
    let known: Map<string, SessionRecord> | null = null

    const look = Effect.gen(function*() {
      const { sessions } = yield* fleet.records.list({ limit: watched })
      const before = known
      const now = new Map(sessions.map((record) => [record.id, record]))
      known = now
      if (before === null) return
      for (const record of sessions.toReversed()) {
        const earlier = before.get(record.id)
        if (earlier === undefined) {
          // One that is old has come back into the window by its activity.
          const isNew = record.createdAt >= (sessions.at(-1)?.createdAt ?? 0) && record.status === "starting"
          yield* events.emit({ type: isNew ? "session.created" : "session.changed", session: toSession(record) })
        } else if (earlier.updatedAt !== record.updatedAt || earlier.status !== record.status) {
          yield* events.emit({ type: "session.changed", session: toSession(record) })
        }
      }
    }).pipe(Effect.catch((error) => Effect.logWarning(`The sessions cannot be listed: ${error.message}`)))

    yield* Effect.forkScoped(Effect.forever(Effect.gen(function*() {
      yield* followed.await
      yield* look
      due.closeUnsafe()
      yield* Effect.timeoutOption(due.await, "1 second")
    })))
    yield* Effect.forkScoped(
      Stream.runForEach(
        fleet.processes.changes,
        ({ error, id, location, sessionID, state }) =>
          events.emit({ type: "host.changed", id, directory: location.directory, sessionID, state, error })
      )
    )

    const follow = Effect.acquireRelease(
      Effect.sync(() => {
        if (++followers === 1) known = null
        followed.openUnsafe()
      }),
      () =>
        Effect.sync(() => {
          if (--followers === 0) followed.closeUnsafe()
        })
    )

    return {
      poke: Effect.sync(() => {
        due.openUnsafe()
      }),
      deleted: (sessionID) =>
        Effect.suspend(() => {
          known?.delete(sessionID)
          return followers === 0 ? Effect.void : events.emit({ type: "session.deleted", sessionID })
        }),
      stream: (place) =>
        new EventStream({
          run: (write) =>
            Effect.gen(function*() {
              yield* follow
              // What there is now is known before anybody is told that it follows.
              if (known === null) yield* look
              const start = place ?? durableLog(events)?.end ?? null
              const frames = Stream.map(events.after(start), (event) =>
                event.type === "gap"
                  ? frame("gap", { type: "gap" }, event.id)
                  : frame(event.value.type, event.value, event.id))
              yield* write(frame("ready", { type: "ready" }, start ?? undefined))
              const alive = Stream.as(Stream.tick(heartbeat), comment)
              yield* Stream.runForEachArray(
                Stream.merge(frames, Stream.drop(alive, 1)),
                (pieces) => writeAll(write, pieces)
              )
            })
        })
    }
  })
