/**
 * The session facet of connecting: looks for models that could be used, asks for keys, and keeps what was chosen.
 *
 * Nothing is asked over a network before a person wants to connect something. A key is stored once the provider has accepted
 * it, among those of `bezel auth`. A server of this machine becomes a provider of the user's settings, and the model the
 * default of those who have none; what a person has written there already stays.
 */
import type { SessionContext } from "@bezel/core/host"
import type { ModelError } from "@bezel/core/model"
import { parseModelRef, type Provider } from "@bezel/core/model"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { Credentials } from "../accounts/contract.ts"
import { useIfThere } from "../optional/index.ts"
import { UserSettings } from "../preferences/contract.ts"
import { makeProviders } from "../providers/catalog.ts"
import { ModelSetting } from "../providers/contract.ts"
import { type Candidate, Connect, ConnectError, ConnectOptions, Guidance, ProviderKeyRequest } from "./contract.ts"
import { byLikelihood } from "./likely.ts"
import { answering, type AnsweringServer, type LocalServer, localServers, placeOf } from "./local-servers.ts"

type Context = Pick<
  SessionContext,
  "options" | "settings" | "provider" | "provide" | "use" | "find" | "state" | "interactions" | "onActivate"
>

const fail = (message: string) => Effect.fail(new ConnectError({ message }))

const nobody = { anthropicKey: null, anthropicURL: null, openAIKey: null, openAIURL: null }

/** A server of this machine as a provider of the settings, as a person would write it. */
const asSettings = ({ name, url }: LocalServer) => ({ name, options: { baseURL: url } })

const asProvider = (server: LocalServer): Provider | null =>
  makeProviders(nobody, { [server.id]: asSettings(server) }).find(({ id }) => id === server.id) ?? null

