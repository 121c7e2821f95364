/**
 * Tools of one harness alone: an overlay over the tools that it shares with others.
 *
 * Registering is a transform of one tool in a registry of the harness's own; nothing reaches the shared one. A name of the
 * overlay hides the shared tool of that name. A call is settled by whichever side offered it.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Registration } from "../harness/index.ts"
import { makeToolRegistry, type Materialization, type Tool, type ToolSource } from "../tool/index.ts"

export interface ToolOverlay {
  readonly tools: ToolSource
  readonly register: (name: string, tool: Tool) => Effect.Effect<Registration, never, Scope.Scope>
}

export const makeToolOverlay = Effect.fnUntraced(function*(shared: ToolSource): Effect.fn.Return<ToolOverlay> {
  const own = yield* makeToolRegistry()
  let registered = 0
  return {
    register: (name, tool) =>
      Effect.acquireRelease(
        Effect.suspend(() => {
          registered++
          return own.transform({ plugin: "harness", version: "0", order: 0 }, (draft) => draft.set(name, tool))
        }),
        () =>
          Effect.sync(() => {
            registered--
          })
      ),
    tools: {
      materialize: (options) =>
        Effect.suspend(() =>
          registered === 0
            ? shared.materialize(options)
            : Effect.map(
              Effect.all([shared.materialize(options), own.materialize(options)]),
              ([below, above]) => layered(below, above)
            )
        )
    }
  }
})

const layered = (below: Materialization, above: Materialization): Materialization => {
  const names = new Set(above.definitions.map((definition) => definition.name))
  const sideOf = (name: string): Materialization => names.has(name) ? above : below
  return {
    definitions: [...below.definitions.filter((definition) => !names.has(definition.name)), ...above.definitions].sort((
      a,
      b
    ) => a.name < b.name ? -1 : 1),
    accept: (name, args) => sideOf(name).accept(name, args),
    fresh: (call) => sideOf(call.name).fresh(call),
    settle: (call, api, options) => sideOf(call.name).settle(call, api, options)
  }
}
