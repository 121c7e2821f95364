/**
 * The locations that clients may look into: the server's own, and those that sessions belong to.
 *
 * A token that may read is not one for every directory of the machine.
 */
import { type LocationRef, type LocationUnavailable, resolveLocation } from "@bezel/core/location"
import type { InvalidCursor } from "@bezel/core/session"
import type { StorageError } from "@bezel/core/storage"
import * as Effect from "effect/Effect"
import { resolve } from "node:path"
import type { FleetShape } from "../serve/fleet.ts"
import { type ApiFailure, failure } from "./failure.ts"

export interface Places {
  /** What a directory is called in records, whether it is there or not. */
  readonly named: (directory: string) => Effect.Effect<LocationRef>
  /** A location that clients may look into; without a directory, the server's own. */
  readonly known: (
    directory: string | undefined
  ) => Effect.Effect<LocationRef, ApiFailure | InvalidCursor | LocationUnavailable | StorageError>
  /** How many sessions belong to it. */
  readonly count: (location: LocationRef) => Effect.Effect<number, InvalidCursor | StorageError>
}

export const makePlaces = (fleet: FleetShape, defaultLocation: string): Places => ({
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
        const page = yield* fleet.records.list({ location, limit: 1_000, ...(cursor === undefined ? {} : { cursor }) })
        count += page.sessions.length
        cursor = page.cursor
      }
      return count
    })
})
