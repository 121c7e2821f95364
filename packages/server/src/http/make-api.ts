/** Puts the API together over a fleet. */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { FleetShape } from "../serve/fleet.ts"
import { type HttpApi, makeHttpApi } from "./api.ts"
import { makeFleetEvents } from "./fleet-events.ts"
import { makeMetrics, type Metrics } from "./metrics.ts"
import type { ApiParts, OfferTool, Redeem, RunCommand } from "./parts.ts"
import { makePlaces } from "./places.ts"
import { locationRoutes } from "./routes/location-routes.ts"
import { peopleRoutes } from "./routes/people-routes.ts"
import { readingRoutes } from "./routes/reading-routes.ts"
import { recordRoutes } from "./routes/record-routes.ts"
import { serverRoutes } from "./routes/server-routes.ts"
import { toolRoutes } from "./routes/tool-routes.ts"
import { workRoutes } from "./routes/work-routes.ts"
import { makeSessionHubs } from "./session-hub.ts"
import { makeToolCalls } from "./tool-calls.ts"

export interface ApiOptions {
  readonly fleet: FleetShape
  readonly version: string
  /** The directory of whoever names none; default: that of this process. */
  readonly defaultLocation?: string
  /** Without it, sessions run no commands for clients. */
  readonly runCommand?: RunCommand
  /** Without it, clients offer no tools. */
  readonly offerTool?: OfferTool
  /** Without it, no code is worth anything. */
  readonly redeem?: Redeem
}

/** For the length of the scope. */
export const makeApi = (
  { defaultLocation = process.cwd(), fleet, offerTool, redeem, runCommand, version }: ApiOptions
): Effect.Effect<{ readonly api: HttpApi; readonly metrics: Metrics }, never, Scope.Scope> =>
  Effect.gen(function*() {
    const metrics = makeMetrics()
    const parts: ApiParts = {
      fleet,
      version,
      metrics,
      defaultLocation,
      runCommand: runCommand ?? null,
      offerTool: offerTool ?? null,
      toolCalls: makeToolCalls(),
      redeem: redeem ?? null,
      places: yield* makePlaces(fleet, defaultLocation),
      hubs: yield* makeSessionHubs(fleet),
      fleetEvents: yield* makeFleetEvents(fleet)
    }
    const api = makeHttpApi({
      session: {
        ...recordRoutes(parts),
        ...readingRoutes(parts),
        ...workRoutes(parts),
        ...peopleRoutes(parts),
        ...toolRoutes(parts)
      },
      location: locationRoutes(parts),
      server: serverRoutes(parts)
    }, metrics)
    return { api, metrics }
  })
