/**
 * Contributes model providers to a location: the built-in ones, what is known of their models, those of the settings, and
 * `bezel/offline`.
 *
 * Keys come from the environment (`ANTHROPIC_API_KEY`, `ANTHROPIC_BASE_URL`, `OPENAI_API_KEY`, `OPENAI_BASE_URL`, those of
 * `places.ts`) and from settings, and are `Redacted` from the moment they are read.
 */
import type { SessionContext } from "@bezel/core/host"
import { parseModelRef, type Provider } from "@bezel/core/model"
import { AppPaths } from "@bezel/core/settings"
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { makeProviders, type ProviderEnvironment } from "./catalog.ts"
import { type ModelCatalogue, readCatalogue, writeCatalogue } from "./catalogue.ts"
import { Models, ModelSetting, ProvidersPluginOptions, ProvidersSetting } from "./contract.ts"
import { offlineProvider } from "./offline.ts"
import { places } from "./places.ts"

/** A variable that is set but empty counts as not set: that is how shells unset for one command. */
const variable = (name: string) =>
  Effect.map(
    Config.option(Config.String(name)),
    (value) => Option.getOrNull(Option.filter(value, (text) => text.trim() !== ""))
  )

const secret = (name: string) =>
  Effect.map(variable(name), (value) => value === null ? null : Redacted.make(value.trim()))

export const readEnvironment: Effect.Effect<ProviderEnvironment, Config.ConfigError> = Effect.all({
  anthropicKey: secret("ANTHROPIC_API_KEY"),
  anthropicURL: variable("ANTHROPIC_BASE_URL"),
  openAIKey: secret("OPENAI_API_KEY"),
  openAIURL: variable("OPENAI_BASE_URL"),
  keys: Effect.map(
    Effect.forEach(places, ({ variable: name }) => Effect.map(secret(name), (key) => ({ name, key }))),
    (all) => new Map(all.flatMap(({ key, name }) => key === null ? [] : [[name, key] as const]))
  )
})

type Context = Pick<SessionContext, "settings" | "provide" | "options"> & {
  readonly provider: Pick<SessionContext["provider"], "transform" | "reload" | "list">
}

const foldersOf = Effect.fnUntraced(function*({ cacheDirectory, configDirectory }: ProvidersPluginOptions) {
  if (configDirectory !== undefined && cacheDirectory !== undefined) {
    return { config: configDirectory, cache: cacheDirectory }
  }
  const paths = yield* Effect.provide(AppPaths.use(Effect.succeed), AppPaths.layer)
  return { config: configDirectory ?? paths.config, cache: cacheDirectory ?? paths.cache }
})

/** The facet for session hosts. */
export const session = Effect.fn("providers/session")(function*(ctx: Context) {
  const environment = yield* readEnvironment
  const options = yield* Schema.decodeUnknownEffect(ProvidersPluginOptions)(ctx.options ?? {})
  const folders = yield* foldersOf(options)
  const settings = ctx.settings.get(ProvidersSetting)
  const make = (models: ModelCatalogue) => makeProviders(environment, settings, options.packageFolder ?? null, models)

  const first = yield* readCatalogue(folders)
  yield* Effect.forEach(first.warnings, (warning) => Effect.logWarning(warning), { discard: true })
  let providers: ReadonlyArray<Provider> = make(first.models)
  const chosen = ctx.settings.get(ModelSetting)
  const ref = chosen === null ? null : parseModelRef(chosen)
  yield* ctx.provider.transform((draft) => {
    draft.set("bezel", offlineProvider(providers.filter(({ availability }) => availability.ready).map(({ id }) => id)))
    for (const provider of providers) draft.set(provider.id, provider)
    if (ref !== null && !("error" in ref)) draft.setDefault(ref)
  })

  /** Those that cannot be used are not asked; one that does not answer keeps what was known of it. */
  const refresh = Effect.fn("models.refresh")(function*() {
    const asked = (yield* ctx.provider.list).filter(({ availability, discover }) =>
      availability.ready && discover !== null
    )
    const found: Record<string, ModelCatalogue[string]> = {}
    const warnings: Array<string> = []
    yield* Effect.forEach(asked, ({ discover, id }) =>
      Effect.gen(function*() {
        const answer = yield* Effect.result(discover ?? Effect.succeed([]))
        if (Result.isFailure(answer)) return void warnings.push(answer.failure.message)
        found[id] = Object.fromEntries(answer.success.map(({ model, name }) => [model, name === null ? {} : { name }]))
      }), { concurrency: 8, discard: true })
    const kept = yield* Effect.result(writeCatalogue(folders.cache, found))
    if (Result.isFailure(kept)) warnings.push(kept.failure)
    const read = yield* readCatalogue(folders)
    providers = make(read.models)
    yield* ctx.provider.reload
    const models = Object.values(found).map((of) => Object.keys(of).length)
    return { found: models.reduce((sum, count) => sum + count, 0), warnings: [...warnings, ...read.warnings] }
  })

  yield* ctx.provide(Models, { refresh })
})
