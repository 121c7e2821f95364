/**
 * What is known of models beyond what ships with us: a person's `models.json` in the config folder, and what providers have
 * said when they were asked, in the cache folder.
 *
 * Both have the form of `providers.*.models` of the settings, by provider. A damaged file counts as absent and is told.
 */
import { privateFolder } from "@bezel/core/location"
import { faults, renderPath } from "@bezel/core/service"
import { readRegularFile, writePrivateFile } from "@bezel/core/settings"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as path from "node:path"
import { ModelOptions } from "./contract.ts"

/** Models by provider and id. */
export type ModelCatalogue = { readonly [provider: string]: { readonly [model: string]: ModelOptions } }

const File = Schema.Record(Schema.String, Schema.Record(Schema.String, ModelOptions))

const parse = (text: string): Result.Result<unknown, string> => {
  try {
    return Result.succeed(JSON.parse(text))
  } catch (error) {
    return Result.fail(`it is no JSON (${error instanceof Error ? error.message : String(error)})`)
  }
}

/** Where the first fault is, what is expected there, and how many more there are. */
const decode = (value: unknown): Result.Result<ModelCatalogue, string> =>
  Result.mapError(
    Schema.decodeUnknownResult(File, { onExcessProperty: "error", errors: "all" })(value),
    ({ issue }) => {
      const [first, ...more] = faults(issue)
      const where = first === undefined || first.path.length === 0 ? "" : ` at ${renderPath(first.path)}`
      return `expected ${first?.expected ?? "models by provider"}${where}` +
        (more.length === 0 ? "" : `, and ${more.length} more like that`)
    }
  )

export const catalogueFile = "models.json"
const maxBytes = 4 * 1024 * 1024

const readOne = (file: string) =>
  Effect.gen(function*() {
    const told = (why: string) => ({ models: {}, warnings: [`${file} is not used: ${why}`] })
    const text = yield* Effect.result(readRegularFile(file, maxBytes))
    if (Result.isFailure(text)) return told(text.failure.reason)
    if (text.success === null) return { models: {}, warnings: [] }
    const decoded = Result.flatMap(parse(text.success), decode)
    return Result.isSuccess(decoded) ? { models: decoded.success, warnings: [] } : told(decoded.failure.slice(0, 300))
  })

const merge = (earlier: ModelCatalogue, later: ModelCatalogue): ModelCatalogue => {
  const merged: Record<string, { readonly [model: string]: ModelOptions }> = { ...earlier }
  for (const [provider, models] of Object.entries(later)) {
    const known = Object.hasOwn(merged, provider) ? merged[provider] : undefined
    merged[provider] = Object.fromEntries([
      ...Object.entries(known ?? {}),
      ...Object.entries(models).map(([id, model]) => {
        const before = known !== undefined && Object.hasOwn(known, id) ? known[id] : undefined
        return [id, { ...before, ...model }] as const
      })
    ])
  }
  return merged
}

/** What the two files say, the person's behind the cached one. */
export const readCatalogue = (folders: { readonly config: string; readonly cache: string }) =>
  Effect.map(
    Effect.all([readOne(path.join(folders.cache, catalogueFile)), readOne(path.join(folders.config, catalogueFile))]),
    ([cached, own]): { readonly models: ModelCatalogue; readonly warnings: ReadonlyArray<string> } => ({
      models: merge(cached.models, own.models),
      warnings: [...cached.warnings, ...own.warnings]
    })
  )

/** Keeps what providers have said; what they are not in stays as it was. A failure is one sentence. */
export const writeCatalogue = (cache: string, found: ModelCatalogue): Effect.Effect<void, string> =>
  Effect.gen(function*() {
    const file = path.join(cache, catalogueFile)
    const failed = (reason: string) => `The models cannot be kept in ${file}: ${reason}.`
    const { models } = yield* readOne(file)
    const text = JSON.stringify({ ...models, ...found })
    yield* Effect.try({ try: () => privateFolder(cache), catch: () => failed("its folder cannot be made") })
    yield* Effect.mapError(writePrivateFile(file, `${text}\n`), ({ reason }) => failed(reason))
  })
