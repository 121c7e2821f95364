/** Who a session is, and what can keep one from being used here. */
import * as Schema from "effect/Schema"
import type { LocationRef } from "../location/index.ts"

/** Names one session and the place that it belongs to. */
export interface SessionIdentity {
  readonly sessionID: string
  readonly location: LocationRef
}

/** A session of one location was asked of another. */
export class SessionLocationMismatch extends Schema.TaggedError<SessionLocationMismatch>()("SessionLocationMismatch", {
  sessionID: Schema.String,
  /** Where the session belongs. */
  expected: Schema.String,
  /** Where it was asked for. */
  actual: Schema.String,
  message: Schema.String
}) {}
