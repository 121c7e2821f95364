/** What the handlers of all routes stand on. */
import type { ConnectionShape } from "@bezel/core/rpc"
import type { ServiceError } from "@bezel/core/service"
import type * as Effect from "effect/Effect"
import type * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type * as Stream from "effect/Stream"
import type { TokenScope } from "../serve/caller.ts"
import type { FleetShape } from "../serve/fleet.ts"
import type { ApiFailure } from "./failure.ts"
import type { FleetEvents } from "./fleet-events.ts"
import type { Metrics } from "./metrics.ts"
import type { Places } from "./places.ts"
import type { SessionHubs } from "./session-hub.ts"
import type { ToolCalls } from "./tool-calls.ts"

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

/** A tool that a client offers to a session. */
export interface OfferedTool {
  readonly sessionID: string
  readonly name: string
  readonly description: string
  readonly inputSchema: { readonly [name: string]: Schema.Json }
  readonly timeLimitSeconds: number
}

/** A call that waits for the client. `id` is known to nobody else. */
export interface OfferedCall {
  readonly id: string
  readonly callID: string
  readonly sessionID: string
  readonly conversationID: string
  readonly input: Schema.Json
}

export type OfferAnswer =
  | { readonly type: "result"; readonly value: Schema.Json }
  | { readonly type: "error"; readonly message: string }

/** An offer that holds for the scope that it was made in, or until its host lets go of it. */
export interface ToolOffer {
  /** The calls that are open, at each change; ends with the offer. */
  readonly calls: Stream.Stream<ReadonlyArray<OfferedCall>>
  /** `false`: nobody waits for the call any more. */
  readonly answer: (id: string, answer: OfferAnswer) => Effect.Effect<boolean, ServiceError>
}

/** Offers a tool at a client of the session's host. What tools of clients are is plugins' business. */
export type OfferTool = (
  connection: ConnectionShape,
  tool: OfferedTool
) => Effect.Effect<
  ToolOffer,
  ServiceError | { readonly code: "taken" | "invalid" | "too_many"; readonly message: string },
  Scope.Scope
>

/** What a one-time code is worth; `null` for one that is none, or is none any more. */
export type Redeem = (
  code: string
) => Effect.Effect<{ readonly token: string; readonly scope: TokenScope } | null, ApiFailure>

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
  readonly offerTool: OfferTool | null
  readonly toolCalls: ToolCalls
  readonly redeem: Redeem | null
}
