/**
 * A stand-in for a service that is not there yet: what `use` gives during setup.
 *
 * It may be kept; from activation on it does what the implementation does. Used earlier it throws an error that says so. After
 * activation `use` gives the implementation itself, so this detour exists only for what was captured during setup.
 */
export interface StandIn<A> {
  readonly value: A
  readonly resolve: (implementation: A) => void
}

export const makeStandIn = <A>(service: string, plugin: string): StandIn<A> => {
  let resolved: { readonly implementation: A } | null = null
  const target = (): object => {
    if (resolved === null) {
      throw new Error(
        `Plugin ${plugin} used service "${service}" during setup. Services can be used from activation on: see ctx.onActivate.`
      )
    }
    const { implementation } = resolved
    if ((typeof implementation !== "object" && typeof implementation !== "function") || implementation === null) {
      throw new Error(`Service "${service}" is no object, so plugin ${plugin} must call use when it needs it, not during setup.`)
    }
    return implementation
  }
  const value = new Proxy(() => {}, {
    get: (_, key) => {
      const implementation = target()
      const member: unknown = Reflect.get(implementation, key, implementation)
      return typeof member === "function" ? member.bind(implementation) : member
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
    // The one erasure of this file: the proxy answers as whatever the token's implementation is.
    value: value as A,
    resolve: (implementation) => {
      resolved = { implementation }
    }
  }
}
