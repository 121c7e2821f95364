/** A server as what a terminal shows sessions of: records over its HTTP API, the sessions themselves over its WebSocket. */
import { connectWebSocket } from "@bezel/core/rpc"
import { BezelError, makeEffectClient } from "@bezel/sdk"
import { connectTo } from "@bezel/server"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { Exit, exitCode } from "../exit.ts"
import { patchOf, type ShownSession, type TerminalHost } from "./terminal-host.ts"

export interface RemoteServer {
  readonly url: string
  readonly token: Redacted.Redacted
}

/** The first use of a folder starts its host, so this is longer than that takes. */
const patience = "15 seconds"

const shown = ({ id, location }: ShownSession): ShownSession => ({ id, location })

/** An agent or a model that the place does not have is a mistake in the command line. */
const asUsage = (error: Error): Error => {
  if (!(error instanceof BezelError) || error.code !== "invalid_arguments") return error
  const { data, message } = error
  const path = typeof data === "object" && data !== null && "path" in data ? data.path : null
  if (path !== "agent" && path !== "model") return error
  return new Exit(exitCode.usage, `${message.slice(0, 1).toLowerCase()}${message.slice(1).replace(/\.$/, "")}`)
}

/** `directory`: where new sessions belong; `null`: where the server says. */
export const remoteTerminalHost = (server: RemoteServer, directory: string | null): TerminalHost => {
  const base = server.url.replace(/\/+$/, "")
  const token = Redacted.value(server.token)
  const { location, session } = makeEffectClient({ url: base, token })
  const place = directory === null ? {} : { location: directory }
  const failed = <A>(call: Effect.Effect<A, BezelError>): Effect.Effect<A, Error> =>
    call.pipe(
      Effect.mapError((error) =>
        error.code === "unauthorized"
          ? new Error(`The server on ${base} does not know this token; --token or BEZEL_TOKEN give another one.`)
          : error
      ),
      Effect.timeoutOrElse({
        duration: patience,
        orElse: () => Effect.fail(new Error(`The server on ${base} does not answer.`))
      })
    )
  const host: TerminalHost = {
    find: (id) => failed(Effect.map(session.get(id), shown)),
    latest: session.list({ ...place, parent: "none", archived: false, limit: 1 }).pipe(
      Effect.map(({ items: [latest] }) => latest === undefined ? null : shown(latest)),
      failed
    ),
    create: (chosen) => Effect.mapError(failed(Effect.map(session.create({ ...place, ...chosen }), shown)), asUsage),
    choose: (id, chosen) => {
      const patch = patchOf(chosen)
      return patch === null ? Effect.void : Effect.mapError(failed(session.configure(id, patch)), asUsage)
    },
    agents: location.agents(directory ?? undefined).pipe(
      Effect.map((agents) => agents.map(({ name }) => name)),
      Effect.catchIf(({ code }) => code === "not_found", () => Effect.succeed(null)),
      failed
    ),
    isEmpty: (id) => failed(Effect.map(session.messages(id, { limit: 1 }), ({ items }) => items.length === 0)),
    remove: (id) => failed(session.remove(id)),
    connect: ({ id }, manifest) => {
      // Each session over a connection of its own: it may have a host of its own.
      const connect = (sessionID: string | null) =>
        connectWebSocket(`${base.replace(/^http/, "ws")}/rpc?session=${encodeURIComponent(sessionID ?? id)}`, {
          headers: { authorization: `Bearer ${token}` }
        })
      return connectTo(connect, { label: "terminal", sessionID: id, manifest })
    }
  }
  return host
}
