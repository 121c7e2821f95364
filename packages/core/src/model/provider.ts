/**
 * Providers: where models come from, and the draft that plugins shape them through.
 *
 * A `ProviderDraft` is a plain mutable object for the length of one transform; `finish` turns what all transforms made into
 * an immutable `ProviderTable`. Nothing here connects to anything: a provider is asked to `open` a model only when it is used.
 */
import * as Effect from "effect/Effect"
import type * as Redacted from "effect/Redacted"
import { type Model, ModelError, type ModelInfo, type ModelRef } from "./model.ts"
import { closeMatches, formatModelRef } from "./ref.ts"

/** What a provider is authorized with: a key as it is sold, or a token that somebody signed in for, which expires. */
export interface ProviderKey {
  readonly kind: "key" | "token"
  readonly value: Redacted.Redacted
}

/** How a provider gets its key, where it takes one. */
export interface KeySlot {
  /** Where its key is from now, for people, such as `ANTHROPIC_API_KEY`; `null`: it has none. */
  readonly source: string | null
  /**
   * The same provider, which asks for its key whenever a model of it is opened. `renew` is for tokens: it gives another one in
   * place of one that the provider has refused, or the same where there is no other.
   */
  readonly give: (
    source: string,
    key: Effect.Effect<ProviderKey, ModelError>,
    renew?: (refused: Redacted.Redacted) => Effect.Effect<ProviderKey, ModelError>
  ) => Provider
}

/** Whether a provider can be used as it is set up; `reason` is one sentence that says what to do. */
export type Availability =
  | { readonly ready: true }
  | { readonly ready: false; readonly reason: string }

export interface Provider {
  readonly id: string
  readonly name: string
  readonly models: ReadonlyArray<ModelInfo>
  /** True where the provider knows more models than `models` lists: then any id is handed to `open`. */
  readonly openEnded: boolean
  readonly availability: Availability
  /** Asks the provider which models it has, in bounds; absent where that is known, or cannot be asked. */
  readonly discover?: Effect.Effect<ReadonlyArray<{ readonly model: string; readonly name: string | null }>, ModelError>
  /** Absent where there is no key to give: it needs none, or knows its own. */
  readonly key?: KeySlot
  /**
   * Makes the model. It is called for ids in `models`, and for any id if `openEnded`, before every request; it connects to
   * nothing, unless the key has to be renewed.
   */
  readonly open: (modelID: string) => Effect.Effect<Model, ModelError>
}

/** What a transform may do. Later calls win; `update` and `remove` of a provider that is not there are errors of that transform. */
export interface ProviderDraft {
  readonly ids: () => ReadonlyArray<string>
  readonly get: (id: string) => Provider | null
  readonly has: (id: string) => boolean
  /** Adds a provider, or replaces the one of this id. */
  readonly set: (id: string, provider: Provider) => void
  readonly remove: (id: string) => void
  readonly update: (id: string, change: (provider: Provider) => Provider) => void
  /** The model of those who name none; the last transform that says so wins. */
  readonly setDefault: (ref: ModelRef) => void
}

/** The materialized result of all transforms. */
export interface ProviderTable {
  readonly providers: ReadonlyMap<string, Provider>
  /** Which plugin each provider, by id, comes from. */
  readonly plugins: ReadonlyMap<string, string>
  readonly default: ModelRef | null
}

/** Used where nothing names a model: it needs no key and no network. */
export const fallbackModel: ModelRef = { provider: "bezel", model: "offline" }

const providerID = /^[a-z0-9][a-z0-9._-]*$/i

/** What one rebuild works on. */
export interface ProviderState {
  readonly providers: Map<string, Provider>
  readonly plugins: Map<string, string>
  default: ModelRef | null
}

export const emptyProviders = (): ProviderState => ({ providers: new Map(), plugins: new Map(), default: null })

