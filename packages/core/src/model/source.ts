/**
 * Where a turn gets its models. `ProviderRegistry` is the one of a location; a test passes a scripted one.
 */
import type * as Effect from "effect/Effect"
import type { Model, ModelError, ModelRef } from "./model.ts"
import type { ListedModel } from "./provider.ts"

export interface ModelSource {
  /** `null` is the default model: the one that settings name, else `bezel/offline`. Fails with kind `unknown_model`. */
  readonly resolve: (ref: ModelRef | null) => Effect.Effect<Model, ModelError>
  readonly list: Effect.Effect<ReadonlyArray<ListedModel>>
}
