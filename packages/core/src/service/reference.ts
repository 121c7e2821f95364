/**
 * Capabilities: an object that a method returns, with states, events and methods of its own.
 *
 * In the providing process it is the object itself. Across a connection the caller gets a reference, which is of that
 * connection alone: it ends when the caller releases it, when the connection ends, or some time after its owner has
 * completed it, and answers `stale_reference` from then on. What merely looks like one on the wire is data.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import type { Capability, ReferenceContract, RemoteService } from "./contract.ts"
import type { Implementation } from "./contract.ts"
import { misfitOf } from "./directory.ts"

export interface ReferenceOptions {
  /** How long holders can still use it after it is complete: 30 seconds if left out. */
  readonly grace?: Duration.Input
  /** Runs when the last remote holder is gone, each time. */
  readonly released?: Effect.Effect<void>
}

/** What the endpoint knows of a capability. */
export interface Issued {
  readonly token: RemoteService.Any
  /** Erased: the token says what its members are. */
  readonly implementation: object
  readonly completed: Latch.Latch
  readonly graceMillis: number
  readonly released: Effect.Effect<void>
  /** Connections that hold it now, each as often as it was returned to it. */
  holders: number
}

const issued = new WeakMap<object, Issued>()

/** What `RemoteReference.make` made of this object; undefined for any other. */
export const issuedOf = (value: unknown): Issued | undefined =>
  typeof value === "object" && value !== null ? issued.get(value) : undefined

export const isReference = (success: unknown): success is ReferenceContract<RemoteService.Any> =>
  typeof success === "object" && success !== null && "~reference" in success

/** On the implementation they are of, which may be of a class. */
const methodsOf = (token: RemoteService.Any, implementation: object): object =>
  Object.fromEntries(
    Object.keys(token.contract.methods ?? {}).map((name) => {
      const method: unknown = Reflect.get(implementation, name)
      return [name, typeof method === "function" ? method.bind(implementation) : method]
    })
  )

export const RemoteReference = {
  /** As a method's `success` in a contract: the method returns an object of this token. */
  of: <S extends RemoteService.Any>(token: S): ReferenceContract<S> => ({ "~reference": token }),

  /** Makes what such a method returns. An implementation that misses a member of its token is a bug and dies. */
  make: <S extends RemoteService.Any>(
    token: S,
    implementation: Implementation<S>,
    options: ReferenceOptions = {}
  ): Effect.Effect<Capability<S>> =>
    Effect.sync(() => {
      const misfit = misfitOf(token, implementation)
      if (misfit !== undefined) throw new Error(`A reference to service "${token.id}" needs ${misfit}.`)
      const capability = { ...implementation, ...methodsOf(token, implementation), release: Effect.void }
      issued.set(capability, {
        token,
        implementation: capability,
        completed: Latch.makeUnsafe(false),
        graceMillis: Duration.toMillis(options.grace ?? 30_000),
        released: options.released ?? Effect.void,
        holders: 0
      })
      return capability
    }),

  /** Its work is done: remote holders lose it after the grace time. */
  complete: (capability: object): Effect.Effect<void> =>
    Effect.suspend(() => {
      issuedOf(capability)?.completed.openUnsafe()
      return Effect.void
    }),

  /** How often it is held by connections now. */
  holders: (capability: object): number => issuedOf(capability)?.holders ?? 0
}
