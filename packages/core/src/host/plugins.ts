/**
 * The `Plugins` service: who is loaded in a session host, and having their code taken anew.
 *
 * Of the whole host, for every client that is connected. What a reload means is the kernel's business: see `Kernel.reload`.
 */
import * as Schema from "effect/Schema"
import { PluginStatus, ReloadFailed } from "../kernel/status.ts"
import { Mismatch, type PluginVersion } from "../rpc/index.ts"
import { RemoteService } from "../service/index.ts"
import { SettingsError } from "../settings/error.ts"

/** What others compare with theirs: of the plugins that run here, the versions that are known. */
export const versionsOf = (plugins: ReadonlyArray<PluginStatus>): ReadonlyArray<PluginVersion> =>
  plugins.flatMap(({ id, state, version }) =>
    state === "failed" || state === "closed" ? [] : [{ id, ...(version === null ? {} : { version }) }]
  )

/** Ids of the plugins that were set up anew. */
const Reloaded = Schema.Struct({ plugins: Schema.Array(Schema.String) })

export class Plugins extends RemoteService.make("bezel.plugins")({
  state: {
    /** What this host (`here`) and its coordinator (`there`) have in different versions. */
    upstream: Schema.Array(Mismatch)
  },
  methods: {
    /** All plugins of the host in manifest order, and the state of each. */
    list: { success: Schema.Array(PluginStatus) },
    /** Loads the code of these plugins anew, or of all whose code can be. What fails leaves the old code running. */
    reload: {
      payload: Schema.Struct({ plugins: Schema.optionalKey(Schema.Array(Schema.String)) }),
      success: Reloaded,
      error: ReloadFailed
    },
    /** Reads the settings anew, and sets up again those that have read what has changed. */
    reloadSettings: { success: Reloaded, error: Schema.Union([ReloadFailed, SettingsError]) }
  }
}) {}
