/** A client of a session host: connected, and attached to a session if one is named. */
import { Connection, type ConnectionOptions, type ConnectionShape, type PluginVersion } from "@bezel/core/rpc"
import { ServiceError } from "@bezel/core/service"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"

export interface ConnectOptions {
  /** What this client is, for people: `terminal`. */
  readonly label: string
  /** The plugins of this side, which are compared with the host's. */
  readonly manifest?: ReadonlyArray<PluginVersion>
  /** Attaches to this session before the connection is handed out. */
  readonly sessionID?: string
  /** `false`: that alone does not start the session's work. */
  readonly resume?: boolean
  /** How long to wait for the host; default 10 seconds. */
  readonly timeLimit?: Duration.Input
}

/** Lives as long as the scope, and reconnects by itself. */
export const connectTo = (
  connect: ConnectionOptions["connect"],
  options: ConnectOptions
): Effect.Effect<ConnectionShape, ServiceError, Scope.Scope> =>
  Effect.gen(function*() {
    const connection = yield* Connection.make({
      connect,
      ...(options.sessionID === undefined ? {} : { firstSession: options.sessionID }),
      label: options.label,
      peer: "the session host",
      manifest: Effect.succeed(options.manifest ?? [])
    })
    yield* connection.state.changes.pipe(
      Stream.filter(({ status }) => status === "connected"),
      Stream.runHead,
      Effect.timeoutOrElse({
        duration: options.timeLimit ?? "10 seconds",
        orElse: () =>
          Effect.fail(new ServiceError({ code: "timeout", message: "The session host did not answer in time." }))
      })
    )
    if (options.sessionID !== undefined) yield* connection.select(options.sessionID, { resume: options.resume ?? true })
    return connection
  })
