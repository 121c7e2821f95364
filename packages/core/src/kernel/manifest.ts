/**
 * The manifest: which plugins a deployment has, in which order.
 *
 * Hosts share this, never a JavaScript object. It is strict JSON, its order is meaning, and whatever is wrong with it is
 * refused with the path of the fault rather than dropped.
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

/** One plugin of a manifest. */
export const ManifestEntry = Schema.Struct({
  /** Names the plugin everywhere: `acme.chat`, `acme.review`. */
  id: Schema.String.check(Schema.isPattern(/^[A-Za-z0-9@][A-Za-z0-9@/._-]*$/)),
  /** Where its code comes from, if not from the host itself: a package name or the path of a file. */
  package: Schema.optionalKey(Schema.NonEmptyString),
  version: Schema.optionalKey(Schema.NonEmptyString),
  /** Its failure fails the host. */
  required: Schema.optionalKey(Schema.Boolean),
  /** Read by the plugin with a schema of its own. */
  options: Schema.optionalKey(Schema.Json),
  /** Powers that a plugin has only by being granted them here, by name; the host says which there are. */
  grants: Schema.optionalKey(Schema.Array(Schema.NonEmptyString))
})
export type ManifestEntry = typeof ManifestEntry.Type

/** The plugins of a deployment, in order. */
export const PluginManifest = Schema.Struct({ plugins: Schema.Array(ManifestEntry) })
export type PluginManifest = typeof PluginManifest.Type

/** The manifest cannot be used as it is; `message` names each fault and its path. */
export class ManifestError extends Schema.TaggedError<ManifestError>()("ManifestError", {
  message: Schema.String
}) {}

const decode = Schema.decodeUnknownEffect(PluginManifest, { errors: "all", onExcessProperty: "error" })

const duplicates = (manifest: PluginManifest): ReadonlyArray<string> => {
  const first = new Map<string, number>()
  return manifest.plugins.flatMap(({ id }, index) => {
    const earlier = first.get(id)
    if (earlier !== undefined) return [`plugins[${index}].id: "${id}" already stands at plugins[${earlier}]`]
    first.set(id, index)
    return []
  })
}

/** What is wrong with the powers that an entry names, each with its place below `path`. */
const unknownGrants = (
  { grants = [] }: ManifestEntry,
  path: string,
  powers: ReadonlyArray<string>
): ReadonlyArray<string> =>
  grants.flatMap((name, index) =>
    powers.includes(name) ? [] : [
      `${path}grants[${index}]: there is no power "${name}" to grant; ${
        powers.length === 0 ? "take it out" : `there ${powers.length === 1 ? "is" : "are"} ${powers.join(", ")}`
      }`
    ]
  )

/** Why a plugin with this entry may not be loaded, or `null`. */
export const entryFault = (entry: ManifestEntry, powers: ReadonlyArray<string>): string | null =>
  unknownGrants(entry, "", powers)[0] ?? null

/** Reads a manifest strictly. `powers` are those that the host has to grant. */
export const decodeManifest = (
  value: unknown,
  powers: ReadonlyArray<string> = []
): Effect.Effect<PluginManifest, ManifestError> =>
  decode(value).pipe(
    Effect.mapError((error) => new ManifestError({ message: `The plugin manifest is not valid: ${error.message}` })),
    Effect.flatMap((manifest) => {
      const grants = manifest.plugins.flatMap((entry, index) => unknownGrants(entry, `plugins[${index}].`, powers))
      const faults = [...duplicates(manifest), ...grants]
      return faults.length === 0
        ? Effect.succeed(manifest)
        : Effect.fail(new ManifestError({ message: `The plugin manifest is not valid: ${faults.join("; ")}` }))
    })
  )
