/** What the limits plugin takes from the manifest. */
import * as Schema from "effect/Schema"

export const LimitsOptions = Schema.Struct({
  /** Requests to the model in one turn. */
  maxSteps: Schema.optionalKey(
    Schema.Int.check(Schema.isGreaterThan(0, { message: "Expected a number of steps above 0" }))
  ),
  /** US dollars that one session may cost. */
  maxCostUSD: Schema.optionalKey(
    Schema.Finite.check(Schema.isGreaterThan(0, { message: "Expected an amount of US dollars above 0" }))
  )
})
export type LimitsOptions = typeof LimitsOptions.Type
