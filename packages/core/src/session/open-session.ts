/** One open session as extensions see it. */
import type * as Effect from "effect/Effect"
import type { Conversation } from "../harness/index.ts"
import type { HarnessError } from "../harness/index.ts"
import type { SessionIdentity } from "./identity.ts"

/** Valid for as long as the session is open here; whatever it hands out ends with that. */
export interface OpenSession {
  readonly identity: SessionIdentity
  readonly main: Conversation
  readonly conversation: (id: string) => Effect.Effect<Conversation | null, HarnessError>
  /** Every conversation by id, oldest first; `owner` is the task that a sub-agent's conversation belongs to. */
  readonly conversations: Effect.Effect<
    ReadonlyArray<{ readonly id: string; readonly owner: string | null }>,
    HarnessError
  >
}
