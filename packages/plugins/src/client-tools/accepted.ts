/**
 * The arguments that a tool of a client takes, read from the JSON Schema that the client gives: what does not fit is told to
 * the model, and never reaches the client.
 *
 * Patterns are not checked: one can be written so that looking at a text with it never ends. What else a schema may say and
 * cannot be checked here is refused with the offer, so that no rule is passed over in silence.
 */
import type { JsonObject } from "@bezel/core/json"
import * as Effect from "effect/Effect"
import type * as Schema from "effect/Schema"
import { OfferRefused } from "./contract.ts"

/** Loaded with the first offer. */
const load = Effect.promise(() => Promise.all([import("effect/JsonSchema"), import("effect/SchemaRepresentation")]))

export const acceptedBy = (schema: JsonObject): Effect.Effect<Schema.Codec<JsonObject, unknown>, OfferRefused> =>
  Effect.flatMap(load, ([{ fromSchemaDraft2020_12 }, { fromJsonSchemaDocument }]) =>
    Effect.try({
      // The erasure point: it describes an object of JSON, as the schema says, and changes nothing of it.
      try: () =>
        fromJsonSchemaDocument(fromSchemaDraft2020_12(schema), { patterns: "ignore" }) as Schema.Codec<
          JsonObject,
          unknown
        >,
      catch: (cause) =>
        new OfferRefused({
          code: "invalid",
          message: `Arguments cannot be checked with this schema: ${
            (cause instanceof Error ? cause.message : String(cause)).replace(/\s+/g, " ").slice(0, 500)
          }`
        })
    }))
