/**
 * A settings key: one top-level name of `bezel.jsonc` and the feature that owns it.
 *
 * A feature declares its section once, with a Schema, a default and the rule for what a project that nobody trusts yet may
 * set. Everything else follows from that: validation, merging of the files, the JSON Schema of the whole file. The type of
 * the value is precise outside; inside the reader keys are held erased, in this one place.
 */
import type * as Schema from "effect/Schema"
import type { JsonObject, JsonValue } from "../json/index.ts"

/**
 * What of a section takes effect while the project is not trusted: all of it, nothing, or the part that the function
 * gives (`undefined`: nothing). `trusted` is the section as the trusted files set it, absent if they do not.
 */
export type UntrustedRule =
  | "keep"
  | "drop"
  | ((value: JsonValue, trusted: JsonValue | undefined) => JsonValue | undefined)

export interface SettingsKey<A> {
  readonly name: string
  /** Decodes the merged section. Secrets decode to `Redacted`. */
  readonly schema: Schema.Codec<A, unknown>
  /** The value where no file sets the section. */
  readonly default: A
  readonly untrusted: UntrustedRule
  /** How a later file's section joins an earlier one's. */
  readonly merge: (earlier: JsonValue, later: JsonValue) => JsonValue
  /** Makes what a file says independent of where the file stands: its relative paths absolute. `null`: nothing to do. */
  readonly relocate: ((value: JsonValue, absolute: (path: string) => string) => JsonValue) | null
  /** What is odd about a value that is valid, one sentence each: what it asks for has no effect, for example. */
  warnings(value: A): ReadonlyArray<string>
  /** One sentence, for documentation and for the JSON Schema. */
  readonly description: string
}

export declare namespace SettingsKey {
  /** Any key, its value's type forgotten. */
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- the one erasure point of heterogeneous keys
  type Any = SettingsKey<any>
}

export interface SettingsKeyOptions<A, I> {
  readonly schema: Schema.Codec<A, I>
  readonly default: NoInfer<A>
  readonly untrusted: UntrustedRule
  /** Default: objects merge deep, the later wins, arrays and other values are replaced. */
  readonly merge?: (earlier: JsonValue, later: JsonValue) => JsonValue
  /** Makes relative paths in the section absolute, as seen from the file that says it. */
  readonly relocate?: (value: JsonValue, absolute: (path: string) => string) => JsonValue
  /** What a person should know of a value that is valid; default: nothing. */
  readonly warnings?: (value: NoInfer<A>) => ReadonlyArray<string>
  readonly description?: string
}

export const SettingsKey = {
  make: <A, I>(name: string, options: SettingsKeyOptions<A, I>): SettingsKey<A> => ({
    name,
    schema: options.schema,
    default: options.default,
    untrusted: options.untrusted,
    merge: options.merge ?? mergeJson,
    relocate: options.relocate ?? null,
    warnings: options.warnings ?? (() => []),
    description: options.description ?? ""
  })
}

const isObject = (value: JsonValue | undefined): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** Objects merge deep, member by member; anything else of `later` replaces what `earlier` has. */
export const mergeJson = (earlier: JsonValue, later: JsonValue): JsonValue => {
  if (!isObject(earlier) || !isObject(later)) return later
  const merged: Record<string, JsonValue> = { ...earlier }
  for (const [name, value] of Object.entries(later)) {
    const before = Object.hasOwn(merged, name) ? merged[name] : undefined
    merged[name] = before === undefined ? value : mergeJson(before, value)
  }
  return merged
}