/** The facet for session hosts. */
export const session = Effect.fn("connect/session")(function*(ctx: Context) {
  const options = yield* Schema.decodeUnknownEffect(ConnectOptions, { onExcessProperty: "error" })(ctx.options ?? {})
  const servers = options.servers ?? (yield* localServers)

  /** What the plugins before this one have made of the providers. */
  let known: ReadonlyMap<string, Provider> = new Map()
  /** Found on this machine since the start, by id. */
  const found = new Map<string, LocalServer>()
  let chosen: { readonly provider: string; readonly model: string } | null = null
  yield* ctx.provider.transform((draft) => {
    known = new Map(
      draft.ids().flatMap((id) => {
        const provider = draft.get(id)
        return provider === null ? [] : [[id, provider] as const]
      })
    )
    for (const server of found.values()) {
      const provider = draft.has(server.id) ? null : asProvider(server)
      if (provider !== null) draft.set(server.id, provider)
    }
    if (chosen !== null) draft.setDefault(chosen)
  })

  /** The same as they are now: the result is rebuilt for who asks. */
  const providers = Effect.map(ctx.provider.list, () => known)

  const usable = (provider: Provider) => provider.availability.ready && provider.id !== "bezel"
  const guidance = yield* ctx.state(Guidance, { needed: ctx.settings.get(ModelSetting) === null, keys: [] })
  const tellKeys = Effect.flatMap(providers, (all) =>
    guidance.update((draft) => {
      draft.keys = [...all.values()].filter(usable).flatMap(({ key }) => key?.source ?? [])
    }))
  yield* ctx.onActivate(tellKeys)

  const candidateOf = (provider: Provider): Candidate | null => {
    const { id, key, name } = provider
    if (usable(provider)) {
      const source = key?.source ?? null
      const from = source === null
        ? "set up already"
        : /^[A-Z_]+$/.test(source)
        ? `${source} is set`
        : `its key is from ${source}`
      return { provider: id, name, ready: true, found: from }
    }
    // Where something else than a key is missing, asking for one would help nobody.
    return key === undefined || key.source !== null || provider.discover === undefined
      ? null
      : { provider: id, name, ready: false, found: "takes a key" }
  }

  const find = Effect.fn("connect.find")(function*() {
    const there = yield* providers
    const all = [...there.values()].flatMap((provider) => candidateOf(provider) ?? [])
    const here = yield* answering(servers.filter(({ id }) => !there.has(id)))
    const describe = (server: AnsweringServer): Candidate => ({
      provider: server.id,
      name: server.name,
      ready: true,
      found: server.models === 0 ? `answers on ${placeOf(server)}, has no models` : `answers on ${placeOf(server)}`
    })
    for (const server of here) found.set(server.id, server)
    return [
      ...all.filter(({ ready }) => ready),
      ...here.filter(({ models }) => models > 0).map(describe),
      ...here.filter(({ models }) => models === 0).map(describe),
      ...all.filter(({ ready }) => !ready)
    ]
  })

  /** Of those that are there, else of those that were found. */
  const providerOf = (id: string): Effect.Effect<Provider, ConnectError> =>
    Effect.flatMap(providers, (all) => {
      const server = found.get(id)
      const provider = all.get(id) ?? (server === undefined ? null : asProvider(server))
      return provider === null
        ? fail(`There is no provider ${JSON.stringify(id.slice(0, 80))}.`)
        : Effect.succeed(provider)
    })

  const modelsOf = Effect.fn("connect.models")(function*(id: string) {
    const provider = yield* providerOf(id)
    if (!provider.availability.ready) {
      return yield* fail(`${provider.name} cannot be used: ${provider.availability.reason}.`)
    }
    const listed = provider.models.map(({ model, name }) => ({ model, name }))
    if (provider.discover === undefined) return byLikelihood(listed)
    // One of the settings or the environment goes before a stored one, so pasting another would change nothing.
    const canReplace = provider.key !== undefined && [null, "bezel auth"].includes(provider.key.source)
    const said = yield* Effect.mapError(
      provider.discover,
      ({ kind, message }) => new ConnectError({ message, needsKey: kind === "auth" && canReplace })
    )
    const names = new Map([...said, ...listed].map(({ model, name }) => [model, name ?? model] as const))
    const all = byLikelihood([...names].map(([model, name]) => ({ model, name })))
    return all.length > 0 ? all : yield* fail(`${provider.name} answers, but has no models yet.`)
  })

  const noKey = (written: string): string | null =>
    written === ""
      ? "Nothing was pasted."
      : /[^\x21-\x7e]/.test(written)
      ? "That is no key: it holds spaces, line ends or characters that no key has."
      : null

  /** Asks the provider with this key, before it is stored. */
  const check = (provider: Provider, value: Redacted.Redacted): Effect.Effect<unknown, ModelError> =>
    provider.key?.give("what was pasted", Effect.succeed({ kind: "key", value })).discover ?? Effect.void

  const askForKey = Effect.fn("connect.askForKey")(function*(id: string, sessionID: string) {
    const provider = yield* providerOf(id)
    if (provider.key === undefined) return yield* fail(`${provider.name} takes no key.`)
    const credentials = yield* useIfThere(ctx, Credentials)
    if (credentials === null) return yield* fail("Keys cannot be stored here: the plugin bezel.accounts is not loaded.")
    const ask = (problem: string | null): Effect.Effect<boolean, ConnectError> =>
      Effect.gen(function*() {
        const outcome = yield* ctx.interactions.request(
          ProviderKeyRequest,
          { name: provider.name, problem },
          { sessionID }
        )
        if (outcome.type !== "answered") return false
        const written = Redacted.value(outcome.response.key).trim()
        const unlikely = noKey(written)
        if (unlikely !== null) return yield* ask(unlikely)
        const key = Redacted.make(written)
        const accepted = yield* Effect.result(check(provider, key))
        if (Result.isFailure(accepted)) return yield* ask(accepted.failure.message)
        yield* Effect.mapError(credentials.set(id, key), ({ message }) => new ConnectError({ message }))
        yield* tellKeys
        return true
      })
    return yield* ask(null)
  })

  /** Writes what is to hold from now on; the path of the file, `null` where nothing had to be written. */
  const write = Effect.fnUntraced(function*(provider: string, model: string, server: LocalServer | undefined) {
    const settings = yield* useIfThere(ctx, UserSettings)
    if (settings === null) return null
    const named = ctx.settings.get(ModelSetting) ?? (yield* settings.read).model ?? null
    if (server !== undefined) yield* settings.setIn("providers", provider, asSettings(server))
    if (named === null) yield* settings.set("model", `${provider}/${model}`)
    return server !== undefined || named === null ? settings.file : null
  })

  const keep = Effect.fn("connect.keep")(function*(provider: string, model: string) {
    const ref = parseModelRef(`${provider}/${model}`)
    if ("error" in ref) return yield* fail(ref.error)
    const server = (yield* providers).has(provider) ? undefined : found.get(provider)
    if (ctx.settings.get(ModelSetting) === null) chosen ??= ref
    yield* ctx.provider.reload
    yield* guidance.update((draft) => {
      draft.needed = false
    })
    return yield* Effect.mapError(
      write(provider, model, server),
      ({ message }) => new ConnectError({ message: `It answers from now on, and could not be kept: ${message}` })
    )
  })

  yield* ctx.provide(Connect, {
    guidance,
    find,
    askForKey: ({ provider, sessionID }) => askForKey(provider, sessionID),
    models: ({ provider }) => modelsOf(provider),
    keep: ({ model, provider }) => keep(provider, model)
  })
})
