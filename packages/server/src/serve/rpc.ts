/**
 * `/rpc?session=ID`: the door for presentation hosts. A WebSocket whose frames are served by the host of that session.
 *
 * Whoever comes here has been authenticated. A presentation does what the person at a terminal can, plugins and permissions
 * included, so it takes a token that may do everything.
 */
import { acceptWebSockets } from "@bezel/core/rpc"
import * as Effect from "effect/Effect"
import * as FiberSet from "effect/FiberSet"
import type * as Scope from "effect/Scope"
import { type IncomingMessage, STATUS_CODES } from "node:http"
import type { Duplex } from "node:stream"
import { type Caller, mayDo } from "./caller.ts"
import type { FleetShape } from "./fleet.ts"

/** Answers an upgrade of an authenticated caller. */
export type OnUpgrade = (request: IncomingMessage, socket: Duplex, head: Buffer, caller: Caller) => void

/** Presentations at one time; more are refused. */
const most = 1_000

/** Refuses an upgrade in the shape of all errors of the API. */
export const refuseUpgrade = (
  socket: Duplex,
  status: number,
  error: { readonly code: string; readonly message: string }
): void => {
  const body = JSON.stringify({ error })
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}\r\ncontent-type: application/json\r\n` +
      `content-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`
  )
}

/** For the length of the scope, which ends all connections. */
export const rpcUpgrades = (fleet: FleetShape): Effect.Effect<OnUpgrade, never, Scope.Scope> =>
  Effect.gen(function*() {
    const run = yield* FiberSet.makeRuntime<never>()
    const admitted = new WeakMap<IncomingMessage, { readonly caller: Caller; readonly sessionID: string }>()
    let open = 0
    const accept = yield* acceptWebSockets({
      serve: (transport, request) => {
        const client = admitted.get(request)
        if (client === undefined) return void run(transport.close)
        open++
        run(Effect.ensuring(fleet.relay(client.sessionID, transport, client.caller), Effect.sync(() => open--)))
      }
    })
    return (request, socket, head, caller) => {
      socket.on("error", () => {})
      const sessionID = new URL(request.url ?? "/", "http://host").searchParams.get("session") ?? ""
      if (!mayDo(caller, "admin")) {
        return refuseUpgrade(socket, 403, { code: "forbidden", message: "This takes a token of scope admin." })
      }
      if (sessionID === "") {
        return refuseUpgrade(socket, 422, {
          code: "invalid_arguments",
          message: "Name the session to connect to: /rpc?session=ID."
        })
      }
      if (open >= most) {
        return refuseUpgrade(socket, 503, { code: "unavailable", message: "Too many presentations are connected." })
      }
      admitted.set(request, { caller, sessionID })
      accept(request, socket, head)
    }
  })
