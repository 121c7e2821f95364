/** What the handlers of all routes stand on. */
import type { ConnectionShape } from "@bezel/core/rpc"
import type { ServiceError } from "@bezel/core/service"
import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { FleetShape } from "../serve/fleet.ts"
import type { FleetEvents } from "./fleet-events.ts"
import type { Metrics } from "./metrics.ts"
import type { Places } from "./places.ts"
import type { SessionHubs } from "./session-hub.ts"

/** A command that a session is to run, with its arguments as they were typed. */
export interface CommandRun {
  readonly sessionID: string
  readonly name: string
  readonly arguments: string
}

/** Has a session run a command of its location, at a client of its host. Which commands there are is plugins' business. */
export type RunCommand = (
  connection: ConnectionShape,
  run: CommandRun
) => Effect.Effect<
  { readonly inputID: string },
  | ServiceError
  | { readonly code: "unknown_command" | "invalid_command" | "refused"; readonly message: string },
  Scope.Scope
>

export interface ApiParts {
  readonly fleet: FleetShape
  readonly hubs: SessionHubs
  readonly fleetEvents: FleetEvents
  readonly places: Places
  readonly metrics: Metrics
  /** The directory of whoever names none. */
  readonly defaultLocation: string
  readonly version: string
  readonly runCommand: RunCommand | null
}
