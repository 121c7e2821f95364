/**
 * From documents to one reading: what each file may say, merged, checked and decoded.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as path from "node:path"
import type { JsonObject, JsonValue } from "../json/index.ts"
import { type Fault, type SettingsChecker } from "./check.ts"
import type { Override } from "./discover.ts"
import { type SettingsDocument, settingsError } from "./document.ts"
import type { SettingsError } from "./error.ts"
import type { SettingsKey } from "./key.ts"
import type { SettingsReader, SettingsSource, SkippedSetting } from "./settings.ts"
import { isSubstituted, substitute } from "./substitute.ts"

export interface ReadInput {
  readonly user: SettingsDocument | null
  readonly project: ReadonlyArray<SettingsDocument>
  readonly projectTrusted: boolean
  readonly overrides: ReadonlyArray<Override>
  readonly variable: (name: string) => Effect.Effect<string | null>
}

interface Layer {
  readonly source: SettingsSource
  readonly document: SettingsDocument | null
  readonly sections: ReadonlyMap<string, JsonValue>
}

const sectionsOf = (value: JsonValue): Map<string, JsonValue> =>
  new Map(Object.entries(value as JsonObject).filter(([name]) => name !== "$schema"))

const mentionsSubstitution = (value: JsonValue | undefined): boolean =>
  typeof value === "string" && isSubstituted(value)

const at = (value: JsonValue | undefined, place: Fault["path"]): JsonValue | undefined => {
  let current = value
  for (const segment of place) {
    if (typeof current !== "object" || current === null) return undefined
    current = Object.hasOwn(current, segment)
      ? Object.entries(current).find(([name]) => name === String(segment))?.[1]
      : undefined
  }
  return current
}

const faultsToError = (document: SettingsDocument, faults: ReadonlyArray<Fault>): SettingsError | null => {
  const [first, ...others] = faults
  if (first === undefined) return null
  const more = others.length === 0 ? "" : ` (and ${others.length} more)`
  return settingsError(
    first.code,
    { file: document.file, line: document.lineOf(first.path), path: first.path },
    first.what + more
  )
}

const relocated = (
  checker: SettingsChecker,
  sections: ReadonlyMap<string, JsonValue>,
  directory: string
): ReadonlyMap<string, JsonValue> =>
  new Map(
    [...sections].map(([name, value]) => [
      name,
      checker.keys.get(name)?.relocate?.(value, (file) => path.resolve(directory, file)) ?? value
    ])
  )

/** Checks one file by itself. What the file leaves out is judged later, on the merged section. */
const checkDocument = (
  checker: SettingsChecker,
  document: SettingsDocument,
  sections: ReadonlyMap<string, JsonValue>,
  isTrusted: boolean
): SettingsError | null => {
  const faults = [...checker.unknownSections(document.value)]
  for (const [name, value] of sections) {
    const key = checker.keys.get(name)
    if (key === undefined) continue
    const raw = document.value[name] ?? null
    const decoded = checker.decode(key, value, raw)
    if (Result.isSuccess(decoded)) continue
    faults.push(...decoded.failure.filter((fault) =>
      fault.code !== "missing_key" &&
      // In an untrusted file nothing is substituted, so what such a text stands for is not known.
      (isTrusted || !mentionsSubstitution(at(raw, fault.path.slice(1))))
    ))
  }
  return faultsToError(document, faults)
}

const overrideLayer = (checker: SettingsChecker, override: Override): Layer | SettingsError => {
  const file = `--set ${override.text}`
  const key = checker.keys.get(override.section)
  const fail = (fault: Fault) => settingsError(fault.code, { file: "--set", line: 0, path: fault.path }, fault.what)
  const candidate = override.candidates[0]
  if (key === undefined || candidate === undefined) {
    const fault = checker.unknownSections(candidate ?? { [override.section]: null })[0]
    return fault === undefined
      ? settingsError("unknown_key", { file, line: 0, path: [] }, "unknown setting")
      : fail(fault)
  }
  let firstFault: Fault | undefined
  for (const value of override.candidates) {
    const section = value[key.name] ?? null
    const decoded = checker.decode(key, section)
    const fault = Result.isFailure(decoded) ? decoded.failure.find((each) => each.code !== "missing_key") : undefined
    if (fault === undefined) {
      return {
        source: { kind: "override", file: "--set", trusted: true, keys: [key.name] },
        document: null,
        sections: relocated(checker, new Map([[key.name, section]]), process.cwd())
      }
    }
    firstFault ??= fault
  }
  return firstFault === undefined
    ? settingsError("invalid_value", { file, line: 0, path: [] }, "not a value")
    : fail(firstFault)
}

