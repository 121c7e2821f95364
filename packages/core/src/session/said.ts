/**
 * What plugins say of all sessions of a location, in the order of the manifest, whenever each said it. What one says is there
 * from one synchronous step on and gone with another, so that a plugin which is exchanged is never there twice or not at all.
 */
import * as Effect from "effect/Effect"

/** One thing that was said. Identity is the object. */
export interface Saying<A> {
  readonly plugin: string
  /** Place of the plugin in the manifest. */
  readonly order: number
  readonly value: A
}

export interface Said<A> {
  readonly all: () => ReadonlyArray<Saying<A>>
  readonly replace: (change: {
    readonly remove: ReadonlyArray<Saying<A>>
    readonly add: ReadonlyArray<Saying<A>>
  }) => Effect.Effect<void>
}

export const makeSaid = <A>(): Said<A> => {
  let all: ReadonlyArray<Saying<A>> = []
  return {
    all: () => all,
    replace: ({ add, remove }) =>
      Effect.sync(() => {
        all = [...all.filter((saying) => !remove.includes(saying)), ...add]
          .sort((left, right) => left.order - right.order)
      })
  }
}
