/** Notices when a turn ends: the setting, and how a terminal gets to know it. */
import { RemoteService } from "@bezel/core/service"
import { SettingsKey } from "@bezel/core/settings"
import * as Schema from "effect/Schema"

/** `bell`: the terminal's bell. `osc9`: a message that many terminals show outside of their window. */
export const Notify = Schema.Literals(["off", "bell", "osc9"])
export type Notify = typeof Notify.Type

/** `notify` in `bezel.jsonc`. */
export const NotifySetting: SettingsKey<Notify> = SettingsKey.make("notify", {
  schema: Notify,
  default: "off",
  untrusted: "drop",
  description: "How the terminal says that a turn has ended or waits for you: off, bell, or osc9 for a message."
})

/** What the settings of a location say. */
export class Notices extends RemoteService.make("bezel.notices")({ methods: { how: { success: Notify } } }) {}
