/**
 * Upstream: a session host as the client of its coordinator.
 *
 * One connection per session host carries everything that its facets use of the coordinator; it is opened when the first of
 * them asks, and reconnects by itself. A host without a coordinator, as `bezel run` has it, is a case of its own: `use`
 * fails with `unavailable`, and whoever shows upstream things shows that there are none. While the connection is down,
 * facades keep their last values as stale and their calls fail.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { FacetScope } from "../kernel/index.ts"
import type { LocationRef } from "../location/index.ts"
import type { ConnectionShape, PluginVersion } from "../rpc/index.ts"
import { Mismatch } from "../rpc/index.ts"
import { MutableRemoteState, ServiceError } from "../service/index.ts"
import type { ConnectionState, SessionContext } from "./context.ts"

export interface UpstreamShape {
  /**
   * A connection to the coordinator as the session host of this place; it lives as long as the scope. Whenever it is made,
   * `manifest` is compared with the coordinator's.
   */
  readonly connect: (
    location: LocationRef,
    manifest: Effect.Effect<ReadonlyArray<PluginVersion>>
  ) => Effect.Effect<ConnectionShape, never, Scope.Scope>
}

/** How the session hosts of this process reach their coordinator; `null` where there is none. Global. */
export const Upstream = Context.Reference<UpstreamShape | null>("bezel/host/Upstream", { defaultValue: () => null })

/** The upstream side of one session host. */
export interface UpstreamOfHost {
  /** The one connection, opened if need be; `null` without a coordinator. */
  readonly connection: Effect.Effect<ConnectionShape | null>
  readonly state: MutableRemoteState<ConnectionState>
}

const State = Schema.Struct({
  status: Schema.Literals(["connecting", "connected", "disconnected"]),
  mismatches: Schema.optionalKey(Schema.Array(Mismatch))
})

/** For the length of the scope. */
export const makeUpstream = (
  location: LocationRef,
  manifest: Effect.Effect<ReadonlyArray<PluginVersion>>
): Effect.Effect<UpstreamOfHost, never, Scope.Scope> =>
  Effect.gen(function*() {
    const upstream = yield* Upstream
    const scope = yield* Effect.scope
    const state = yield* MutableRemoteState.make(State, { status: "disconnected" })
    if (upstream === null) return { connection: Effect.succeed(null), state }
    const open = Effect.gen(function*() {
      const connection = yield* upstream.connect(location, manifest)
      yield* Effect.forkScoped(
        Stream.runForEach(connection.state.changes, ({ mismatches, status }) =>
          state.set({ status, ...(mismatches === undefined ? {} : { mismatches }) }))
      )
      return connection
    })
    // For the host, not for the facet that asks first: nothing of that one's fiber lives on in it.
    const base = yield* Effect.context<never>()
    const opened = open.pipe(Scope.provide(scope), Effect.setContext(base), Effect.uninterruptible)
    return { connection: yield* Effect.cached(opened), state }
  })

const none = new ServiceError({
  code: "unavailable",
  message: "This host has no coordinator, so what only a coordinator knows is not available."
})

/** What one facet is given of it. */
export const upstreamOf = (
  facet: Pick<FacetScope<never>, "own">,
  upstream: UpstreamOfHost
): SessionContext["upstream"] => ({
  use: (token) =>
    Effect.flatMap(
      upstream.connection,
      (connection) => connection === null ? Effect.fail(none) : facet.own(connection.use(token))
    ),
  connection: upstream.state
})

/** For methods of a facet that pass a call on: a coordinator that cannot be reached is `unavailable` to one's own callers. */
export const viaUpstream = <A, E>(call: Effect.Effect<A, E>): Effect.Effect<A, E | ServiceError> =>
  Effect.catch(
    call,
    (error): Effect.Effect<never, E | ServiceError> =>
      error instanceof ServiceError && error.code === "disconnected"
        ? Effect.fail(
          new ServiceError({
            code: "unavailable",
            message: "The coordinator cannot be reached at the moment; try again when it is back."
          })
        )
        : Effect.fail(error)
  )
