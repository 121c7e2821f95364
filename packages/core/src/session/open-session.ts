/** One open session as extensions see it. */
import type * as Effect from "effect/Effect"
import type { Conversation, Harness, HarnessError } from "../harness/index.ts"
import type { SessionIdentity } from "./identity.ts"

/** Valid for as long as the session is open here; whatever it hands out ends with that. */
export interface OpenSession {
  readonly identity: SessionIdentity
  readonly main: Conversation
  readonly conversation: (id: string) => Effect.Effect<Conversation | null, HarnessError>
  /** Every conversation, oldest first, with where it is from. */
  readonly tree: Harness["tree"]
  /** What happens in any conversation, those that come later included, until the scope ends. */
  readonly events: Harness["events"]
}
