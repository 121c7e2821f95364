/** What two connected sides have in versions that differ: plugins of their manifests, and contracts of services. */
import * as Schema from "effect/Schema"
import type { PluginVersion } from "./wire.ts"

/** Both sides know it, in versions that differ. */
export const Mismatch = Schema.Struct({
  kind: Schema.Literals(["contract", "plugin"]),
  /** Of the service or the plugin. */
  id: Schema.String,
  here: Schema.String,
  there: Schema.String
})
export type Mismatch = typeof Mismatch.Type

/** One that only one side has, or that says no version, is no mismatch: it may have nothing to do on the other side. */
export const pluginMismatches = (
  here: ReadonlyArray<PluginVersion>,
  there: ReadonlyArray<PluginVersion>
): ReadonlyArray<Mismatch> => {
  const versions = new Map(there.map(({ id, version }) => [id, version]))
  return here.flatMap(({ id, version }) => {
    const other = versions.get(id)
    return version === undefined || other === undefined || other === version
      ? []
      : [{ kind: "plugin" as const, id, here: version, there: other }]
  })
}

/** One sentence, with what to do. `peer` is the other side, for people: `the coordinator`. */
export const mismatchText = ({ here, id, kind, there }: Mismatch, peer: string): string =>
  kind === "plugin"
    ? `Plugin ${id} has version ${here} here and ${there} on the side of ${peer}: restart both, or install one version.`
    : `The contract of service ${id} has version ${here} here and ${there} on the side of ${peer}: update the older side.`
