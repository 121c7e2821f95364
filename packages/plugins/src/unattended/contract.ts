/** The setting for what sessions ask while nobody is there to answer. */
import { SettingsKey } from "@bezel/core/settings"
import * as Schema from "effect/Schema"

/** `wait`: it stays open for whoever comes. `deny`: it is settled at once, which the model is told. */
export const UnattendedPolicy = Schema.Literals(["wait", "deny"])
export type UnattendedPolicy = typeof UnattendedPolicy.Type

/** `unattended` in `bezel.jsonc`. */
export const UnattendedSetting: SettingsKey<UnattendedPolicy> = SettingsKey.make("unattended", {
  schema: UnattendedPolicy,
  default: "wait",
  untrusted: "drop",
  description: "What becomes of what a session asks while nobody is there: it waits, or is denied at once."
})
