/** A server as what a terminal shows sessions of: records over its HTTP API, the sessions themselves over its WebSocket. */
import { connectWebSocket } from "@bezel/core/rpc"
import { type BezelEffectClient, BezelError, makeEffectClient } from "@bezel/sdk"
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

/**
 * `directory`: where new sessions belong; `null`: where the server says. `again` is asked before each connection where the
 * server is by now; `null`: where it was.
 */
export const remoteTerminalHost = (
  server: RemoteServer,
  directory: string | null,
  again: Effect.Effect<RemoteServer | null>
): TerminalHost => {
  let now = server
  const base = () => now.url.replace(/\/+$/, "")
  const client = () => makeEffectClient({ url: base(), token: Redacted.value(now.token) })
  const ask = <A>(call: (client: BezelEffectClient) => Effect.Effect<A, BezelError>) =>
    Effect.suspend(() => call(client()))
  const place = directory === null ? {} : { location: directory }
  const failed = <A>(call: Effect.Effect<A, BezelError>): Effect.Effect<A, Error> =>
    call.pipe(
      Effect.mapError((error) =>
        error.code === "unauthorized"
          ? new Error(`The server on ${base()} does not know this token; --token or BEZEL_TOKEN give another one.`)
          : error
      ),
      Effect.timeoutOrElse({
        duration: patience,
        orElse: () => Effect.fail(new Error(`The server on ${base()} does not answer.`))
      })
    )
  const host: TerminalHost = {
    find: (id) => failed(Effect.map(ask(({ session }) => session.get(id)), shown)),
    latest: ask(({ session }) => session.list({ ...place, parent: "none", archived: false, limit: 1 })).pipe(
      Effect.map(({ items: [latest] }) => latest === undefined ? null : shown(latest)),
      failed
    ),
    create: (chosen) =>
      Effect.mapError(
        failed(Effect.map(ask(({ session }) => session.create({ ...place, ...chosen })), shown)),
        asUsage
      ),
    choose: (id, chosen) => {
      const patch = patchOf(chosen)
      return patch === null
        ? Effect.void
        : Effect.mapError(failed(ask(({ session }) => session.configure(id, patch))), asUsage)
    },
    agents: ask(({ location }) => location.agents(directory ?? undefined)).pipe(
      Effect.map((agents) => agents.map(({ name }) => name)),
      Effect.catchIf(({ code }) => code === "not_found", () => Effect.succeed(null)),
      failed
    ),
    isEmpty: (id) =>
      failed(
        Effect.map(ask(({ session }) => session.messages(id, { limit: 1 })), ({ items }) => items.length === 0)
      ),
    remove: (id) => failed(ask(({ session }) => session.remove(id))),
    connect: ({ id }, manifest) => {
      // Each session over a connection of its own: it may have a host of its own.
      const connect = (sessionID: string | null) =>
        Effect.flatMap(again, (found) => {
          now = found ?? now
          return connectWebSocket(
            `${base().replace(/^http/, "ws")}/rpc?session=${encodeURIComponent(sessionID ?? id)}`,
            { headers: { authorization: `Bearer ${Redacted.value(now.token)}` } }
          )
        })
      return connectTo(connect, { label: "terminal", sessionID: id, manifest })
    }
  }
  return host
}
