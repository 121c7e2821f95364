/**
 * Where sessions are kept: a folder per session under one data directory, or memory.
 *
 * `<directory>/sessions/<session id>/` (0700) holds `session.db` (0600) or the folder `journal/` with JSON lines, the lease
 * beside it, and `files/` for artifacts. What is there decides how a session is opened; the option is for new ones. One
 * process at a time may write a session, any number may read it meanwhile. What holds a session's folder open is its lease,
 * so removing one that is in use is refused.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as fs from "node:fs"
import * as os from "node:os"
import * as nodePath from "node:path"
import { privateFolder } from "../location/index.ts"
import { attempt } from "./database.ts"
import type { Durability } from "./database.ts"
import { openJsonl, openJsonlReader } from "./jsonl.ts"
import { acquireLease, currentProcess } from "./lease.ts"
import { MemorySession } from "./memory.ts"
import { notFound } from "./records.ts"
import { formatIn, isSessionID, sessionPaths, sessionsFolder } from "./session-paths.ts"
import type { SessionFormat } from "./session-paths.ts"
import { openSqlite, openSqliteReader } from "./sqlite.ts"
import { SessionInUse } from "./storage.ts"
import type { SessionFiles, StorageError, StorageReader } from "./storage.ts"

export interface SessionStorageOptions {
  /** The data directory; created when it is not there. */
  readonly directory: string
  /** Default `process`. */
  readonly durability?: Durability
  /** How new sessions are kept. Default `sqlite`. */
  readonly format?: SessionFormat
}

const makeFiles = (options: SessionStorageOptions): Effect.Effect<SessionFiles, StorageError> =>
  Effect.gen(function*() {
    const sessions = yield* attempt(options.directory, () => {
      const path = sessionsFolder(options.directory)
      privateFolder(path)
      return fs.realpathSync(path)
    })

    const folderOf = (sessionID: string): Effect.Effect<string, StorageError> =>
      isSessionID(sessionID)
        ? Effect.succeed(nodePath.join(sessions, sessionID))
        : Effect.fail(notFound(null, `${JSON.stringify(sessionID.slice(0, 200))} is not the id of a session`))

    const existing = (sessionID: string): Effect.Effect<string, StorageError> =>
      Effect.flatMap(folderOf(sessionID), (folder) =>
        Effect.flatMap(
          attempt(folder, () => fs.existsSync(folder)),
          (exists) =>
            exists
              ? Effect.succeed(folder)
              : Effect.fail(notFound(folder, `there is no session ${sessionID} in ${sessions}`))
        ))

    const write: SessionFiles["write"] = Effect.fn("SessionStorage.write")(function*(sessionID) {
      const folder = yield* folderOf(sessionID)
      yield* attempt(folder, () => privateFolder(folder))
      yield* acquireLease(sessionID, folder)
      const format = (yield* attempt(folder, () => formatIn(folder))) ?? options.format ?? "sqlite"
      const durability = options.durability ?? "process"
      return yield* format === "jsonl"
        ? openJsonl(sessionPaths(folder).jsonl, { fsync: durability === "power" })
        : openSqlite(sessionPaths(folder).sqlite, { durability })
    })

    const read: SessionFiles["read"] = Effect.fn("SessionStorage.read")(function*(sessionID) {
      const folder = yield* existing(sessionID)
      const paths = sessionPaths(folder)
      const open: Effect.Effect<StorageReader, StorageError, Scope.Scope> = (yield* attempt(folder, () =>
          formatIn(folder))) === "jsonl"
        ? openJsonlReader(paths.jsonl)
        : openSqliteReader(paths.sqlite)
      return yield* Effect.catch(
        open,
        (error) =>
          error.kind !== "older_version" ? Effect.fail(error) : Effect.scoped(write(sessionID)).pipe(
            // Whoever has it open now is the older Bezel.
            Effect.catchTag("SessionInUse", () => Effect.fail(error)),
            Effect.andThen(open)
          )
      )
    })

    const remove: SessionFiles["remove"] = Effect.fn("SessionStorage.remove")(function*(sessionID) {
      const folder = yield* existing(sessionID)
      yield* acquireLease(sessionID, folder)
      // Gone at once under its name, whatever then happens to what is in it.
      const grave = nodePath.join(sessions, `.removed-${sessionID}-${process.pid}-${Date.now()}`)
      yield* attempt(folder, () => {
        fs.renameSync(folder, grave)
        fs.rmSync(grave, { recursive: true, force: true })
      })
    }, Effect.scoped)

    const folder: SessionFiles["folder"] = Effect.fn("SessionStorage.folder")(function*(sessionID) {
      const path = nodePath.join(yield* folderOf(sessionID), "files")
      yield* attempt(path, () => privateFolder(path))
      return path
    })

    return { write, read, remove, folder }
  })

const makeMemory = Effect.gen(function*() {
  const sessions = new Map<string, MemorySession>()
  const writing = new Set<string>()
  let folders: string | undefined

  const inUse = (sessionID: string): SessionInUse => new SessionInUse({ sessionID, holder: currentProcess() })

  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      if (folders !== undefined) fs.rmSync(folders, { recursive: true, force: true })
    })
  )

  const write = (sessionID: string) =>
    Effect.acquireRelease(
      Effect.suspend(() => {
        if (writing.has(sessionID)) return Effect.fail(inUse(sessionID))
        writing.add(sessionID)
        const session = sessions.get(sessionID) ?? new MemorySession()
        sessions.set(sessionID, session)
        return Effect.succeed(session.storage())
      }),
      () => Effect.sync(() => writing.delete(sessionID))
    )

  const files: SessionFiles = {
    write,
    read: (sessionID) =>
      Effect.suspend(() => {
        const session = sessions.get(sessionID)
        return session === undefined
          ? Effect.fail(notFound(null, `there is no session ${sessionID}`))
          : Effect.succeed(session.storage())
      }),
    remove: (sessionID) =>
      Effect.suspend((): Effect.Effect<void, StorageError | SessionInUse> => {
        if (writing.has(sessionID)) return Effect.fail(inUse(sessionID))
        if (!sessions.delete(sessionID)) return Effect.fail(notFound(null, `there is no session ${sessionID}`))
        if (folders !== undefined) fs.rmSync(nodePath.join(folders, sessionID), { recursive: true, force: true })
        return Effect.void
      }),
    folder: (sessionID) =>
      attempt(sessionID, () => {
        folders ??= fs.mkdtempSync(nodePath.join(os.tmpdir(), "bezel-"))
        const path = nodePath.join(folders, sessionID)
        privateFolder(path)
        return path
      })
  }
  return files
})

/** The sessions' files, of the whole process. */
export class SessionStorage extends Context.Service<SessionStorage, SessionFiles>()("@bezel/core/SessionStorage") {
  /** In files under a data directory. */
  static readonly layer = (options: SessionStorageOptions): Layer.Layer<SessionStorage, StorageError> =>
    Layer.effect(SessionStorage, makeFiles(options))

  /** In memory, gone with the layer; artifacts are in a temporary folder until then. */
  static readonly layerMemory: Layer.Layer<SessionStorage> = Layer.effect(SessionStorage, makeMemory)
}
