/**
 * The `Registries` service: what the plugins of a session host contribute to its location, as far as anybody may see it.
 *
 * Of the whole host, for every client that is connected. Nothing of a provider's options or keys is in it.
 */
import * as Schema from "effect/Schema"
import { RemoteService } from "../service/index.ts"

const Price = Schema.Struct({
  input: Schema.Finite,
  output: Schema.Finite,
  cacheRead: Schema.Finite,
  cacheWrite: Schema.Finite
})

export const ListedToolSchema = Schema.Struct({
  name: Schema.String,
  plugin: Schema.String,
  description: Schema.String,
  namesAccess: Schema.Boolean,
  replaced: Schema.Array(Schema.String),
  wrappedBy: Schema.Array(Schema.String)
})

export const ListedModelSchema = Schema.Struct({
  info: Schema.Struct({
    provider: Schema.String,
    model: Schema.String,
    name: Schema.String,
    contextWindow: Schema.NullOr(Schema.Finite),
    maxOutput: Schema.NullOr(Schema.Finite),
    reasoning: Schema.Boolean,
    images: Schema.Boolean,
    cost: Schema.NullOr(Price)
  }),
  availability: Schema.Union([
    Schema.Struct({ ready: Schema.Literal(true) }),
    /** Why its models cannot be used. */
    Schema.Struct({ ready: Schema.Literal(false), reason: Schema.String })
  ])
})

export class Registries extends RemoteService.make("bezel.registries")({
  methods: {
    /** By name. */
    tools: { success: Schema.Array(ListedToolSchema) },
    /** By provider, in the provider's own order. */
    models: { success: Schema.Array(ListedModelSchema) },
    /** Why a model cannot be named here, as a sentence: no provider, or none of its models, is called so. `null`: it can. */
    missingModel: {
      payload: Schema.Struct({ provider: Schema.String, model: Schema.String }),
      success: Schema.NullOr(Schema.String)
    }
  }
}) {}
