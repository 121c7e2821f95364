/** What the handlers of all routes stand on. */
import type { FleetShape } from "../serve/fleet.ts"
import type { FleetEvents } from "./fleet-events.ts"
import type { Metrics } from "./metrics.ts"
import type { Places } from "./places.ts"
import type { SessionHubs } from "./session-hub.ts"

export interface ApiParts {
  readonly fleet: FleetShape
  readonly hubs: SessionHubs
  readonly fleetEvents: FleetEvents
  readonly places: Places
  readonly metrics: Metrics
  /** The directory of whoever names none. */
  readonly defaultLocation: string
  readonly version: string
}
