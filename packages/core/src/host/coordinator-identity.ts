/**
 * Who a session host is to its coordinator: installed by the transport after authentication, for the length of each call.
 * Nothing in a payload can set it.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { LocationRef } from "../location/index.ts"
import { ServiceError } from "../service/index.ts"

export interface HostIdentity {
  /** The host's name in the fleet. */
  readonly host: string
  /** Its place: directory and workspace. */
  readonly location: LocationRef
  /** The sessions that it has been given; `all` are those of its location. */
  readonly leases: "all" | ReadonlyArray<string>
}

/** The session host whose call this fiber serves, or `null` in the coordinator's own fibers. */
export const HostIdentity = Context.Reference<HostIdentity | null>("bezel/host/HostIdentity", {
  defaultValue: () => null
})

const unauthorized = (message: string) => new ServiceError({ code: "unauthorized", message })

/** The calling session host; what is not called by one is `unauthorized`. */
export const requireHost: Effect.Effect<HostIdentity, ServiceError> = Effect.flatMap(
  HostIdentity,
  (host) => host === null ? Effect.fail(unauthorized("Only a session host may call this.")) : Effect.succeed(host)
)

export const isSameLocation = (one: LocationRef, other: LocationRef): boolean =>
  one.directory === other.directory && one.workspaceID === other.workspaceID

/** Whether a host has been given a session. */
export const hasLease = (
  host: HostIdentity,
  session: { readonly id: string; readonly location: LocationRef }
): boolean =>
  isSameLocation(host.location, session.location) && (host.leases === "all" || host.leases.includes(session.id))

/** The calling host, if it has been given the session; else `unauthorized`, in the words for one that does not exist. */
export const requireLease = (
  session: { readonly id: string; readonly location: LocationRef } | null
): Effect.Effect<HostIdentity, ServiceError> =>
  Effect.flatMap(requireHost, (host) =>
    session !== null && hasLease(host, session)
      ? Effect.succeed(host)
      : Effect.fail(unauthorized("This host has no session of that id.")))