export const finishProviders = (state: ProviderState): ProviderTable => ({
  providers: new Map(state.providers),
  plugins: new Map(state.plugins),
  default: state.default
})

/** The face of the state for transforms of `plugin`. A misuse throws a plain `Error`: the fold takes that transform out. */
export const draftProviders = (state: ProviderState, plugin: string): ProviderDraft => {
  const existing = (id: string): Provider => {
    const provider = state.providers.get(id)
    if (provider === undefined) throw new Error(`There is no provider "${id}"${among(id, [...state.providers.keys()])}`)
    return provider
  }
  const put = (id: string, provider: Provider): void => {
    if (!providerID.test(id)) {
      throw new Error(`"${id}" cannot be the id of a provider: use letters, digits, ".", "_" and "-"`)
    }
    if (provider.id !== id) throw new Error(`The provider set as "${id}" says that its id is "${provider.id}"`)
    const foreign = provider.models.find((model) => model.provider !== id)
    if (foreign !== undefined) {
      throw new Error(`The provider "${id}" lists a model of "${foreign.provider}": ${foreign.model}`)
    }
    state.providers.set(id, provider)
  }
  return {
    ids: () => [...state.providers.keys()],
    get: (id) => state.providers.get(id) ?? null,
    has: (id) => state.providers.has(id),
    set: (id, provider) => {
      put(id, provider)
      state.plugins.set(id, plugin)
    },
    remove: (id) => {
      existing(id)
      state.providers.delete(id)
      state.plugins.delete(id)
    },
    update: (id, change) => put(id, change(existing(id))),
    setDefault: (ref) => {
      state.default = ref
    }
  }
}

/** One model that can be named, and whether it can be used now. */
export interface ListedModel {
  readonly info: ModelInfo
  readonly availability: Availability
}

export const listModels = (table: ProviderTable): ReadonlyArray<ListedModel> =>
  [...table.providers.values()].flatMap((provider) =>
    provider.models.map((info) => ({ info, availability: provider.availability }))
  )

/** Why there is no model of that name; `null` where there is one, whether it can be used now or not. */
export const missingModel = (table: ProviderTable, ref: ModelRef): string | null => {
  const provider = table.providers.get(ref.provider)
  if (provider === undefined) {
    return `There is no provider "${ref.provider}" for the model ${formatModelRef(ref)}${
      among(ref.provider, [...table.providers.keys()])
    }`
  }
  if (provider.openEnded || provider.models.some(({ model }) => model === ref.model)) return null
  return `There is no model "${ref.model}" at the provider "${provider.id}"${
    among(ref.model, provider.models.map(({ model }) => model))
  }`
}

/** Finds and opens a model; `null` is the default one. What does not exist is refused by name, with what does. */
export const resolveModel = (table: ProviderTable, wanted: ModelRef | null): Effect.Effect<Model, ModelError> => {
  const ref = wanted ?? table.default ?? fallbackModel
  const provider = table.providers.get(ref.provider)
  if (provider !== undefined && !provider.availability.ready) {
    return refuse(`The model ${formatModelRef(ref)} cannot be used: ${provider.availability.reason}`)
  }
  const missing = missingModel(table, ref)
  if (provider === undefined || missing !== null) return refuse(missing ?? "")
  return provider.open(ref.model)
}

const refuse = (message: string): Effect.Effect<never, ModelError> =>
  Effect.fail(new ModelError({ kind: "unknown_model", message, retryable: false, retryAfterMs: null }))

/** Completes a sentence about a missing name with what exists: the likely ones, else all of a short list. */
const among = (name: string, known: ReadonlyArray<string>): string => {
  if (known.length === 0) return "; none is set up"
  const close = closeMatches(name, known)
  if (close.length > 0) return `; did you mean ${close.join(" or ")}?`
  const shown = known.slice(0, 12).join(", ")
  return `; there ${known.length === 1 ? "is" : "are"} ${shown}${
    known.length > 12 ? " and more (bezel model list)" : ""
  }`
}
