/** Accounts as clients see them: which providers have a key and from where, signing in by a dialog, and no key anywhere. */
import { Plugin } from "@bezel/core/host"
import type { SettingsKey, SettingsReader } from "@bezel/core/settings"
import { emptySettings, testPresentation, testSessionHost } from "@bezel/core/testing"
import { Accounts, makeCredentialStore, SignIn } from "@bezel/plugins/accounts"
import { session as accounts } from "@bezel/plugins/accounts/session"
import { ProvidersSetting } from "@bezel/plugins/providers/contract"
import { session as providers } from "@bezel/plugins/providers/session"
import { describe, expect, it } from "@effect/vitest"
import { ConfigProvider, Effect, Redacted, Schema } from "effect"
import * as fs from "node:fs"
import * as path from "node:path"
import { type AuthorizationServer, authorizationServer, temporaryFolder } from "./authorization-server.ts"

const local = { options: { baseURL: "http://127.0.0.1:1/v1" }, models: { m: {} } }

type Person = (url: string, authority: AuthorizationServer) => Promise<string | null | "declined">

/** A location whose providers are `work`, which one signs in to, `named`, which has a key in the settings, and `bare`. */
const world = (person: Person) =>
  Effect.gen(function*() {
    const authority = yield* authorizationServer
    authority.mark = "canary-"
    const folder = yield* temporaryFolder
    const setting = Schema.decodeUnknownSync(ProvidersSetting.schema)({
      bare: local,
      named: { ...local, options: { ...local.options, apiKey: "canary-key" } },
      work: {
        ...local,
        oauth: { authorizeURL: authority.authorizeURL, tokenURL: authority.tokenURL, clientID: "bezel" }
      }
    })
    const settings: SettingsReader = {
      ...emptySettings,
      get: <A>(key: SettingsKey<A>): A => (key.name === ProvidersSetting.name ? setting : key.default) as A
    }
    const host = yield* testSessionHost([
      Plugin.define({ id: "bezel.providers", session: providers }),
      Plugin.define({ id: "bezel.accounts", session: accounts })
    ], {
      settings,
      entries: {
        "bezel.providers": { required: true, options: { configDirectory: folder, cacheDirectory: folder } },
        "bezel.accounts": { required: true, options: { directory: folder } }
      }
    })
    const { id: sessionID } = yield* host.session.create({ title: "t" })
    const asked: Array<unknown> = []
    yield* testPresentation(host, {
      "test.person": (ctx) =>
        ctx.interactions.handle(SignIn, (request) => {
          asked.push(request)
          return Effect.flatMap(
            Effect.promise(() => person(request.url, authority)),
            (code) => code === null ? Effect.never : Effect.succeed(code === "declined" ? code : { code })
          )
        })
    }, sessionID)
    const service = yield* (yield* host.connect(sessionID)).use(Accounts)
    const of = (provider: string) =>
      Effect.map(service.list(), (all) => all.find((account) => account.provider === provider))
    const signIn = service.signIn({ provider: "work", sessionID })
    return { asked, authority, folder, of, service, sessionID, signIn }
  }).pipe(Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromUnknown({})))

const withCode: Person = async (url, authority) => (await authority.browse(url)).searchParams.get("code")
const byBrowser: Person = async (url, authority) => {
  await (await fetch(await authority.browse(url))).text()
  return null
}

describe("accounts", () => {
  it.live("say of each provider whether it has a key, whether that is stored and whether one can sign in, and nothing else", () =>
    Effect.gen(function*() {
      const { folder, of, service } = yield* world(withCode)
      const nothing = { name: "bare", hasKey: false, stored: false, ready: true, canSignIn: false }
      expect(yield* of("bare")).toEqual({ ...nothing, provider: "bare" })
      expect(yield* of("named")).toEqual({ ...nothing, provider: "named", name: "named", hasKey: true })
      expect(yield* of("work")).toEqual({ ...nothing, provider: "work", name: "work", canSignIn: true })
      // Another process stores one; it is seen when somebody looks again.
      yield* makeCredentialStore(folder).setKey("bare", Redacted.make("canary-stored"))
      expect(yield* of("bare")).toMatchObject({ hasKey: false })
      yield* service.refresh()
      expect(yield* of("bare")).toMatchObject({ hasKey: true, stored: true })
      expect(JSON.stringify(yield* service.list())).not.toContain("canary")
      yield* service.remove({ provider: "bare" })
      expect(yield* of("bare")).toMatchObject({ hasKey: false, stored: false })
    }).pipe(Effect.scoped))

  it.live.each([["a code that a person brings", withCode], ["the browser that comes back", byBrowser]] as const)(
    "are signed in to by %s, with a token that no client sees",
    ([, person]) =>
      Effect.gen(function*() {
        const { asked, folder, of, signIn } = yield* world(person)
        expect(yield* signIn).toEqual({ signedIn: true })
        expect(asked).toEqual([{ provider: "work", url: expect.stringContaining("code_challenge_method=S256") }])
        expect(yield* of("work")).toMatchObject({ hasKey: true, stored: true })
        expect(JSON.stringify(asked)).not.toContain("canary")
        expect(fs.readFileSync(path.join(folder, "credentials.json"), "utf8")).toContain("canary-access-")
      }).pipe(Effect.scoped)
  )

  it.live("are not signed in to by who declines, with a code that is none, or where the settings say nothing of it", () =>
    Effect.gen(function*() {
      const { of, service, sessionID, signIn } = yield* world(async () => "declined")
      expect(yield* signIn).toEqual({ signedIn: false })
      expect(yield* of("work")).toMatchObject({ hasKey: false })
      const failed = yield* Effect.flip(service.signIn({ provider: "bare", sessionID }))
      expect(failed.message).toContain("its settings say nothing of oauth. bezel auth set bare stores a key")
      const wrong = yield* world(async () => "code-of-somebody-else")
      expect((yield* Effect.flip(wrong.signIn)).message).toContain("work did not accept the sign-in: invalid_grant")
      expect(yield* wrong.of("work")).toMatchObject({ hasKey: false })
    }).pipe(Effect.scoped))
})
