/**
 * The session hosts of this server as one service: their processes, and a shared client of each session's host.
 *
 * Shared because many callers, each with one call, would otherwise open and close a connection each.
 */
import type { FleetProcesses } from "@bezel/core/host"
import { makeKeyed } from "@bezel/core/location"
import type { ConnectionShape } from "@bezel/core/rpc"
import { ServiceError } from "@bezel/core/service"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"

/** A session stays open for so long after the last of those who share its client, and can be deleted only then. */
const idleTime = "1 second"
/** How long a caller waits for a host that is being started again. */
const patience = "15 seconds"

export interface HostProcessesShape extends FleetProcesses {
  /**
   * A client of the session's host, attached to it and connected. It belongs to all callers: nobody selects or drops it. After
   * a loss it reconnects by itself, so a caller that stays has a connection that comes back. That alone does not start the
   * session's work.
   */
  readonly attached: (sessionID: string) => Effect.Effect<ConnectionShape, ServiceError, Scope.Scope>
  /** The same, and the session's work runs from now on. */
  readonly working: (sessionID: string) => Effect.Effect<ConnectionShape, ServiceError, Scope.Scope>
  /** Lets the session go now, if nobody uses that client. */
  readonly letGo: (sessionID: string) => Effect.Effect<void>
}

/** Global, in whatever places session hosts. */
export class HostProcesses
  extends Context.Service<HostProcesses, HostProcessesShape>()("@bezel/server/HostProcesses")
{}

/** Completes when it is connected; fails with why it cannot be, as soon as somebody has said so. */
export const whenConnected = (connection: ConnectionShape): Effect.Effect<ConnectionShape, ServiceError> =>
  connection.state.changes.pipe(
    Stream.filter(({ reason, status }) =>
      status === "connected" || (status === "disconnected" && reason?.code === "unavailable")
    ),
    Stream.runHead,
    Effect.timeoutOrElse({ duration: patience, orElse: () => Effect.succeedNone }),
    Effect.flatMap((found) =>
      Option.isSome(found) && found.value.status === "connected"
        ? Effect.succeed(connection)
        : Effect.fail(
          new ServiceError({
            code: "unavailable",
            message: Option.isSome(found) && found.value.reason !== undefined
              ? found.value.reason.message
              : "The session host does not answer at the moment; try again."
          })
        )
    )
  )

/** For the length of the scope. */
export const sharingClients = (processes: FleetProcesses): Effect.Effect<HostProcessesShape, never, Scope.Scope> =>
  Effect.map(
    makeKeyed({
      make: (sessionID: string) => processes.attach(sessionID, "server", { resume: false }),
      idleTime
    }),
    (clients) => {
      const attached = (sessionID: string) => Effect.flatMap(clients.get(sessionID), whenConnected)
      return {
        ...processes,
        attached,
        working: (sessionID) => Effect.tap(attached(sessionID), (connection) => connection.select(sessionID)),
        letGo: clients.closeIdle
      }
    }
  )
