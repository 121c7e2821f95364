/**
 * The provider packages that ship with us and those that a person has installed, and how a provider of settings becomes models.
 *
 * A package is imported at the first request to one of its models: whoever uses another provider does not pay for it.
 */
import type { LanguageModelV4, LanguageModelV4CallOptions } from "@ai-sdk/provider"
import { type Model, ModelError, type ModelInfo, type ProviderKey } from "@bezel/core/model"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { pathToFileURL } from "node:url"
import { entryFile, findPackage, type InstalledPackage, providerFactory } from "../packages/index.ts"
import { makeProviderFetch, type ProviderFetch } from "./ai-sdk-fetch.ts"
import { chatCompletionsGuard, messagesGuard } from "./ai-sdk-guard.ts"
import { aiSdkModel, type AiSdkModelOptions } from "./ai-sdk.ts"

export const openAICompatiblePackage = "@ai-sdk/openai-compatible"
export const anthropicPackage = "@ai-sdk/anthropic"

/** Where a provider is and how it knows us. */
export interface Connection {
  readonly id: string
  readonly name: string
  readonly package: string
  readonly baseURL: string | null
  readonly key: ProviderKey | null
  readonly headers: { readonly [name: string]: Redacted.Redacted }
  /** Where packages that do not ship with us are looked for; `null`: nowhere. */
  readonly packageFolder?: string | null
  /** For tests; default: ours, which reads failures in bounds. */
  readonly fetch?: ProviderFetch
}

/** Why a connection cannot be used, or `null`. */
export const connectionProblem = (connection: Omit<Connection, "key">): string | null => {
  if (connection.package !== openAICompatiblePackage && connection.package !== anthropicPackage) {
    return installed(connection) === null
      ? `the package ${connection.package} of the provider ${connection.id} is not installed, and does not ship with bezel; bezel plugin add ${connection.package} installs it`
      : null
  }
  if (connection.package === openAICompatiblePackage && connection.baseURL === null) {
    return `the provider ${connection.id} has no address: set providers.${connection.id}.options.baseURL`
  }
  return null
}

const installed = ({ package: name, packageFolder }: Omit<Connection, "key">): InstalledPackage | null =>
  packageFolder === undefined || packageFolder === null ? null : findPackage(name, [packageFolder])

/** A model at a connection. It connects to nothing before it is asked. */
export const openModel = (connection: Connection, info: ModelInfo): Effect.Effect<Model, ModelError> => {
  const problem = connectionProblem(connection)
  if (problem !== null) {
    return Effect.fail(
      new ModelError({
        kind: "unknown_model",
        message: `The model ${info.provider}/${info.model} cannot be used: ${problem}`,
        retryable: false,
        retryAfterMs: null
      })
    )
  }
  const common = {
    info,
    providerName: connection.name,
    packageName: connection.package,
    secrets: [
      ...(connection.key === null ? [] : [Redacted.value(connection.key.value)]),
      ...Object.values(connection.headers).map(Redacted.value)
    ]
  }
  const options = connection.package === anthropicPackage
    ? anthropic(connection, common)
    : connection.package === openAICompatiblePackage
    ? openAICompatible(connection, common)
    : fromOutside(connection, common)
  return Effect.succeed(aiSdkModel(options))
}

type Common = Pick<AiSdkModelOptions, "info" | "providerName" | "packageName" | "secrets">

const plainHeaders = (connection: Connection): { [name: string]: string } =>
  Object.fromEntries(Object.entries(connection.headers).map(([name, value]) => [name, Redacted.value(value)]))

const openAICompatible = (connection: Connection, common: Common): AiSdkModelOptions => ({
  ...common,
  guard: chatCompletionsGuard,
  load: async (): Promise<LanguageModelV4> => {
    const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible")
    const provider = createOpenAICompatible({
      name: connection.id,
      baseURL: connection.baseURL ?? "",
      ...(connection.key === null ? {} : { apiKey: Redacted.value(connection.key.value) }),
      headers: plainHeaders(connection),
      fetch: connection.fetch ?? makeProviderFetch(),
      includeUsage: true
    })
    return provider.languageModel(common.info.model)
  }
})

