/** A server as what a terminal shows sessions of: records over its HTTP API, the sessions themselves over its WebSocket. */
import { connectWebSocket } from "@bezel/core/rpc"
import { BezelApi } from "@bezel/sdk"
import { connectTo } from "@bezel/server"
import * as Effect from "effect/Effect"
import * as HttpApiClient from "effect/http-api/HttpApiClient"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as Redacted from "effect/Redacted"
import { patchOf, type ShownSession, type TerminalHost } from "./terminal-host.ts"

export interface RemoteServer {
  readonly url: string
  readonly token: Redacted.Redacted
}

/** An answer that is an error, or none at all, in words. */
const asError = (server: RemoteServer) => (failure: unknown): Error => {
  if (typeof failure === "object" && failure !== null && "error" in failure) {
    const { error } = failure
    if (typeof error === "object" && error !== null && "message" in error && "code" in error) {
      return new Error(
        error.code === "unauthorized"
          ? `The server on ${server.url} does not know this token; --token or BEZEL_TOKEN give another one.`
          : String(error.message)
      )
    }
  }
  return new Error(`The server on ${server.url} does not answer.`, { cause: failure })
}

/** `directory`: where new sessions belong; `null`: where the server says. */
export const remoteTerminalHost = (server: RemoteServer, directory: string | null) =>
  Effect.gen(function*() {
    const base = new URL(server.url)
    const failed = asError(server)
    const authorization = `Bearer ${Redacted.value(server.token)}`
    const client = yield* HttpApiClient.make(BezelApi, {
      baseUrl: base,
      transformClient: HttpClient.mapRequest(HttpClientRequest.setHeader("authorization", authorization))
    }).pipe(Effect.provide(FetchHttpClient.layer))

    const shown = ({ id, location }: ShownSession): ShownSession => ({ id, location })
    const location = directory === null ? {} : { location: directory }
    const host: TerminalHost = {
      find: (id) => Effect.mapBoth(client.session.get({ params: { id } }), { onSuccess: shown, onFailure: failed }),
      latest: client.session.list({ query: { ...location, parent: "none", archived: false, limit: 1 } }).pipe(
        Effect.mapBoth({
          onSuccess: ({ items: [latest] }) => latest === undefined ? null : shown(latest),
          onFailure: failed
        })
      ),
      create: (chosen) =>
        Effect.mapBoth(client.session.create({ payload: { ...location, ...chosen } }), {
          onSuccess: shown,
          onFailure: failed
        }),
      choose: (id, chosen) => {
        const patch = patchOf(chosen)
        return patch === null
          ? Effect.void
          : Effect.mapError(client.session.config({ params: { id }, payload: patch }), failed)
      },
      agents: Effect.mapBoth(client.location.agents({ query: location }), {
        onSuccess: ({ items }) => items.map(({ name }) => name),
        onFailure: failed
      }),
      isEmpty: (id) =>
        Effect.mapBoth(client.session.messages({ params: { id }, query: { limit: 1 } }), {
          onSuccess: ({ items }) => items.length === 0,
          onFailure: failed
        }),
      connect: ({ id }, manifest) => {
        const door = new URL("rpc", base.href.replace(/\/*$/, "/"))
        door.protocol = base.protocol === "https:" ? "wss:" : "ws:"
        // Each session over a connection of its own: it may have a host of its own.
        const connect = (sessionID: string | null) => {
          door.searchParams.set("session", sessionID ?? id)
          return connectWebSocket(door.href, { headers: { authorization } })
        }
        return connectTo(connect, { label: "terminal", sessionID: id, manifest })
      }
    }
    return { host, remove: (id: string) => Effect.mapError(client.session.remove({ params: { id } }), failed) }
  })
