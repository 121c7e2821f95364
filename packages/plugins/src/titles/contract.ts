/** The section of `bezel.jsonc` that says how sessions are named. */
import { SettingsKey } from "@bezel/core/settings"
import * as Schema from "effect/Schema"

export const TitleSettings = Schema.Struct({
  model: Schema.optionalKey(
    Schema.String.check(
      Schema.makeFilter((name: string) => name === "session" || /^[^/\s]+\/\S+$/.test(name), {
        message: 'Expected "session", or a model like "provider/model"'
      })
    )
  ).annotateKey({
    description:
      "The model that names a session after its first answer: provider/model, or session for the session's own. Without it, a session is called by the beginning of its first prompt, and nothing is asked."
  })
})
export type TitleSettings = typeof TitleSettings.Type

export const TitleSetting: SettingsKey<TitleSettings> = SettingsKey.make("title", {
  schema: TitleSettings,
  default: {},
  untrusted: "drop",
  description: "How sessions are named."
})
