/** Agents and models that a request names for a session: those that the session's location does not have are refused. */
import type { LocationError } from "@bezel/core/host"
import type { LocationRef } from "@bezel/core/location"
import type { ModelRef } from "@bezel/core/model"
import type { ServiceError } from "@bezel/core/service"
import * as Effect from "effect/Effect"
import type { FleetShape } from "../serve/fleet.ts"
import { type ApiFailure, failure } from "./failure.ts"

export interface Named {
  readonly agent?: string | null
  readonly model?: ModelRef | null
}

/** Starts the location's host if need be, and does nothing where nothing is named. */
export const checkNamed = (
  fleet: FleetShape,
  { directory, workspaceID }: LocationRef,
  { agent = null, model = null }: Named
): Effect.Effect<void, ApiFailure | LocationError | ServiceError> =>
  agent === null && model === null ? Effect.void : Effect.scoped(Effect.gen(function*() {
    const location = yield* fleet.location(directory, workspaceID)
    const refuse = (path: string, missing: string | null) =>
      missing === null
        ? Effect.void
        : Effect.fail(failure("invalid_arguments", `${missing}.`.replace(/([?.!])\.$/, "$1"), { path }))
    if (agent !== null) yield* refuse("agent", yield* location.missingAgent(agent))
    if (model !== null) yield* refuse("model", yield* location.missingModel(model))
  }))
