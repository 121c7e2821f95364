/**
 * The locations that clients name: those that they may look into, which are the server's own and those that sessions belong
 * to, and those in which they create sessions, which may be any.
 *
 * A token that may read is not one for every directory of the machine.
 */
import { type LocationRef, type LocationUnavailable, resolveLocation } from "@bezel/core/location"
import type { InvalidCursor } from "@bezel/core/session"
import type { StorageError } from "@bezel/core/storage"
import * as Cache from "effect/Cache"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { resolve } from "node:path"
import type { FleetShape } from "../serve/fleet.ts"
import { type ApiFailure, failure } from "./failure.ts"

export interface Places {
  /** A directory for a new session; without one, the server's own. */
  readonly existing: (directory: string | undefined) => Effect.Effect<LocationRef, LocationUnavailable>
  /** What a directory is called in records, whether it is there or not. */
  readonly named: (directory: string) => Effect.Effect<LocationRef>
  /** A location that clients may look into; without a directory, the server's own. */
  readonly known: (
    directory: string | undefined
  ) => Effect.Effect<LocationRef, ApiFailure | InvalidCursor | LocationUnavailable | StorageError>
  /** How many sessions belong to it. */
  readonly count: (location: LocationRef) => Effect.Effect<number, InvalidCursor | StorageError>
}

/** Directories that are remembered, and for how long: those who create many sessions at once ask for the same few. */
const remembered = 64
const rememberedFor = "100 millis"

export const makePlaces = (fleet: FleetShape, defaultLocation: string): Effect.Effect<Places> =>
  Effect.gen(function*() {
    const found = yield* Cache.makeWith((directory: string) => resolveLocation(directory), {
      capacity: remembered,
      // What is not there may be there at the next request.
      timeToLive: (exit) => Exit.isSuccess(exit) ? rememberedFor : 0
    })
    return {
      existing: (directory = defaultLocation) => Cache.get(found, directory),
      named: (directory) =>
        Effect.orElseSucceed(resolveLocation(directory), () => ({ directory: resolve(directory), workspaceID: null })),
      known: (directory) =>
        Effect.gen(function*() {
          const own = yield* Effect.option(resolveLocation(defaultLocation))
          if (directory === undefined) return yield* resolveLocation(defaultLocation)
          const unknown = failure(
            "not_found",
            `No session belongs to ${JSON.stringify(directory.slice(0, 500))}; create one there first.`
          )
          // One that is not there, and one that is nobody's, look the same from outside.
          const location = yield* Effect.mapError(resolveLocation(directory), () => unknown)
          if (own._tag === "Some" && own.value.directory === location.directory) return location
          const { sessions } = yield* fleet.records.list({ location, limit: 1 })
          return sessions.length > 0 ? location : yield* unknown
        }),
      count: (location) =>
        Effect.gen(function*() {
          let count = 0
          for (let cursor: string | null | undefined; cursor !== null;) {
            const page = yield* fleet.records.list({
              location,
              limit: 1_000,
              ...(cursor === undefined ? {} : { cursor })
            })
            count += page.sessions.length
            cursor = page.cursor
          }
          return count
        })
    }
  })
