/** Sessions on disk that tests write, damage, and look at. */
import {
  openJsonl,
  openJsonlReader,
  openSqlite,
  openSqliteReader,
  type RepairReport,
  repairSession,
  type SessionInUse,
  type Storage,
  type StorageError,
  type StorageReader
} from "@bezel/core/storage"
import { Effect, type Scope } from "effect"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"

/** A session's folder, gone with the scope. */
export const sessionFolder: Effect.Effect<string, never, Scope.Scope> = Effect.acquireRelease(
  Effect.sync(() => fs.mkdtempSync(path.join(os.tmpdir(), "bezel-session-"))),
  (folder) => Effect.sync(() => fs.rmSync(folder, { recursive: true, force: true }))
)

export const journalIn = (folder: string): string => path.join(folder, "journal")
export const databaseIn = (folder: string): string => path.join(folder, "session.db")
export const segmentIn = (folder: string, segment = 1): string =>
  path.join(journalIn(folder), `${String(segment).padStart(6, "0")}.jsonl`)

/** Opens a session in JSON lines, lets it be written, and closes it. */
export const writing = <A, E>(folder: string, body: (storage: Storage) => Effect.Effect<A, E>) =>
  Effect.scoped(Effect.flatMap(openJsonl(journalIn(folder)), body))

export const reading = <A, E>(
  folder: string,
  body: (
    reader: StorageReader & { readonly damage: Effect.Effect<ReadonlyArray<string>, StorageError> }
  ) => Effect.Effect<A, E>
) => Effect.scoped(Effect.flatMap(openJsonlReader(journalIn(folder)), body))

export const writingSqlite = <A, E>(folder: string, body: (storage: Storage) => Effect.Effect<A, E>) =>
  Effect.scoped(Effect.flatMap(openSqlite(databaseIn(folder)), body))

export const readingSqlite = <A, E>(folder: string, body: (reader: StorageReader) => Effect.Effect<A, E>) =>
  Effect.scoped(Effect.flatMap(openSqliteReader(databaseIn(folder)), body))

export const repair = (folder: string, dryRun = false): Effect.Effect<RepairReport, StorageError | SessionInUse> =>
  repairSession(folder, { dryRun, at: Date.UTC(2026, 0, 2, 3, 4, 5) })

/** Changes bytes of a file; its line breaks can be counted on to be where they were. */
export const overwrite = (file: string, offset: number, bytes: Uint8Array): void => {
  const content = fs.readFileSync(file)
  content.set(bytes.subarray(0, Math.max(0, content.length - offset)), offset)
  fs.writeFileSync(file, content)
}

/** Replaces line `number`, from 1, by what `change` makes of it. */
export const changeLine = (file: string, number: number, change: (line: string) => string): void => {
  const lines = fs.readFileSync(file, "utf8").split("\n")
  lines[number - 1] = change(lines[number - 1] ?? "")
  fs.writeFileSync(file, lines.join("\n"))
}
