/**
 * A stand-in for a service that is not there yet: what `use` gives during setup.
 *
 * It may be kept, and effects may be made of its methods; from activation on it does what the implementation does. Used earlier it throws an error that says so. After
 * activation `use` gives the implementation itself, so this detour exists only for what was captured during setup.
 */
import * as Effect from "effect/Effect"

export interface StandIn<A> {
  readonly value: A
  readonly resolve: (implementation: A) => void
}

/** `methods` are known to give effects: they may be called during setup, as long as the effect runs later. */
export const makeStandIn = <A>(service: string, plugin: string, methods: ReadonlyArray<string> = []): StandIn<A> => {
  let resolved: { readonly implementation: A } | null = null
  const target = (): object => {
    if (resolved === null) {
      throw new Error(
        `Plugin ${plugin} used service "${service}" during setup. Services can be used from activation on: see ctx.onActivate.`
      )
    }
    const { implementation } = resolved
    if ((typeof implementation !== "object" && typeof implementation !== "function") || implementation === null) {
      throw new Error(
        `Service "${service}" is no object, so plugin ${plugin} must call use when it needs it, not during setup.`
      )
    }
    return implementation
  }
  const value = new Proxy(() => {}, {
    get: (_, key) => {
      const read = (): unknown => {
        const implementation = target()
        const member: unknown = Reflect.get(implementation, key, implementation)
        return typeof member === "function" ? member.bind(implementation) : member
      }
      if (resolved !== null || typeof key !== "string" || !methods.includes(key)) return read()
      return (...input: ReadonlyArray<unknown>) =>
        Effect.suspend((): Effect.Effect<unknown, unknown> => {
          const method = read()
          const result: unknown = typeof method === "function" ? Reflect.apply(method, undefined, input) : undefined
          return Effect.isEffect(result)
            ? result as Effect.Effect<unknown, unknown>
            : Effect.die(new Error(`"${key}" of service "${service}" did not return an Effect.`))
        })
    },
    has: (_, key) => Reflect.has(target(), key),
    ownKeys: () => Reflect.ownKeys(target()),
    set: (_, key, next) => Reflect.set(target(), key, next),
    apply: (_, self, input) => {
      const implementation = target()
      if (typeof implementation !== "function") throw new TypeError(`Service "${service}" is not a function.`)
      return Reflect.apply(implementation, self, input)
    }
  })
  return {
    // The one erasure of this function's result: the proxy answers as whatever the token's implementation is.
    value: value as A,
    resolve: (implementation) => {
      resolved = { implementation }
    }
  }
}
