/**
 * The providers of one location, made by replaying what plugins contribute.
 *
 * Contributing here makes nothing connect: a provider is opened when a turn resolves one of its models. The result that a
 * turn sees is whole or the one before; a transform that throws takes only itself out and is reported.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Contribution, type Contributions } from "../contribution/index.ts"
import { Location } from "../location/index.ts"
import {
  draftProviders,
  emptyProviders,
  finishProviders,
  listModels,
  type ProviderDraft,
  type ProviderTable,
  resolveModel
} from "./provider.ts"
import type { ModelSource } from "./source.ts"

export interface ProviderRegistryService extends ModelSource {
  /** The fold itself, for the host that hands `transform`, `reload` and `list` to plugins. */
  readonly contributions: Contributions<ProviderDraft, ProviderTable>
  readonly table: Effect.Effect<ProviderTable>
}

/** Location service. */
export class ProviderRegistry extends Context.Service<ProviderRegistry, ProviderRegistryService>()(
  "@bezel/core/ProviderRegistry"
) {
  static readonly layer: Layer.Layer<ProviderRegistry, never, Location> = Layer.effect(
    ProviderRegistry,
    Effect.andThen(Location, Effect.suspend(() => makeProviderRegistry))
  )
}

export const makeProviderRegistry: Effect.Effect<ProviderRegistryService> = Effect.gen(function*() {
  const contributions = yield* Contribution.make({
    name: "providers",
    empty: emptyProviders,
    draft: (state, contributor) => draftProviders(state, contributor.plugin),
    finish: finishProviders
  })
  const table = contributions.current
  return {
    contributions,
    table,
    resolve: (ref) => Effect.flatMap(table, (current) => resolveModel(current, ref)),
    list: Effect.map(table, listModels)
  }
})
