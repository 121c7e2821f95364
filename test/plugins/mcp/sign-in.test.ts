/** Signing in to servers at an address: a server and an authorization server of their own, with a person and a browser. */
import { Conversation, conversationKey, Plugin } from "@bezel/core/host"
import { ServiceDirectory } from "@bezel/core/service"
import { call, type ScriptedTurn, testPresentation } from "@bezel/core/testing"
import { Credentials, SignIn } from "@bezel/plugins/accounts"
import { session as accounts } from "@bezel/plugins/accounts/session"
import { credentialKey, type McpServer } from "@bezel/plugins/mcp"
import { describe, expect, it } from "@effect/vitest"
import { Context, Effect, Logger, Option, Redacted, Stream } from "effect"
import * as fs from "node:fs"
import * as path from "node:path"
import { type AuthorizationServer, authorizationServer, temporaryFolder } from "../accounts/authorization-server.ts"
import { type RealSite, realSite } from "./real-site.ts"
import { world } from "./world.ts"

/** A server that lets in who has a token of the authorization server. */
const guarded = Effect.gen(function*() {
  const authority = yield* authorizationServer
  const site = yield* realSite
  site.admits = (authorization) => authority.isGood(authorization?.replace(/^Bearer /, "") ?? "")
  site.resource = { resource: site.url, authorization_servers: [authority.issuer], scopes_supported: ["read", "write"] }
  site.challenge = `resource_metadata="${site.origin}/.well-known/oauth-protected-resource/mcp", scope="read"`
  return { authority, site }
})

interface Options {
  readonly script?: ReadonlyArray<ScriptedTurn>
  readonly setting?: Partial<Extract<McpServer, { readonly url: string }>>
  /** What a person does with the address; default: their browser signs in and comes back. */
  readonly person?: (url: string, authority: AuthorizationServer) => Promise<string | null>
}

const signedOut = (authority: AuthorizationServer, site: RealSite, folder: string, options: Options = {}) =>
  Effect.gen(function*() {
    const made = yield* world(() => ({ docs: { url: site.url, ...options.setting } }), options.script ?? [], {
      extra: [Plugin.define({ id: "bezel.accounts", session: accounts })],
      entries: { "bezel.accounts": { required: true, options: { directory: folder } } }
    })
    const urls: Array<string> = []
    const person = options.person ?? (async (url, at) => {
      const back = await at.browse(url)
      await fetch(back)
      return null
    })
    yield* testPresentation(made.host, {
      "test.person": (ctx) =>
        ctx.interactions.handle(SignIn, ({ url }) => {
          urls.push(url)
          return Effect.flatMap(Effect.promise(() => person(url, authority)), (code) =>
            code === null ? Effect.never : Effect.succeed({ code }))
        })
    }, made.sessionID)
    const signIn = made.remote.signIn({ name: "docs", sessionID: made.sessionID })
    return { ...made, urls, signIn }
  })

