/** A session's storage beside its writer, opened when somebody has written it, and kept. */
import type { SessionFiles, StorageError, StorageReader } from "@bezel/core/storage"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"

export interface KeptReader {
  /** Reads from it; `empty` while nobody has written the session. A reader that fails is opened anew the next time. */
  readonly read: <A>(
    empty: A,
    use: (storage: StorageReader) => Effect.Effect<A, StorageError>
  ) => Effect.Effect<A, StorageError>
}

/** For the length of the scope. */
export const keptReader = (files: SessionFiles, sessionID: string): Effect.Effect<KeptReader, never, Scope.Scope> =>
  Effect.map(Effect.scope, (scope) => {
    const opening = Semaphore.makeUnsafe(1)
    let kept: { readonly storage: StorageReader; readonly scope: Scope.Closeable } | null = null
    const forget = Effect.suspend(() => {
      const gone = kept
      kept = null
      return gone === null ? Effect.void : Scope.close(gone.scope, Exit.void)
    })
    const storage = opening.withPermits(1)(Effect.gen(function*() {
      if (kept !== null) return kept.storage
      const own = yield* Scope.fork(scope)
      const opened = yield* Scope.provide(files.read(sessionID), own)
      kept = { storage: opened, scope: own }
      return opened
    }))
    return {
      read: (empty, use) =>
        Effect.flatMap(storage, use).pipe(
          Effect.catch((error) =>
            error.kind === "not_found" ? Effect.succeed(empty) : Effect.andThen(forget, Effect.fail(error))
          )
        )
    }
  })
