/** What a person is told of a session that another process has: where it is open, if that is the server of this user. */
import { AppPaths } from "@bezel/core/settings"
import type { SessionInUse } from "@bezel/core/storage"
import { findServer } from "@bezel/server/discovery"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Exit, exitCode } from "../exit.ts"
import { serverFolders } from "./server-folders.ts"

/** Fails with where it is open; with the error itself where that is no server. */
export const tellWhere = (error: SessionInUse): Effect.Effect<never, Exit | SessionInUse> =>
  Effect.gen(function*() {
    const { holder, sessionID } = error
    const server = yield* findServer(yield* serverFolders)
    // The server itself has it, or one of the processes that it has started for sessions.
    const isTheirs = server !== null && (holder.pid === server.pid || holder.command.endsWith(" host-session"))
    if (!isTheirs) return yield* error
    return yield* Effect.fail(
      new Exit(
        exitCode.failed,
        `the session ${sessionID} is open in the server on ${server.url}; bezel attach --session ${sessionID} shows it, ` +
          "and it can be used here once nobody has it open there"
      )
    )
  }).pipe(Effect.provide(Layer.orDie(AppPaths.layer)))
