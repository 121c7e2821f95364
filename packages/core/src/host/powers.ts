/**
 * What a session facet may do only where the manifest grants it, by name: to decide alone for the whole host. The last one to
 * say it holds, so two plugins that both may would take it from each other; and neither is what a plugin needs that adds
 * something.
 */
import * as Effect from "effect/Effect"
import type { FacetScope } from "../kernel/index.ts"

export const powers = ["turns", "reverting"] as const
export type Power = (typeof powers)[number]

/** The effect, for a plugin whose entry names the power; for another one a defect that says what to do. */
export const granted = <A, E, R>(
  { entry }: Pick<FacetScope<never>, "entry">,
  power: Power,
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  Effect.suspend(() =>
    entry.grants?.includes(power) === true ? effect : Effect.die(
      new Error(
        `Plugin ${entry.id} is not granted the power "${power}"; name it in "grants" of the plugin's entry, if you want that.`
      )
    )
  )
