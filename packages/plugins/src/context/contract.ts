/** What the context plugin takes from the manifest. */
import * as Schema from "effect/Schema"

export const ContextOptions = Schema.Struct({
  /** Where the user's own `AGENTS.md` is; default: the config folder of this user. */
  configDirectory: Schema.optionalKey(Schema.String),
  /** Added after everything else, as `--system` does. */
  system: Schema.optionalKey(Schema.String)
})
export type ContextOptions = typeof ContextOptions.Type
