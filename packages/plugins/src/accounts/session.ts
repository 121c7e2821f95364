/**
 * The session facet of accounts: gives providers without a key of their own the one that is stored for them, and lets people
 * see, remove and get such keys.
 *
 * A key of the settings or of the environment goes before a stored one: who says it for one run means it. The key itself is
 * read at each request, so what is stored or renewed elsewhere holds from the next one on.
 */
import type { SessionContext } from "@bezel/core/host"
import { ModelError } from "@bezel/core/model"
import { AppPaths } from "@bezel/core/settings"
import * as Effect from "effect/Effect"
import type * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import { type OAuthOptions, ProvidersSetting } from "../providers/contract.ts"
import { Accounts, AccountsOptions, CredentialError, Credentials, SignIn, type UnknownServer } from "./contract.ts"
import { begin } from "./oauth.ts"
import { makeCredentialStore } from "./store.ts"

type Context = Pick<SessionContext, "options" | "settings" | "provider" | "provide" | "interactions">

/** The facet for session hosts. */
export const session = Effect.fn("accounts/session")(function*(ctx: Context) {
  const options = yield* Schema.decodeUnknownEffect(AccountsOptions, { onExcessProperty: "error" })(ctx.options ?? {})
  const directory = options.directory ??
    (yield* Effect.provide(AppPaths.use((paths) => Effect.succeed(paths.data)), AppPaths.layer))
  const store = makeCredentialStore(directory)
  let stored: ReadonlySet<string> = new Set()
  /** Damaged keys make no location fail: whoever needs one is told when it is asked for. */
  const look = Effect.matchEffect(store.list, {
    onSuccess: (all) =>
      Effect.sync(() => {
        stored = new Set(all.map(({ provider }) => provider))
      }),
    onFailure: (error) => Effect.logWarning(error.message)
  })
  yield* look

  const keyFor = (provider: string, refused?: Redacted.Redacted) =>
    store.get(provider, refused === undefined ? {} : { refused }).pipe(
      Effect.mapError((error) =>
        error.refused === true ? `${error.message} Sign in again with bezel auth login ${provider}.` : error.message
      ),
      Effect.flatMap((key) =>
        key === null
          ? Effect.fail(`There is no key for ${provider} any more; store one with bezel auth set ${provider}.`)
          : Effect.succeed(key)
      ),
      Effect.mapError((message) => new ModelError({ kind: "auth", message, retryable: false, retryAfterMs: null }))
    )

  yield* ctx.provider.transform((draft) => {
    for (const id of draft.ids()) {
      if (!stored.has(id) || draft.get(id)?.key?.source !== null) continue
      draft.update(
        id,
        (provider) => provider.key?.give("bezel auth", keyFor(id), (refused) => keyFor(id, refused)) ?? provider
      )
    }
  })
  const refresh = Effect.andThen(look, ctx.provider.reload)

  /** The browser may bring the code by itself; then the dialog closes. */
  const ask = Effect.fn("accounts.ask")(function*(
    key: string,
    name: string,
    server: OAuthOptions | UnknownServer,
    sessionID: string
  ) {
    const begun = yield* begin(name, server)
    const asked = Effect.map(
      ctx.interactions.request(SignIn, { provider: name, url: begun.url }, { sessionID }),
      (outcome) => outcome.type === "answered" ? outcome.response.code : null
    )
    const code = yield* Effect.raceFirst(asked, begun.returned)
    if (code === null) return false
    yield* store.setGrant(key, yield* begun.finish(code), begun.server)
    return true
  }, Effect.scoped)

  yield* ctx.provide(Credentials, {
    list: store.list,
    get: store.get,
    set: (provider, key) => Effect.andThen(store.setKey(provider, key), refresh),
    remove: store.remove,
    signIn: ({ key, name, server, sessionID }) => ask(key, name, server, sessionID)
  })

  const signIn = Effect.fn("accounts.signIn")(function*(provider: string, sessionID: string) {
    const given = ctx.settings.get(ProvidersSetting)
    const oauth = Object.hasOwn(given, provider) ? given[provider]?.oauth : undefined
    if (oauth === undefined) {
      return yield* new CredentialError({
        message:
          `One cannot sign in to ${provider}: its settings say nothing of oauth. bezel auth set ${provider} stores a key.`
      })
    }
    const signedIn = yield* ask(provider, provider, oauth, sessionID)
    if (signedIn) yield* refresh
    return { signedIn }
  })

  yield* ctx.provide(Accounts, {
    list: () =>
      Effect.map(ctx.provider.list, (all) => {
        const given = ctx.settings.get(ProvidersSetting)
        return all.filter((each) => each.takesKey).map(({ availability, id, keySource, name }) => ({
          provider: id,
          name,
          hasKey: keySource !== null,
          stored: stored.has(id),
          ready: availability.ready,
          canSignIn: Object.hasOwn(given, id) && given[id]?.oauth !== undefined
        }))
      }),
    refresh: () => refresh,
    remove: ({ provider }) => Effect.andThen(store.remove(provider), refresh),
    signIn: ({ provider, sessionID }) => signIn(provider, sessionID)
  })
})
