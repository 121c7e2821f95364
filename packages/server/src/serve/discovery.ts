/**
 * Discovery: how programs of this user find the server that runs on their data folder, and how a second server learns that it
 * is the second.
 *
 * The lease in the data folder is the truth: it ends with the process that has it, however that ends. The note in the state
 * folder says where that server listens. A note whose process is gone, or is another one of the same number, is none.
 */
import { writePrivateFile } from "@bezel/core/settings"
import { acquireLease } from "@bezel/core/storage"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { createHash } from "node:crypto"
import * as fs from "node:fs"
import * as path from "node:path"
import { isSameProcess, startOf } from "../process/process-table.ts"

const Note = Schema.Struct({
  url: Schema.String,
  pid: Schema.Int,
  /** When that process started, in the system's unit. */
  start: Schema.String,
  /** The data folder that it serves. */
  data: Schema.String,
  version: Schema.String
})
export type ServerNote = typeof Note.Type

const decode = Schema.decodeUnknownExit(Schema.fromJsonString(Note))

export interface ServerFolders {
  /** The data folder: one server at a time. */
  readonly data: string
  /** The server's own folder in the state folder. */
  readonly state: string
}

/** Another server has this data folder, or nobody can have it. */
export class ServerClaimed extends Schema.TaggedError<ServerClaimed>()("ServerClaimed", { message: Schema.String }) {}

const real = (folder: string): string => {
  try {
    return fs.realpathSync(folder)
  } catch {
    return path.resolve(folder)
  }
}

const noteFile = ({ data, state }: ServerFolders): string =>
  path.join(state, `${createHash("sha256").update(real(data)).digest("hex").slice(0, 12)}.json`)

/** The server that runs on this data folder; `null` if there is none, or none that says where it is. */
export const findServer = (folders: ServerFolders): Effect.Effect<ServerNote | null> =>
  Effect.sync(() => {
    let text: string
    try {
      text = fs.readFileSync(noteFile(folders), "utf8")
    } catch {
      return null
    }
    const note = decode(text)
    return Exit.isSuccess(note) && note.value.data === real(folders.data) && isSameProcess(note.value)
      ? note.value
      : null
  })

/** Makes this process the server of the data folder for the length of the scope. */
export const claimServer = (folders: ServerFolders): Effect.Effect<void, ServerClaimed, Scope.Scope> =>
  Effect.gen(function*() {
    const folder = path.join(folders.data, "server")
    yield* Effect.try({
      try: () => {
        for (const made of [folders.data, folder, folders.state]) fs.mkdirSync(made, { recursive: true, mode: 0o700 })
      },
      catch: (error) => new ServerClaimed({ message: `The folder ${folder} cannot be made: ${String(error)}` })
    })
    yield* acquireLease("server", folder).pipe(
      Effect.catch((error) =>
        Effect.flatMap(findServer(folders), (note) =>
          new ServerClaimed({
            message: error._tag !== "SessionInUse"
              ? `The data folder ${folders.data} cannot be claimed: ${error.message}`
              : note !== null
              ? `A server runs on this data folder already: ${note.url} (process ${note.pid}); bezel attach shows its sessions.`
              : `A server runs on the data folder ${folders.data} already: process ${error.holder.pid} (${error.holder.command}).`
          }))
      )
    )
  })

/** Says where this process listens, for the length of the scope. */
export const announceServer = (
  folders: ServerFolders,
  { url, version }: { readonly url: string; readonly version: string }
): Effect.Effect<void, never, Scope.Scope> => {
  const file = noteFile(folders)
  const note: ServerNote = {
    url,
    pid: process.pid,
    start: startOf(process.pid) ?? "",
    data: real(folders.data),
    version
  }
  return Effect.acquireRelease(
    Effect.catch(
      writePrivateFile(file, `${JSON.stringify(note)}\n`),
      ({ reason }) => Effect.logWarning(`${file} cannot be written, so nobody finds this server: ${reason}`)
    ),
    () => Effect.sync(() => fs.rmSync(file, { force: true }))
  )
}
