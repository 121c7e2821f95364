/**
 * Contributes model providers to a location: the built-in ones, those of the settings, and `bezel/offline`.
 *
 * Keys come from the environment (`ANTHROPIC_API_KEY`, `ANTHROPIC_BASE_URL`, `OPENAI_API_KEY`, `OPENAI_BASE_URL`) and from
 * settings, and are `Redacted` from the moment they are read.
 */
import type { SessionContext } from "@bezel/core/host"
import { parseModelRef } from "@bezel/core/model"
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import { makeProviders, type ProviderEnvironment } from "./catalog.ts"
import { ModelSetting, ProvidersPluginOptions, ProvidersSetting } from "./contract.ts"
import { offlineProvider } from "./offline.ts"

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
  openAIURL: variable("OPENAI_BASE_URL")
})

/** The facet for session hosts. */
export const session = Effect.fn("providers/session")(function*(
  ctx: Pick<SessionContext, "settings"> & Partial<Pick<SessionContext, "options">> & {
    readonly provider: Pick<SessionContext["provider"], "transform">
  }
) {
  const environment = yield* readEnvironment
  const options = yield* Schema.decodeUnknownEffect(ProvidersPluginOptions)(ctx.options ?? {})
  const providers = makeProviders(environment, ctx.settings.get(ProvidersSetting), options.packageFolder ?? null)
  const ready = providers.filter((provider) => provider.availability.ready).map((provider) => provider.id)
  const chosen = ctx.settings.get(ModelSetting)
  const ref = chosen === null ? null : parseModelRef(chosen)
  yield* ctx.provider.transform((draft) => {
    draft.set("bezel", offlineProvider(ready))
    for (const provider of providers) draft.set(provider.id, provider)
    if (ref !== null && !("error" in ref)) draft.setDefault(ref)
  })
})
