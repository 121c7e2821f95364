/**
 * A context that stops working when its facet has been closed.
 *
 * Code outside Effect (a timer of the platform, a callback of a child process) can hold a context for longer than its facet
 * lives. Whatever it does with it then dies with `FacetClosed`, in the effect that did it and nowhere else.
 */
import * as Effect from "effect/Effect"
import { FacetClosed, type FacetScope } from "../kernel/index.ts"

type Members = { readonly [name: string]: unknown }

const isMembers = (value: unknown): value is Members =>
  typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype

/** `data` names the members that are values to read; they stay as they are. All others give effects or are made of such. */
export const guarded = <Context extends object>(
  context: Context,
  facet: Pick<FacetScope<never>, "closed" | "entry">,
  data: ReadonlyArray<keyof Context & string>
): Context => {
  const guardEffect = (effect: Effect.Effect<unknown, unknown, unknown>) =>
    Effect.suspend(() => facet.closed() ? Effect.die(stale(facet.entry.id)) : effect)

  const guard = (value: unknown): unknown => {
    if (Effect.isEffect(value)) return guardEffect(value)
    if (typeof value === "function") {
      return (...input: ReadonlyArray<unknown>): unknown => {
        if (facet.closed()) return Effect.die(stale(facet.entry.id))
        const given: unknown = Reflect.apply(value, undefined, input)
        return Effect.isEffect(given) ? guardEffect(given) : given
      }
    }
    return isMembers(value)
      ? Object.fromEntries(Object.entries(value).map(([name, part]) => [name, guard(part)]))
      : value
  }

  const members = Object.entries(context).map(([name, value]) =>
    data.some((exempt) => exempt === name) ? [name, value] : [name, guard(value)]
  )
  // The one erasure: every member has kept its shape.
  return Object.fromEntries(members) as Context
}

const stale = (plugin: string) =>
  new FacetClosed({ plugin, message: `Plugin ${plugin} used its context after it had been closed.` })
