/**
 * What the file tools of one location share: one writer per real path at a time, and which state of a file each session
 * has seen last, so that an edit that no longer fits can say that the file has changed since.
 */
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import type { BigIntStats } from "node:fs"

export interface FileState {
  /** Runs alone among all that touch this real path in this location. */
  readonly exclusive: <A, E, R>(path: string, effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  readonly saw: (sessionID: string, path: string, stats: BigIntStats) => void
  /** `unknown` if the session has not seen the file. */
  readonly compare: (sessionID: string, path: string, stats: BigIntStats) => "same" | "changed" | "unknown"
  readonly forget: (sessionID: string) => void
}

const MAX_FILES_PER_SESSION = 1_000

export const makeFileState = (): FileState => {
  const locks = new Map<string, { readonly semaphore: Semaphore.Semaphore; users: number }>()
  const seen = new Map<string, Map<string, string>>()

  const acquire = (path: string) => {
    const lock = locks.get(path) ?? { semaphore: Semaphore.makeUnsafe(1), users: 0 }
    lock.users++
    locks.set(path, lock)
    return lock
  }

  return {
    exclusive: (path, effect) =>
      Effect.acquireUseRelease(
        Effect.sync(() => acquire(path)),
        (lock) => Semaphore.withPermit(lock.semaphore, effect),
        (lock) =>
          Effect.sync(() => {
            lock.users--
            if (lock.users === 0) locks.delete(path)
          })
      ),
    saw: (sessionID, path, stats) => {
      const files = seen.get(sessionID) ?? new Map<string, string>()
      // Deleting first keeps the order of a Map the order of use.
      files.delete(path)
      files.set(path, stampOf(stats))
      for (const oldest of files.keys()) {
        if (files.size <= MAX_FILES_PER_SESSION) break
        files.delete(oldest)
      }
      seen.set(sessionID, files)
    },
    compare: (sessionID, path, stats) => {
      const stamp = seen.get(sessionID)?.get(path)
      return stamp === undefined ? "unknown" : stamp === stampOf(stats) ? "same" : "changed"
    },
    forget: (sessionID) => {
      seen.delete(sessionID)
    }
  }
}

const stampOf = (stats: BigIntStats): string => `${stats.dev}:${stats.ino}:${stats.size}:${stats.mtimeNs}`