/** Reads everything into one snapshot. The first fault found fails it. */
export const readSettings = Effect.fnUntraced(function*(
  checker: SettingsChecker,
  input: ReadInput
): Effect.fn.Return<SettingsReader, SettingsError> {
  const warnings: Array<string> = []
  const layers: Array<Layer> = []

  const add = Effect.fnUntraced(function*(document: SettingsDocument, kind: "user" | "project", isTrusted: boolean) {
    let value: JsonValue = document.value
    if (isTrusted) {
      const substituted = yield* substitute(document, input.variable)
      value = substituted.value
      warnings.push(...substituted.warnings)
    }
    const sections = sectionsOf(value)
    const error = checkDocument(checker, document, sections, isTrusted)
    if (error !== null) return yield* error
    layers.push({
      source: { kind, file: document.file, trusted: isTrusted, keys: [...sections.keys()] },
      document,
      sections: relocated(checker, sections, path.dirname(document.file))
    })
  })

  if (input.user !== null) yield* add(input.user, "user", true)
  for (const document of input.project) yield* add(document, "project", input.projectTrusted)
  for (const override of input.overrides) {
    const layer = overrideLayer(checker, override)
    if ("message" in layer) return yield* layer
    layers.push(layer)
  }

  const values = new Map<string, unknown>()
  const skipped: Array<SkippedSetting> = []
  for (const key of checker.keys.values()) {
    const merged = mergeSection(key, layers, skipped)
    if (merged === undefined) continue
    const decoded = checker.decode(key, merged.value)
    if (Result.isSuccess(decoded)) {
      values.set(key.name, decoded.success)
      warnings.push(...key.warnings(decoded.success))
      continue
    }
    // Each file was right by itself, so the fault is in what none of them has: told where the last one speaks of it.
    const document = merged.layers.findLast((layer) => layer.document !== null)?.document
    const error = document === null || document === undefined
      ? decoded.failure.map((fault) =>
        settingsError(fault.code, { file: "--set", line: 0, path: fault.path }, fault.what)
      )[0]
      : faultsToError(document, decoded.failure)
    if (error !== undefined && error !== null) return yield* error
  }

  return {
    get: <A>(key: SettingsKey<A>): A => values.has(key.name) ? values.get(key.name) as A : key.default,
    skipped,
    sources: layers.map((layer) => layer.source),
    warnings
  }
})

/** One section through all layers; notes in `skipped` what an untrusted layer may not say. */
const mergeSection = (
  key: SettingsKey.Any,
  layers: ReadonlyArray<Layer>,
  skipped: Array<SkippedSetting>
): { readonly value: JsonValue; readonly layers: ReadonlyArray<Layer> } | undefined => {
  let value: JsonValue | undefined
  const from: Array<Layer> = []
  // What an untrusted file adds must not count as trusted for the next untrusted one, so both are kept apart.
  let trusted: JsonValue | undefined
  for (const layer of layers) {
    const section = layer.sections.get(key.name)
    if (section === undefined) continue
    const allowed = layer.source.trusted ? section : untrustedPart(key, section, trusted)
    if (!layer.source.trusted && (allowed === undefined || JSON.stringify(allowed) !== JSON.stringify(section))) {
      skipped.push({ file: layer.source.file, key: key.name, partly: allowed !== undefined })
    }
    if (allowed === undefined) continue
    value = value === undefined ? allowed : key.merge(value, allowed)
    if (layer.source.trusted) trusted = trusted === undefined ? section : key.merge(trusted, section)
    from.push(layer)
  }
  return value === undefined ? undefined : { value, layers: from }
}

const untrustedPart = (
  key: SettingsKey.Any,
  section: JsonValue,
  trusted: JsonValue | undefined
): JsonValue | undefined => {
  if (key.untrusted === "drop") return undefined
  if (key.untrusted === "keep") return section
  return key.untrusted(section, trusted)
}
