/**
 * Providing and using services from inside a facet: what the contexts of all hosts that provide services share.
 *
 * What is provided becomes visible with everything else that the facet registers, and goes with it. During setup `use` gives
 * a stand-in; from activation on it gives the implementation itself.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { FacetScope } from "../kernel/index.ts"
import type { LocalService, RemoteService, ServiceDirectoryShape, ServiceError } from "../service/index.ts"
import { ServiceDirectory } from "../service/index.ts"
import type { SessionContext } from "./context.ts"
import type { ServiceRegistration } from "./registrations.ts"
import { makeStandIn } from "./stand-in.ts"

const isRemote = (token: RemoteService.Any | LocalService<unknown>): token is RemoteService.Any => "contract" in token

/** `provide` and `use` of one facet, over the directory of its host. */
export const providing = (
  facet: Pick<FacetScope<ServiceRegistration>, "bound" | "entry" | "register">,
  directory: ServiceDirectoryShape
): Pick<SessionContext, "provide" | "use"> => {
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

  const find = (token: RemoteService.Any | LocalService<unknown>): Effect.Effect<unknown, ServiceError> =>
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
      if (facet.bound()) return Effect.tap(Effect.orDie(find(token)), useLate(token.id))
      const methods = isRemote(token) ? Object.keys(token.contract.methods ?? {}) : []
      const { resolve, value } = makeStandIn<unknown>(token.id, owner, methods)
      return Effect.as(
        facet.register({ kind: "use", service: token.id, late: false, resolve: Effect.map(find(token), resolve) }),
        value
      )
    })

  return {
    // The overloads of the contract: the token's type decides what `provide` takes and what `use` gives.
    provide: provide as SessionContext["provide"],
    use: use as SessionContext["use"]
  }
}
