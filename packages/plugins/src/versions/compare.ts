/** Which plugins two hosts have loaded in different versions. */
import type { PluginStatus } from "@bezel/core/kernel"

type Loaded = Pick<PluginStatus, "id" | "version" | "state">

export interface VersionMismatch {
  readonly plugin: string
  readonly here: string | null
  readonly there: string | null
}

const isThere = ({ state }: Loaded): boolean => state === "loaded" || state === "starting" || state === "absent"

/** A plugin that one side has not at all is no mismatch: its other facets may have nothing to do there. */
export const versionMismatches = (
  here: ReadonlyArray<Loaded>,
  there: ReadonlyArray<Loaded>
): ReadonlyArray<VersionMismatch> =>
  here.filter(isThere).flatMap(({ id, version }) => {
    const other = there.find((plugin) => plugin.id === id && isThere(plugin))
    return other === undefined || other.version === version
      ? []
      : [{ plugin: id, here: version, there: other.version }]
  })

const shown = (version: string | null): string => version ?? "no version"

/** One sentence, with what to do. */
export const mismatchText = (mismatches: ReadonlyArray<VersionMismatch>): string =>
  `Plugins differ between this terminal and the session's host: ${
    mismatches.map(({ here, plugin, there }) => `${plugin} is ${shown(here)} here and ${shown(there)} there`).join(", ")
  }. Restart both, or install one version.`
