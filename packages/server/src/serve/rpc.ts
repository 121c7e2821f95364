/**
 * `/rpc?session=ID`: the door for presentation hosts. A WebSocket whose frames are served by the host of that session.
 *
 * Whoever comes here has been authenticated, with a token that may do everything: a presentation does what the person at a
 * terminal can, plugins and permissions included.
 */
import { acceptWebSockets } from "@bezel/core/rpc"
import * as Effect from "effect/Effect"
import * as FiberSet from "effect/FiberSet"
import type * as Scope from "effect/Scope"
import type { IncomingMessage } from "node:http"
import type { Duplex } from "node:stream"
import { failure } from "../http/failure.ts"
import { refuseUpgrade } from "../http/raw-answers.ts"
import type { Caller } from "./caller.ts"
import type { FleetShape } from "./fleet.ts"

/** Answers an upgrade of an authenticated caller. */
export type OnUpgrade = (request: IncomingMessage, socket: Duplex, head: Buffer, caller: Caller) => void

/** Presentations at one time; more are refused. */
const most = 1_000

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
      if (sessionID === "") {
        return refuseUpgrade(socket, failure("invalid_request", "Name the session to connect to: /rpc?session=ID."))
      }
      if (open >= most) {
        return refuseUpgrade(socket, failure("unavailable", `${most} presentations are connected, which is the limit.`))
      }
      admitted.set(request, { caller, sessionID })
      accept(request, socket, head)
    }
  })
