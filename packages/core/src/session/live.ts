/** A session while it is open here: each opening, and what its holders have from one opening to the next. */
import type * as Effect from "effect/Effect"
import type { Harness, HarnessError } from "../harness/index.ts"
import type { SessionInUse, StorageError } from "../storage/index.ts"
import type { DeclarationTarget } from "./declarations.ts"
import type { SessionLocationMismatch } from "./identity.ts"
import type { OpenSession } from "./open-session.ts"
import type { UnknownSession } from "./record.ts"
import type { Reopenable } from "./reopenable.ts"

/** Why a session could not be opened here. */
export type OpenError = UnknownSession | SessionLocationMismatch | SessionInUse | StorageError | HarnessError

/** One opening of a session. */
export interface Live extends DeclarationTarget {
  readonly harness: Harness
  readonly reconcile: Effect.Effect<void, HarnessError>
  /** Everything declared has been applied; work may run. */
  readonly isReady: () => boolean
}

/** A session as its holders hold it, from one opening to the next. */
export interface Held extends Reopenable<Live, OpenError> {
  readonly session: OpenSession
}
