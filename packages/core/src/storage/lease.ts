/**
 * The writer lease of a session: at most one process writes, and who it is can be told.
 *
 * The lease is a lock that the operating system drops when its holder dies, however it dies, so a dead holder is replaced
 * at once. The lock is on the file itself, so a session reached through a symlink is the same session. Beside it, a small JSON
 * file says who holds it; that file is information only and may be stale.
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as fs from "node:fs"
import * as nodePath from "node:path"
import { type Database, storageError } from "./database.ts"
import { tryFileLock as tryLock, waitForProcess as wait } from "./file-lock.ts"
import { SessionInUse } from "./storage.ts"
import type { StorageError } from "./storage.ts"

const Holder = Schema.Struct({ pid: Schema.Int, startedAt: Schema.String, command: Schema.String })
type Holder = typeof Holder.Type

const decodeHolder = Schema.decodeUnknownSync(Schema.fromJsonString(Holder))

/** How often, and every how many milliseconds, to try again while the holder is unknown or gone. */
const retries = 40
const pause = 25

export const currentProcess = (): Holder => ({
  pid: process.pid,
  startedAt: new Date(Date.now() - Math.round(process.uptime() * 1_000)).toISOString(),
  command: process.argv.slice(0, 3).map((part, index) => index < 2 ? nodePath.basename(part) : part).join(" ").slice(
    0,
    200
  )
})

const readHolder = (path: string): Holder | null => {
  try {
    return decodeHolder(fs.readFileSync(path, "utf8"))
  } catch {
    return null
  }
}

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM"
  }
}

/** A lease that somebody has said to hold. */
export interface LeaseState {
  /** `stale`: the holder is gone without having given it back; whoever opens the session next takes it over. */
  readonly state: "held" | "stale"
  /** `null`: what it said cannot be read. */
  readonly holder: Holder | null
}

/** The lease of the session in `folder`, or `null` if nobody has it. Changes nothing; a free lock is taken for an instant. */
export const leaseState = (folder: string): Effect.Effect<LeaseState | null, StorageError> =>
  Effect.try({
    try: (): LeaseState | null => {
      const [holderPath, lockPath] = [nodePath.join(folder, "lease.json"), nodePath.join(folder, "lease.db")]
      if (!fs.existsSync(holderPath)) return null
      const holder = readHolder(holderPath)
      if (!fs.existsSync(lockPath)) return { state: "stale", holder }
      const lock = tryLock(lockPath)
      lock?.close()
      return { state: lock === null ? "held" : "stale", holder }
    },
    catch: (error) => storageError(error, folder)
  })

const publish = (path: string): void => {
  const temporary = `${path}.${process.pid}`
  fs.writeFileSync(temporary, JSON.stringify(currentProcess()), { mode: 0o600 })
  fs.renameSync(temporary, path)
}

/** Holds the lease of the session in `folder` for the life of the scope, or fails with who holds it. */
export const acquireLease = (
  sessionID: string,
  folder: string
): Effect.Effect<void, StorageError | SessionInUse, Scope.Scope> => {
  const lockPath = nodePath.join(folder, "lease.db")
  const holderPath = nodePath.join(folder, "lease.json")
  const take: Effect.Effect<Database, StorageError | SessionInUse> = Effect.gen(function*() {
    for (let round = 0;; round++) {
      const lock = yield* Effect.try({ try: () => tryLock(lockPath), catch: (error) => storageError(error, lockPath) })
      if (lock !== null) {
        return yield* Effect.try({
          try: () => {
            publish(holderPath)
            return lock
          },
          catch: (error) => {
            lock.close()
            return storageError(error, holderPath)
          }
        })
      }
      const holder = readHolder(holderPath)
      // A holder that is alive has it. One that is not is being replaced, by somebody who has not said so yet.
      if (holder !== null && isAlive(holder.pid)) return yield* new SessionInUse({ sessionID, holder })
      if (round === retries) {
        return yield* new SessionInUse({
          sessionID,
          holder: { pid: 0, startedAt: "", command: "a process that has not said which" }
        })
      }
      yield* wait(pause)
    }
  })
  return Effect.asVoid(Effect.acquireRelease(take, (lock) =>
    Effect.sync(() => {
      // First the name, then the lock: the next holder's name is never deleted.
      fs.rmSync(holderPath, { force: true })
      lock.close()
    })))
}
