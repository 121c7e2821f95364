/**
 * Providing, using and observing services from inside a facet: what the contexts of all hosts that provide services share.
 *
 * What is provided becomes visible with everything else that the facet registers, and goes with it. During setup `use` gives
 * a stand-in; from activation on it gives the implementation itself. Instances of a service with many are visible for the
 * scope that they are spawned in, at the longest for the facet's.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { FacetScope } from "../kernel/index.ts"
import type { LocalService, RemoteService, ServiceDirectoryShape, ServiceError } from "../service/index.ts"
import { observeInstances, RegistrationError, ServiceDirectory } from "../service/index.ts"
import type { ServiceProviding } from "./context.ts"
import type { ServiceRegistration } from "./registrations.ts"
import { makeStandIn } from "./stand-in.ts"

const isRemote = (token: RemoteService.Any | LocalService<unknown>): token is RemoteService.Any => "contract" in token

const taken = (service: string, key: string): RegistrationError =>
  new RegistrationError({
    reason: "duplicate",
    service,
    message: `Service "${service}" has an instance with key "${key}" already; end that one first, or take another key.`
  })

/** What one facet does with services, over the directory of its host. */
export const providing = (
  facet: Pick<FacetScope<ServiceRegistration>, "bound" | "entry" | "onActivate" | "register">,
  directory: ServiceDirectoryShape
): Omit<ServiceProviding, "state" | "events"> => {
  const owner = facet.entry.id

  /** An implementation that does not fit its token fails where it is given, not when everything is bound. */
  const rehearse = (
    publish: (scratch: ServiceDirectoryShape) => Effect.Effect<unknown, { readonly message: string }, Scope.Scope>
  ) =>
    Effect.flatMap(ServiceDirectory.make, (scratch) => Effect.scoped(publish(scratch))).pipe(
      Effect.catch((error) => Effect.die(new Error(error.message)))
    )

  // One implementation for both overloads; what is published under a token has been checked against it by the types above.
  const provide = (token: RemoteService.Any | LocalService<unknown>, implementation: never) =>
    Effect.gen(function*() {
      const publish = (to: ServiceDirectoryShape) =>
        isRemote(token)
          ? Effect.asVoid(to.provide(token, implementation, { owner }))
          : to.provideLocal(token, implementation, { owner })
      yield* rehearse(publish)
      yield* facet.register({ kind: "provide", service: token.id, publish: publish(directory) })
    })

  const provideMany: ServiceProviding["provideMany"] = (token) =>
    Effect.gen(function*() {
      yield* facet.register({
        kind: "provide",
        service: token.id,
        publish: directory.declare(token, { perSession: false })
      })
      const live = new Set<string>()
      return (key, implementation, { sessionID } = {}) =>
        Effect.gen(function*() {
          const place = JSON.stringify([sessionID ?? null, key])
          if (live.has(place)) return yield* taken(token.id, key)
          const placement = { owner, key, ...(sessionID === undefined ? {} : { session: sessionID }) }
          const publish = (to: ServiceDirectoryShape) => Effect.asVoid(to.provide(token, implementation, placement))
          yield* rehearse(publish)
          yield* Effect.acquireRelease(
            Effect.suspend(() => {
              live.add(place)
              return facet.register({
                kind: "provide",
                service: token.id,
                isInstance: true,
                publish: publish(directory)
              })
            }),
            (unregister) => Effect.andThen(unregister, Effect.sync(() => live.delete(place)))
          )
        })
    })

  // From activation on, as whatever else runs in the background.
  const observe: ServiceProviding["observe"] = (token, effect) =>
    facet.onActivate(observeInstances(directory, token, effect))

  const current = (token: RemoteService.Any | LocalService<unknown>): Effect.Effect<unknown, ServiceError> =>
    isRemote(token) ? directory.use(token) : directory.useLocal(token)

  /** Told once for each service, so that who holds it is known when its provider is reloaded. */
  const usedLate = new Set<string>()
  const useLate = (service: string) =>
    Effect.suspend(() => {
      if (usedLate.has(service)) return Effect.void
      usedLate.add(service)
      return Effect.asVoid(facet.register({ kind: "use", service, late: true, resolve: Effect.void }))
    })

  const use = (token: RemoteService.Any | LocalService<unknown>) =>
    Effect.suspend(() => {
      if (facet.bound()) return Effect.tap(Effect.orDie(current(token)), useLate(token.id))
      const methods = isRemote(token) ? Object.keys(token.contract.methods ?? {}) : []
      const { resolve, value } = makeStandIn<unknown>(token.id, owner, methods)
      return Effect.as(
        facet.register({ kind: "use", service: token.id, late: false, resolve: Effect.map(current(token), resolve) }),
        value
      )
    })

  return {
    // The overloads of the contract: the token's type decides what `provide` takes and what `use` gives.
    provide: provide as ServiceProviding["provide"],
    use: use as ServiceProviding["use"],
    find: <A>(token: LocalService<A>) =>
      Effect.match(directory.useLocal(token), { onSuccess: (found): A | null => found, onFailure: () => null }),
    provideMany,
    observe
  }
}