/** https://docs.anthropic.com/en/docs/build-with-claude/vision: more of either is refused. */
const anthropicImages = { side: 8_000, encoded: 5 * 1024 * 1024 }

const anthropic = (connection: Connection, common: Common): AiSdkModelOptions => ({
  ...common,
  guard: messagesGuard,
  filesInResults: true,
  imageLimit: anthropicImages,
  saysNoThinking: true,
  adjust: markCache,
  load: async (): Promise<LanguageModelV4> => {
    const { createAnthropic } = await import("@ai-sdk/anthropic")
    const provider = createAnthropic({
      // Said here, so that the package never reads the environment by itself. A place of one's own may need no key.
      baseURL: connection.baseURL ?? "https://api.anthropic.com/v1",
      ...(connection.key?.kind === "token"
        ? { authToken: Redacted.value(connection.key.value) }
        : { apiKey: connection.key === null ? "none" : Redacted.value(connection.key.value) }),
      headers: plainHeaders(connection),
      fetch: connection.fetch ?? makeProviderFetch()
    })
    return provider.languageModel(common.info.model)
  }
})

const isModel = (value: unknown): value is LanguageModelV4 =>
  typeof value === "object" && value !== null && "doStream" in value && typeof value.doStream === "function"

/** A package that cannot be used is not asked again: only a person can mend it. */
const unusable = ({ package: name }: Connection, what: string): ModelError =>
  new ModelError({
    kind: "unknown_model",
    message: `The package ${name} cannot be used: ${what}`,
    retryable: false,
    retryAfterMs: null
  })

const importModule = async (connection: Connection): Promise<object> => {
  try {
    const found = installed(connection)
    const file = found === null ? null : entryFile(found, ".")
    if (file === null) throw new Error("it has no main file")
    return await import(pathToFileURL(file).href)
  } catch (error) {
    throw unusable(connection, (error instanceof Error ? error.message : String(error)).split("\n", 1)[0] ?? "")
  }
}

/** A package that a person has installed. What is not set is left out, so that the package takes its own. */
const fromOutside = (connection: Connection, common: Common): AiSdkModelOptions => ({
  ...common,
  load: async (): Promise<LanguageModelV4> => {
    const create = providerFactory(await importModule(connection))
    if (create === null) throw unusable(connection, "it is no AI SDK provider, for it exports no create…")
    const provider = create({
      name: connection.id,
      ...(connection.baseURL === null ? {} : { baseURL: connection.baseURL }),
      ...(connection.key === null ? {} : { apiKey: Redacted.value(connection.key.value) }),
      headers: plainHeaders(connection),
      fetch: connection.fetch ?? makeProviderFetch()
    })
    const model = languageModel(provider, common.info.model)
    if (!isModel(model)) throw unusable(connection, `it has no language model ${common.info.model}`)
    const version: string = model.specificationVersion
    if (version !== "v4") {
      throw unusable(
        connection,
        `it is for version ${version} of the AI SDK's interface, and v4 is needed; add a newer version of it`
      )
    }
    return model
  }
})

/** Providers are functions with methods; the method is the newer way. */
const languageModel = (provider: unknown, id: string): unknown => {
  if ((typeof provider !== "object" && typeof provider !== "function") || provider === null) return null
  const method: unknown = Reflect.get(provider, "languageModel")
  if (typeof method === "function") return Reflect.apply(method, provider, [id])
  return typeof provider === "function" ? Reflect.apply(provider, undefined, [id]) : null
}

const cacheMark = { anthropic: { cacheControl: { type: "ephemeral" } } }

/**
 * Anthropic caches only up to marks in the prompt. Two are enough: after the system text, which with the tools before it
 * stays the same for a session, and after the last message, so that the next request finds all of this one.
 */
const markCache = (call: LanguageModelV4CallOptions): LanguageModelV4CallOptions => {
  const lastSystem = call.prompt.findLastIndex((message) => message.role === "system")
  const last = call.prompt.length - 1
  return {
    ...call,
    prompt: call.prompt.map((message, index) =>
      index === lastSystem || index === last
        ? { ...message, providerOptions: { ...cacheMark, ...message.providerOptions } }
        : message
    )
  }
}
