/**
 * The providers that are there without settings, and how settings change them or add others.
 *
 * Nothing here reads the environment or connects: it is given both, and makes `Provider` values. A built-in provider
 * without a key is there too, not ready, with a reason that says what to set.
 */
import type { Model, ModelError, ModelInfo, Provider, ProviderKey } from "@bezel/core/model"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import {
  anthropicPackage,
  type Connection,
  connectionProblem,
  openAICompatiblePackage,
  openModel
} from "./ai-sdk-packages.ts"
import type { ModelCatalogue } from "./catalogue.ts"
import type { ModelOptions, ProviderOptions } from "./contract.ts"
import { discoverModels } from "./discover.ts"
import { keyFromCommand } from "./key-command.ts"
import { places } from "./places.ts"
import { withRenewal } from "./renewal.ts"

/** What the environment says about providers. */
export interface ProviderEnvironment {
  readonly anthropicKey: Redacted.Redacted | null
  readonly anthropicURL: string | null
  readonly openAIKey: Redacted.Redacted | null
  readonly openAIURL: string | null
  /** Keys by variable, of `places`. */
  readonly keys?: ReadonlyMap<string, Redacted.Redacted>
}

/** Where a provider's key is from, for people, and how to get it. */
interface KnownKey {
  readonly source: string
  readonly get: Effect.Effect<ProviderKey, ModelError>
  /** Another token in place of a refused one. */
  readonly renew?: (refused: Redacted.Redacted) => Effect.Effect<ProviderKey, ModelError>
}

const fixedKey = (source: string, value: Redacted.Redacted): KnownKey => ({
  source,
  get: Effect.succeed({ kind: "key", value })
})

interface Base {
  readonly id: string
  readonly name: string
  readonly package: string
  readonly baseURL: string | null
  /** Where it is when nobody says so; there, a key is needed. */
  readonly publicURL: string | null
  readonly key: KnownKey | null
  readonly keyVariable: string | null
  /** Asked with the key beside the list of models, where that is for everybody. */
  readonly keyCheck: string | null
  readonly models: { readonly [id: string]: ModelOptions }
  readonly openEnded: boolean
  /** What is assumed of a model that nothing is known of. */
  readonly unknown: ModelOptions
}

const claude: ModelOptions = { contextWindow: 200_000, reasoning: true, images: true }

const builtIn = (environment: ProviderEnvironment): ReadonlyArray<Base> => [
  {
    id: "anthropic",
    name: "Anthropic",
    package: anthropicPackage,
    baseURL: environment.anthropicURL === null ? null : versioned(environment.anthropicURL),
    publicURL: "https://api.anthropic.com/v1",
    key: environment.anthropicKey === null ? null : fixedKey("ANTHROPIC_API_KEY", environment.anthropicKey),
    keyVariable: "ANTHROPIC_API_KEY",
    keyCheck: null,
    models: {
      "claude-opus-5-5": { ...claude, name: "Claude Opus 5.5" },
      "claude-sonnet-5-5": { ...claude, name: "Claude Sonnet 5.5" },
      "claude-haiku-5-5": { ...claude, name: "Claude Haiku 5.5" },
      "claude-sonnet-4-6": { ...claude, name: "Claude Sonnet 4.6" },
      "claude-haiku-4-5": { ...claude, name: "Claude Haiku 4.5" }
    },
    openEnded: true,
    unknown: claude
  },
  {
    id: "openai",
    name: "OpenAI",
    package: openAICompatiblePackage,
    baseURL: environment.openAIURL,
    publicURL: "https://api.openai.com/v1",
    key: environment.openAIKey === null ? null : fixedKey("OPENAI_API_KEY", environment.openAIKey),
    keyVariable: "OPENAI_API_KEY",
    keyCheck: null,
    models: {},
    openEnded: true,
    unknown: { images: true }
  },
  ...places.map(({ id, keyCheck, name, url, variable }): Base => {
    const key = environment.keys?.get(variable)
    return {
      ...added(id),
      name,
      publicURL: url,
      key: key === undefined ? null : fixedKey(variable, key),
      keyVariable: variable,
      keyCheck: keyCheck ?? null
    }
  })
]

/** `ANTHROPIC_BASE_URL` names, by custom, the place without the version. */
const versioned = (url: string): string => {
  const plain = url.replace(/\/+$/, "")
  return plain.endsWith("/v1") ? plain : `${plain}/v1`
}

const added = (id: string): Base => ({
  id,
  name: id,
  package: openAICompatiblePackage,
  baseURL: null,
  publicURL: null,
  key: null,
  keyVariable: null,
  keyCheck: null,
  models: {},
  openEnded: true,
  unknown: {}
})

/** What settings say of a model goes before what is known of it. */
const modelsOf = (base: Base, own: ProviderOptions["models"]): Base["models"] => {
  if (own === undefined) return base.models
  const said = Object.fromEntries(
    Object.entries(own).map(([id, model]) => [
      id,
      { ...(Object.hasOwn(base.models, id) ? base.models[id] : undefined), ...model }
    ])
  )
  return base.publicURL === null ? said : { ...base.models, ...said }
}

