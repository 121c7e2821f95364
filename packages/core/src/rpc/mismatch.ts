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

/** Names that a sentence has room for. */
const maxNames = 3

const named = (ids: ReadonlyArray<string>): string =>
  ids.length <= maxNames + 1
    ? ids.join(", ")
    : `${ids.slice(0, maxNames).join(", ")} and ${ids.length - maxNames} more`

/**
 * One sentence for all that differ in the same versions, with what to do: after an update of one side that is every plugin of
 * the program. `peer` is the other side, for people: `the coordinator`.
 */
export const mismatchTexts = (mismatches: ReadonlyArray<Mismatch>, peer: string): ReadonlyArray<string> => {
  const groups = new Map<string, { readonly of: Mismatch; readonly ids: Array<string> }>()
  for (const mismatch of mismatches) {
    const key = JSON.stringify([mismatch.kind, mismatch.here, mismatch.there])
    const group = groups.get(key)
    if (group === undefined) groups.set(key, { of: mismatch, ids: [mismatch.id] })
    else group.ids.push(mismatch.id)
  }
  return [...groups.values()].map(({ ids, of: { here, kind, there } }) => {
    const versions = `${ids.length === 1 ? "has" : "have"} version ${here} here and ${there} on the side of ${peer}`
    return kind === "plugin"
      ? `${ids.length === 1 ? "Plugin" : "Plugins"} ${named(ids)} ${versions}: restart both, or install one version.`
      : `${ids.length === 1 ? "The contract of service" : "The contracts of services"} ${named(ids)} ${versions}: ` +
        "update the older side."
  })
}
