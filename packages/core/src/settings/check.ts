/**
 * Checks settings against the keys' Schemas and says what is wrong in a person's words.
 *
 * Each file is checked by itself, so that a fault is told with its line. A file may leave out what another one has, so
 * missing members are judged on the merged section only.
 */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaIssue from "effect/SchemaIssue"
import type { JsonObject, JsonValue, Path } from "../json/index.ts"
import { namesAt, settingsJsonSchema } from "./json-schema.ts"
import type { SettingsKey } from "./key.ts"

/** A fault at a path below the section's name (included). */
export interface Fault {
  readonly code: "unknown_key" | "invalid_value" | "missing_key"
  readonly path: Path
  readonly what: string
}

const missing = "\u0000missing"
const unexpected = "\u0000unexpected"

const format = SchemaIssue.makeFormatterStandardSchemaV1({
  leafHook: (issue) =>
    issue._tag === "MissingKey"
      ? missing
      : issue._tag === "UnexpectedKey"
      ? unexpected
      : SchemaIssue.defaultLeafHook(issue)
})

const toSegment = (segment: unknown): string | number => {
  const key = typeof segment === "object" && segment !== null && "key" in segment ? segment.key : segment
  return typeof key === "number" ? key : String(key)
}

const valueAt = (value: JsonValue | undefined, path: Path): JsonValue | undefined => {
  let current = value
  for (const segment of path) {
    if (typeof current !== "object" || current === null || !Object.hasOwn(current, segment)) return undefined
    current = (current as Record<string | number, JsonValue>)[segment]
  }
  return current
}

const kindOf = (value: JsonValue | undefined): string =>
  value === undefined
    ? "nothing"
    : value === null
    ? "null"
    : Array.isArray(value)
    ? "an array"
    : typeof value === "object"
    ? "an object"
    : typeof value === "string"
    ? "text"
    : `${value}`

/**
 * What was found: a kind, or a value that is no text; text itself only where a fixed set of values is expected, because it
 * may be a secret.
 */
const found = (value: JsonValue | undefined, expectation: string): string => {
  if (typeof value !== "string") return `, found ${kindOf(value)}`
  if (expectation.includes('"') && value.length <= 40) return `, found ${JSON.stringify(value)}`
  return /^expected (number|boolean|object|array|integer|null)/.test(expectation) ? ", found text" : ""
}

/** Letters added, left out, replaced or swapped with their neighbour on the way from one name to the other. */
const distance = (left: string, right: string): number => {
  let before: ReadonlyArray<number> = []
  let previous: ReadonlyArray<number> = Array.from({ length: right.length + 1 }, (_, index) => index)
  for (let row = 1; row <= left.length; row++) {
    const current = [row]
    for (let column = 1; column <= right.length; column++) {
      const isSame = left[row - 1] === right[column - 1]
      const isSwap = left[row - 1] === right[column - 2] && left[row - 2] === right[column - 1]
      current.push(Math.min(
        (previous[column] ?? 0) + 1,
        (current[column - 1] ?? 0) + 1,
        (previous[column - 1] ?? 0) + (isSame ? 0 : 1),
        isSwap ? (before[column - 2] ?? Infinity) + 1 : Infinity
      ))
    }
    before = previous
    previous = current
  }
  return previous[right.length] ?? 0
}

/** The known name that somebody who wrote `name` most likely meant, or `null`. */
export const closestName = (name: string, known: ReadonlyArray<string>): string | null => {
  let best: string | null = null
  let bestDistance = Math.max(1, Math.floor(name.length / 3)) + 1
  for (const candidate of known) {
    const steps = distance(name.toLowerCase(), candidate.toLowerCase())
    if (steps < bestDistance) {
      best = candidate
      bestDistance = steps
    }
  }
  return best
}

const unknownName = (name: string, known: ReadonlyArray<string>): string => {
  const close = closestName(name, known)
  if (close !== null) return `unknown setting; did you mean "${close}"?`
  return known.length === 0 ? "unknown setting" : `unknown setting; known here: ${[...known].sort().join(", ")}`
}

/** Decodes sections, strictly: unknown members are faults. */
export class SettingsChecker {
  readonly keys: ReadonlyMap<string, SettingsKey.Any>
  #schema: JsonObject | null = null

  constructor(keys: ReadonlyArray<SettingsKey.Any>) {
    this.keys = new Map(keys.map((key) => [key.name, key]))
  }

  #namesAt(path: Path): ReadonlyArray<string> {
    this.#schema ??= settingsJsonSchema([...this.keys.values()])
    return namesAt(this.#schema, path).filter((name) => path.length > 0 || name !== "$schema")
  }

  /** The names of sections that nobody owns. */
  unknownSections(value: JsonObject): ReadonlyArray<Fault> {
    return Object.keys(value).filter((name) => name !== "$schema" && !this.keys.has(name)).map((name) => ({
      code: "unknown_key",
      path: [name],
      what: unknownName(name, [...this.keys.keys()])
    }))
  }

  /** `raw` is what the file says before substitution; messages are about that. */
  decode<A>(key: SettingsKey<A>, value: JsonValue, raw: JsonValue = value): Result.Result<A, ReadonlyArray<Fault>> {
    const result = Schema.decodeUnknownResult(key.schema, { onExcessProperty: "error", errors: "all" })(value)
    if (Result.isSuccess(result)) return Result.succeed(result.success)
    const foreign = new Set<Fault>()
    const faults = format(result.failure.issue).issues.map((issue): Fault => {
      const below = (issue.path ?? []).map(toSegment)
      const path = [key.name, ...below]
      if (issue.message === unexpected) {
        const known = this.#namesAt(path.slice(0, -1))
        const name = String(below.at(-1))
        if (!known.includes(name)) return { code: "unknown_key", path, what: unknownName(name, known) }
        const fault: Fault = { code: "invalid_value", path, what: "does not go with the other settings beside it" }
        foreign.add(fault)
        return fault
      }
      if (issue.message === missing) return { code: "missing_key", path, what: "this is required" }
      const expectation = issue.message.replace(/^Expected /, "expected ").replaceAll(" | ", " or ")
      return { code: "invalid_value", path, what: expectation + found(valueAt(raw, below), expectation) }
    })
    // Where a value may have one of several forms, each form calls the members of the others unexpected. What else there is
    // to say of it says why none of them fits.
    const telling = faults.filter((fault) => !foreign.has(fault))
    return Result.fail(telling.length > 0 ? telling : faults)
  }
}
