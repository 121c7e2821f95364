/**
 * A line that one effect passes at a time, and that what runs in it may pass again.
 *
 * Code that a change runs may itself want a change: it is then part of the one under way, since waiting for its end would
 * never end. This holds for the fibers that it starts too, for as long as the outer change lasts.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"

interface Passage {
  readonly line: object
  isOpen: boolean
  readonly outer: Passage | null
}

const CurrentPassage = Context.Reference<Passage | null>("@bezel/core/kernel/CurrentPassage", {
  defaultValue: () => null
})

export type Line = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

const isInside = (passage: Passage | null, line: object): boolean =>
  passage !== null && (passage.line === line && passage.isOpen || isInside(passage.outer, line))

export const makeLine = (): Line => {
  const line = Semaphore.makeUnsafe(1)
  return (effect) =>
    Effect.flatMap(CurrentPassage, (outer) => {
      if (isInside(outer, line)) return effect
      return Effect.suspend(() => {
        const passage: Passage = { line, isOpen: true, outer }
        return Effect.ensuring(
          Effect.provideService(effect, CurrentPassage, passage),
          Effect.sync(() => {
            passage.isOpen = false
          })
        )
      }).pipe(line.withPermit)
    })
}