describe("a server that wants a sign-in", () => {
  it.live("says so once, is signed in to by the browser, and is called with the token from then on", () =>
    Effect.gen(function*() {
      const { authority, site } = yield* guarded
      const folder = yield* temporaryFolder
      const { host, results, sessionID, signIn, until, urls } = yield* signedOut(authority, site, folder, {
        script: [[call("docs_echo", { text: "x" })], "ok"]
      })
      const before = yield* until("docs", ({ status }) => status === "failed")
      expect(before).toMatchObject({
        account: "wanted",
        retryAt: null,
        error: "it wants you to sign in, with /mcp or bezel auth login docs, or to say who you are in its headers"
      })
      expect(yield* signIn).toEqual({ signedIn: true })
      expect(yield* until("docs", ({ status }) => status === "ready")).toMatchObject({ account: "signed-in" })
      expect(yield* host.ask(sessionID, "go")).toBe("ok")
      expect(results()[0]).toMatchObject({ isFailure: false, result: '{"text":"x"}' })

      const query = new URL(urls[0] ?? "").searchParams
      expect(Object.fromEntries(query)).toMatchObject({
        client_id: "client-1",
        scope: "read",
        resource: site.url,
        code_challenge_method: "S256"
      })
      expect(authority.registrations).toEqual([expect.objectContaining({
        client_name: "Bezel",
        redirect_uris: [query.get("redirect_uri")],
        token_endpoint_auth_method: "none"
      })])
      expect(authority.forms[0]?.get("resource")).toBe(site.url)
      expect(fs.statSync(path.join(folder, "credentials.json")).mode & 0o777).toBe(0o600)
    }).pipe(Effect.scoped))

  it.live("takes a token that another process has got, and one that expires is renewed in the middle of a session", () =>
    Effect.gen(function*() {
      const { authority, site } = yield* guarded
      const folder = yield* temporaryFolder
      authority.lifetime = 30
      yield* Effect.scoped(Effect.gen(function*() {
        const { signIn, until } = yield* signedOut(authority, site, folder)
        yield* signIn
        yield* until("docs", ({ status }) => status === "ready")
      }))
      const { host, results, sessionID, until } = yield* signedOut(authority, site, folder, {
        script: [[call("docs_echo", { n: 1 })], "one", [call("docs_echo", { n: 2 })], "two"]
      })
      yield* until("docs", ({ status }) => status === "ready")
      // Within a minute of its end a token is renewed before it is used.
      expect(authority.forms.some((form) => form.get("grant_type") === "refresh_token")).toBe(true)
      yield* host.ask(sessionID, "go")
      expect(results()[0]).toMatchObject({ isFailure: false })
      // A server may end one earlier than it has said.
      authority.lifetime = 3600
      authority.endTokens(false)
      yield* host.ask(sessionID, "again")
      expect(results()[0]).toMatchObject({ isFailure: false, result: '{"n":2}' })
      expect(authority.forms.at(-1)?.get("grant_type")).toBe("refresh_token")
      expect(authority.forms.at(-1)?.get("resource")).toBe(site.url)
      expect(authority.authorizations).toHaveLength(1)
    }).pipe(Effect.scoped))

  it.live("that is asked by many calls at once has its token renewed once", () =>
    Effect.gen(function*() {
      const { authority, site } = yield* guarded
      const folder = yield* temporaryFolder
      const { host, results, sessionID, signIn, until } = yield* signedOut(authority, site, folder, {
        script: [Array.from({ length: 6 }, (_, n) => call("docs_echo", { n })), "ok"]
      })
      yield* signIn
      yield* until("docs", ({ status }) => status === "ready")
      authority.endTokens(false)
      yield* host.ask(sessionID, "go")
      expect(results().map(({ isFailure }) => isFailure)).toEqual([false, false, false, false, false, false])
      expect(authority.forms.filter((form) => form.get("grant_type") === "refresh_token")).toHaveLength(1)
    }).pipe(Effect.scoped))

  it.live("that was revoked says how to sign in again, in the call, in its state, and is not tried for ever", () =>
    Effect.gen(function*() {
      const { authority, site } = yield* guarded
      const folder = yield* temporaryFolder
      const { host, results, sessionID, signIn, until } = yield* signedOut(authority, site, folder, {
        script: [[call("docs_echo", {})], "ok", [call("docs_echo", {})], "back"]
      })
      yield* signIn
      yield* until("docs", ({ status }) => status === "ready")
      authority.endTokens(true)
      yield* host.ask(sessionID, "go")
      expect(results()[0]).toMatchObject({
        isFailure: true,
        result: "The MCP server docs: its sign-in has ended; sign in again with /mcp or bezel auth login docs."
      })
      expect(yield* until("docs", ({ status }) => status === "failed")).toMatchObject({
        account: "wanted",
        retryAt: null,
        error: "its sign-in has ended; sign in again with /mcp or bezel auth login docs"
      })
      yield* signIn
      yield* until("docs", ({ status }) => status === "ready")
      expect(yield* host.ask(sessionID, "again")).toBe("back")
      expect(results()[0]).toMatchObject({ isFailure: false })
    }).pipe(Effect.scoped))

  it.live("that wants more of a token for one tool says what, and stays for the others", () =>
    Effect.gen(function*() {
      const { authority, site } = yield* guarded
      site.scopes.set("slow", "docs:write docs:slow")
      const { host, results, sessionID, signIn, until } = yield* signedOut(authority, site, yield* temporaryFolder, {
        script: [[call("docs_slow", {})], "one", [call("docs_echo", {})], "two"]
      })
      yield* signIn
      yield* until("docs", ({ status }) => status === "ready")
      yield* host.ask(sessionID, "go")
      expect(results()[0]).toMatchObject({
        isFailure: true,
        result: 'The MCP server docs: the sign-in does not allow this; put the scopes "docs:write docs:slow" into ' +
          "oauth.scopes of its setting and sign in again with /mcp or bezel auth login docs."
      })
      yield* host.ask(sessionID, "again")
      expect(results()[0]).toMatchObject({ isFailure: false })
      yield* until("docs", ({ account, status }) => status === "ready" && account === "signed-in")
    }).pipe(Effect.scoped))

  it.live("tells of stored keys that are damaged, which are nothing to a server that wants none", () =>
    Effect.gen(function*() {
      const { authority, site } = yield* guarded
      const folder = yield* temporaryFolder
      fs.writeFileSync(path.join(folder, "credentials.json"), "{ damaged")
      const { until } = yield* signedOut(authority, site, folder)
      expect((yield* until("docs", ({ error }) => error !== null)).error).toContain("credentials.json are damaged")
      site.admits = () => true
      yield* until("docs", ({ account, status }) => status === "ready" && account === "none")
    }).pipe(Effect.scoped))

  it.live("is signed out of, and wants a sign-in again", () =>
    Effect.gen(function*() {
      const { authority, site } = yield* guarded
      const folder = yield* temporaryFolder
      const { remote, signIn, until } = yield* signedOut(authority, site, folder)
      yield* signIn
      yield* until("docs", ({ status }) => status === "ready")
      yield* remote.signOut({ name: "docs" })
      yield* until("docs", ({ account }) => account === "wanted")
      expect(fs.readFileSync(path.join(folder, "credentials.json"), "utf8")).not.toContain("access-")
    }).pipe(Effect.scoped))

  it.live("knows a client that was registered by hand, with its secret, and one that is given a secret", () =>
    Effect.gen(function*() {
      const { authority, site } = yield* guarded
      const folder = yield* temporaryFolder
      authority.metadata = {
        ...authority.metadata,
        registration_endpoint: undefined,
        token_endpoint_auth_methods_supported: ["client_secret_post"]
      }
      const own = { clientID: "mine", clientSecret: Redacted.make("s3cret"), scopes: ["all"] }
      const { signIn, until, urls } = yield* signedOut(authority, site, folder, { setting: { oauth: own } })
      yield* signIn
      yield* until("docs", ({ status }) => status === "ready")
      expect(new URL(urls[0] ?? "").searchParams.get("scope")).toBe("all")
      expect(authority.forms[0]?.get("client_id")).toBe("mine")
      expect(authority.forms[0]?.get("client_secret")).toBe("s3cret")

      const other = yield* guarded
      other.authority.secret = "given"
      const second = yield* signedOut(other.authority, other.site, yield* temporaryFolder)
      yield* second.signIn
      yield* second.until("docs", ({ status }) => status === "ready")
      expect(other.authority.forms[0]?.get("basic")).toBe("client-1:given")
    }).pipe(Effect.scoped))

  it.live.each<[string, (authority: AuthorizationServer, site: RealSite) => void, RegExp]>([
    [
      "an authorization server that lies about who it is",
      (authority) => {
        authority.metadata = { ...authority.metadata, issuer: "https://login.example.com" }
      },
      /^Cannot sign in to the MCP server docs: http:\/\/127\.0\.0\.1:\d+ says that it is another server, https:\/\/login\.example\.com\.$/
    ],
    [
      "a server that wants a token for another one",
      (_, site) => {
        site.resource = { ...site.resource, resource: "https://bank.example.com/mcp" }
      },
      /it asks for a token for another server, https:\/\/bank\.example\.com\/mcp\.$/
    ],
    [
      "an authorization server without PKCE",
      (authority) => {
        authority.metadata = { ...authority.metadata, code_challenge_methods_supported: ["plain"] }
      },
      /does not protect a sign-in by PKCE\.$/
    ],
    [
      "a token address that is not encrypted",
      (authority) => {
        authority.metadata = { ...authority.metadata, token_endpoint: "http://login.example.com/token" }
      },
      /it names an address that is not encrypted or not its own, http:\/\/login\.example\.com\.$/
    ],
    [
      "an authorization server that makes no clients",
      (authority) => {
        authority.metadata = { ...authority.metadata, registration_endpoint: undefined }
      },
      /makes no clients by itself; register one there and put its id into oauth\.clientID of the setting\.$/
    ],
    [
      "a server that says nothing of a sign-in",
      (_, site) => {
        site.resource = null
      },
      /it does not say how one signs in\.$/
    ]
  ])("is not signed in to by way of %s", ([, prepare, expected]) =>
    Effect.gen(function*() {
      const { authority, site } = yield* guarded
      prepare(authority, site)
      const { signIn, urls } = yield* signedOut(authority, site, yield* temporaryFolder)
      expect((yield* Effect.flip(signIn)).message).toMatch(expected)
      expect(urls).toEqual([])
      expect(authority.forms).toEqual([])
    }).pipe(Effect.scoped))

  it.live("is not signed in to by an answer of somebody else", () =>
    Effect.gen(function*() {
      const { authority, site } = yield* guarded
      authority.sender = "https://evil.example.com"
      const { signIn } = yield* signedOut(authority, site, yield* temporaryFolder)
      expect((yield* Effect.flip(signIn)).message).toBe(
        `The sign-in to docs failed: the answer came from https://evil.example.com, not from ${authority.issuer}.`
      )
      expect(authority.forms).toEqual([])
    }).pipe(Effect.scoped))

  it.live("gets its token at its own address alone, whatever another server is called", () =>
    Effect.gen(function*() {
      const { authority, site } = yield* guarded
      const folder = yield* temporaryFolder
      const { signIn, until } = yield* signedOut(authority, site, folder)
      yield* signIn
      yield* until("docs", ({ status }) => status === "ready")
      const other = yield* realSite
      other.admits = (authorization) => authorization !== undefined
      const second = yield* signedOut(authority, other, folder)
      yield* second.until("docs", ({ account }) => account === "wanted")
      expect(other.authorizations.every((value) => value === undefined)).toBe(true)
      expect(credentialKey({ url: site.url })).not.toBe(credentialKey({ url: other.url }))
    }).pipe(Effect.scoped))

  it.live("never has its tokens in logs, states, views and errors, also where it says them itself in an error", () => {
    const logged: Array<string> = []
    return Effect.gen(function*() {
      const { authority, site } = yield* guarded
      authority.mark = "canary-"
      authority.secret = "canary-secret"
      const folder = yield* temporaryFolder
      const seen: Array<unknown> = []
      const { host, model, remote, sessionID, signIn, until } = yield* signedOut(authority, site, folder, {
        script: [[call("docs_repeat", {}), call("docs_echo", {})], "ok", [call("docs_echo", {})], "ended"]
      })
      const client = yield* host.connect(sessionID)
      const conversation = yield* client.use(Conversation, { key: conversationKey(sessionID, "c1") })
      yield* conversation.ready
      yield* signIn
      yield* until("docs", ({ status }) => status === "ready")
      yield* host.ask(sessionID, "go")
      expect(JSON.stringify(model.requests.at(-1)?.messages)).toContain("you said Bearer <token>")
      authority.endTokens(true)
      yield* host.ask(sessionID, "again")
      seen.push(yield* until("docs", ({ status }) => status === "failed"), remote.servers.value)
      seen.push(model.requests, Option.getOrNull(yield* Stream.runHead(conversation.view.changes)))
      const services = Context.get(host.services, ServiceDirectory)
      seen.push(yield* (yield* services.useLocal(Credentials)).list)
      expect(site.authorizations.some((value) => value?.includes("canary-access") === true)).toBe(true)
      expect(JSON.stringify(seen)).not.toContain("canary")
      expect(logged.join("\n")).toContain("error: logged Bearer <token>")
      expect(logged.join("\n")).not.toContain("canary")
    }).pipe(
      Effect.scoped,
      Effect.provide(Logger.layer([Logger.make(({ message }) => {
        logged.push(JSON.stringify(message))
      })]))
    )
  })
})
