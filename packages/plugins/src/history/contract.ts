/** What the history of a session may take, and the section of `bezel.jsonc` that says so. */
import { SettingsKey } from "@bezel/core/settings"
import * as Schema from "effect/Schema"
import { Bytes } from "../settings/contract.ts"

export const SnapshotSettings = Schema.Struct({
  enabled: Schema.optionalKey(Schema.Boolean).annotateKey({
    description: "false keeps nothing: what a session changed in files cannot be taken back then."
  }),
  maxFile: Schema.optionalKey(Bytes).annotateKey({ description: "Larger files are left out; default 5 MiB." }),
  maxTotal: Schema.optionalKey(Bytes).annotateKey({ description: "What one session keeps at most; default 256 MiB." })
})
export type SnapshotSettings = typeof SnapshotSettings.Type

export const SnapshotsSetting: SettingsKey<SnapshotSettings> = SettingsKey.make("snapshots", {
  schema: SnapshotSettings,
  default: {},
  untrusted: "drop",
  description: "What is kept of files that a session changes, so that it can be taken back."
})
