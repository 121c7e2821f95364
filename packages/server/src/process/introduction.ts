/**
 * Introduction: how the host of a session learns for whom a connection is that its coordinator has opened.
 *
 * The first frame of a connection to a host's socket names the user that the coordinator has authenticated. The coordinator
 * writes it before anything of a relayed client goes through, so no client can say it of itself; and the socket is open to
 * this user alone.
 */
import type { Transport } from "@bezel/core/rpc"
import { ServiceError } from "@bezel/core/service"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { afterFirstFrame } from "./admission.ts"

const Introduced = Schema.Struct({ _tag: Schema.Literal("Introduced"), user: Schema.NullOr(Schema.String) })
const decode = Schema.decodeUnknownExit(Schema.fromJsonString(Introduced))

const stranger = new ServiceError({ code: "unauthorized", message: "This connection does not say for whom it is." })

/** The coordinator's side. `null`: for the coordinator itself. */
export const introducing = <E>(
  connect: Effect.Effect<Transport, E, Scope.Scope>,
  user: string | null
): Effect.Effect<Transport, E, Scope.Scope> =>
  Effect.tap(connect, (transport) =>
    Effect.sync(() => {
      transport.post(JSON.stringify({ _tag: "Introduced", user }))
    }))

/** The host's side. */
export const introduced = (
  transport: Transport,
  serve: (rest: Transport, client: { readonly user: string | null }) => Effect.Effect<void>
): Effect.Effect<void> =>
  afterFirstFrame(transport, (frame) => {
    const said = decode(frame)
    return Exit.isFailure(said) ? stranger : (rest) => serve(rest, { user: said.value.user })
  })
