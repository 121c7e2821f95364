/**
 * A lock between processes, that the operating system drops when its holder dies, however it dies.
 *
 * It is held on a file of its own that nothing else ever opens: closing any descriptor of a locked file drops the lock.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { Database, isBusy, storageError } from "./database.ts"
import type { StorageError } from "./storage.ts"

/** Milliseconds between two tries to get a lock that somebody else has. */
const pause = 25

/** The lock, held until it is closed, or `null` if somebody has it. */
export const tryFileLock = (path: string): Database | null => {
  let database: Database | undefined
  try {
    database = new Database(path, { locking: true })
    database.exec("BEGIN EXCLUSIVE")
    return database
  } catch (error) {
    database?.close()
    if (isBusy(error)) return null
    throw error
  }
}

/** Waits by the machine's clock: what is waited for is another process. */
export const waitForProcess = (milliseconds: number): Effect.Effect<void> =>
  Effect.callback<void>((resume) => {
    const timer = setTimeout(() => resume(Effect.void), milliseconds)
    return Effect.sync(() => clearTimeout(timer))
  })

/** Holds the lock of `path` for the life of the scope. Fails if somebody else has it for longer than `limitMillis`. */
export const fileLock = (path: string, limitMillis: number): Effect.Effect<void, StorageError, Scope.Scope> => {
  const take = Effect.gen(function*() {
    for (let waited = 0;; waited += pause) {
      const lock = yield* Effect.try({ try: () => tryFileLock(path), catch: (error) => storageError(error, path) })
      if (lock !== null) return lock
      if (waited >= limitMillis) return yield* storageError(new Error("another process holds it"), path)
      yield* waitForProcess(pause)
    }
  })
  return Effect.asVoid(Effect.acquireRelease(take, (lock) => Effect.sync(() => lock.close())))
}