const withSettings = (base: Base, own: ProviderOptions): Base => ({
  ...base,
  name: own.name ?? base.name,
  package: own.package ?? base.package,
  baseURL: own.options?.baseURL ?? base.baseURL,
  key: own.options?.apiKey !== undefined
    ? fixedKey("the settings", own.options.apiKey)
    : own.keyCommand !== undefined
    ? { source: `the command ${own.keyCommand[0]}`, get: keyFromCommand(base.id, own.keyCommand) }
    : base.key,
  models: modelsOf(base, own.models),
  // Whoever lists the models of a server of their own means these; a built-in one has always more.
  openEnded: base.publicURL !== null || own.models === undefined
})

const toInfo = (provider: string, model: string, known: ModelOptions): ModelInfo => ({
  provider,
  model,
  name: known.name ?? model,
  contextWindow: known.contextWindow ?? null,
  maxOutput: known.maxOutput ?? null,
  reasoning: known.reasoning ?? false,
  images: known.images ?? false,
  cost: known.cost === undefined
    ? null
    : {
      input: known.cost.input,
      output: known.cost.output,
      cacheRead: known.cost.cacheRead ?? known.cost.input,
      cacheWrite: known.cost.cacheWrite ?? known.cost.input
    }
})

/** Nobody asks a server whose models somebody has listed: these are meant. */
const discovery = (base: Base, connection: Omit<Connection, "key">): Pick<Provider, "discover"> => {
  const known = connection.package === anthropicPackage || connection.package === openAICompatiblePackage
  const baseURL = connection.baseURL
  return !base.openEnded || !known || baseURL === null ? {} : {
    discover: Effect.flatMap(base.key?.get ?? Effect.succeed(null), (key) =>
      discoverModels({
        name: base.name,
        baseURL,
        anthropic: connection.package === anthropicPackage,
        keyCheck: baseURL === base.publicURL ? base.keyCheck : null,
        headers: connection.headers
      }, key))
  }
}

const toProvider = (base: Base, own: ProviderOptions | undefined, packageFolder: string | null): Provider => {
  const connection: Omit<Connection, "key"> = {
    id: base.id,
    name: base.name,
    package: base.package,
    baseURL: base.baseURL ?? base.publicURL,
    headers: own?.options?.headers ?? {},
    packageFolder
  }
  const problem = connectionProblem(connection) ?? keyProblem(base, own)
  return {
    id: base.id,
    name: base.name,
    models: Object.entries(base.models).map(([id, known]) => toInfo(base.id, id, known)),
    openEnded: base.openEnded,
    availability: problem === null ? { ready: true } : { ready: false, reason: problem },
    ...discovery(base, connection),
    key: {
      source: base.key?.source ?? null,
      give: (source, get, renew) =>
        toProvider({ ...base, key: { source, get, ...(renew === undefined ? {} : { renew }) } }, own, packageFolder)
    },
    open: openedOnce(
      base.key,
      (model, key) =>
        openModel(
          { ...connection, key },
          toInfo(base.id, model, Object.hasOwn(base.models, model) ? base.models[model] ?? base.unknown : base.unknown)
        )
    )
  }
}

/**
 * Every request resolves its model anew; the package's model, with the schemas that it builds, is made once, and once more
 * when the key has changed.
 */
const openedOnce = (
  key: KnownKey | null,
  open: (id: string, key: ProviderKey | null) => Effect.Effect<Model, ModelError>
): Provider["open"] => {
  const opened = new Map<string, { readonly key: string | null; readonly model: Model }>()
  const renew = key?.renew
  return (id) =>
    Effect.flatMap(key?.get ?? Effect.succeed(null), (now) => {
      const value = now === null ? null : Redacted.value(now.value)
      const known = opened.get(id)
      if (known !== undefined && known.key === value) return Effect.succeed(known.model)
      const made = Effect.map(open(id, now), (model) =>
        now?.kind !== "token" || renew === undefined
          ? model
          : withRenewal(model, now, renew, (other) => open(id, other)))
      return Effect.tap(made, (model) => Effect.sync(() => opened.set(id, { key: value, model })))
    })
}

/** A place of one's own, or headers of one's own, may do without a key. */
const keyProblem = (base: Base, own: ProviderOptions | undefined): string | null =>
  base.keyVariable === null || base.key !== null || base.baseURL !== null || own?.options?.headers !== undefined
    ? null
    : `no key is set: store one with bezel auth set ${base.id}, or set ${base.keyVariable}`

/** All providers but `bezel`, the built-in ones first. Packages of others are looked for in `packageFolder`. */
export const makeProviders = (
  environment: ProviderEnvironment,
  settings: { readonly [id: string]: ProviderOptions },
  packageFolder: string | null = null,
  catalogue: ModelCatalogue = {}
): ReadonlyArray<Provider> => {
  const bases = builtIn(environment)
  const listed = (id: string) => Object.hasOwn(catalogue, id) ? catalogue[id] ?? {} : {}
  const own = (id: string): ProviderOptions | undefined => Object.hasOwn(settings, id) ? settings[id] : undefined
  const names = new Set([...bases.map((base) => base.id), ...Object.keys(settings)])
  return [...names].map((id) => {
    const plain = bases.find((one) => one.id === id) ?? added(id)
    const base = { ...plain, models: { ...plain.models, ...listed(id) } }
    const changes = own(id)
    return toProvider(changes === undefined ? base : withSettings(base, changes), changes, packageFolder)
  })
}
