/**
 * An authorization server on loopback, with codes, PKCE, refresh tokens that work once, and clients that register themselves:
 * what a provider runs, and what servers of the Model Context Protocol send people to.
 */
import * as Effect from "effect/Effect"
import { createHash } from "node:crypto"
import { mkdtempSync, rmSync } from "node:fs"
import { createServer, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"

export interface AuthorizationServer {
  /** Its own address, which is its name too. */
  readonly issuer: string
  /** What it says of itself; may be changed. */
  metadata: { readonly [name: string]: unknown }
  /** What came to the address where clients register. */
  readonly registrations: ReadonlyArray<{ readonly [name: string]: unknown }>
  /** Queries of the people who came to sign in. */
  readonly authorizations: ReadonlyArray<URLSearchParams>
  /** Secret of clients that register; `null`: they get none. */
  secret: string | null
  /** Said behind the browser's way back as who sends it (RFC 9207). */
  sender: string | null
  /** What tokens begin with. */
  mark: string
  /** Whether it has given this token, and it has not ended since. */
  readonly isGood: (token: string) => boolean
  /** Ends all tokens that were given; with `refresh` also those to renew them with. */
  readonly endTokens: (refresh: boolean) => void
  readonly authorizeURL: string
  readonly tokenURL: string
  /** Forms that came to the token address. */
  readonly forms: ReadonlyArray<URLSearchParams>
  /** What a person's browser does at this address: follows it, signs in, and is sent back. Gives where it was sent to. */
  readonly browse: (url: string) => Promise<URL>
  /** Answers token requests in its own way, or later as it should, until it is set to null. */
  answer: ((response: ServerResponse, asItShould: () => void) => void) | null
  /** Seconds that a token is good for. */
  lifetime: number
}

export const authorizationServer = Effect.acquireRelease(
  Effect.promise(async () => {
    const challenges = new Map<string, string>()
    const refreshTokens = new Set<string>()
    const forms: Array<URLSearchParams> = []
    const good = new Set<string>()
    const registrations: Array<{ readonly [name: string]: unknown }> = []
    const authorizations: Array<URLSearchParams> = []
    let issued = 0
    const server = createServer((request, response) => {
      const url = new URL(request.url ?? "/", "http://127.0.0.1")
      if (url.pathname === "/.well-known/oauth-authorization-server") {
        response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(self.metadata))
        return
      }
      if (url.pathname === "/authorize") {
        authorizations.push(url.searchParams)
        const code = `code-${++issued}`
        challenges.set(code, url.searchParams.get("code_challenge") ?? "")
        const back = new URL(url.searchParams.get("redirect_uri") ?? "")
        back.searchParams.set("code", code)
        back.searchParams.set("state", url.searchParams.get("state") ?? "")
        if (self.sender !== null) back.searchParams.set("iss", self.sender)
        response.writeHead(302, { location: back.href }).end()
        return
      }
      let text = ""
      request.setEncoding("utf8").on("data", (chunk: string) => {
        text += chunk
      })
      request.on("end", () => {
        if (url.pathname === "/register") {
          const asked: { readonly [name: string]: unknown } = JSON.parse(text)
          registrations.push(asked)
          response.writeHead(201, { "content-type": "application/json" }).end(JSON.stringify({
            ...asked,
            client_id: `client-${registrations.length}`,
            ...(self.secret === null
              ? {}
              : {
                client_secret: self.secret,
                client_secret_expires_at: 0,
                token_endpoint_auth_method: "client_secret_basic"
              })
          }))
          return
        }
        const form = new URLSearchParams(text)
        const basic = /^Basic (.+)$/.exec(request.headers.authorization ?? "")?.[1]
        if (basic !== undefined) form.set("basic", Buffer.from(basic, "base64").toString())
        forms.push(form)
        const asItShould = (): unknown => {
          const refuse = (error: string) =>
            response.writeHead(400).end(JSON.stringify({ error, error_description: "no\u001b[2J" }))
          if (form.get("grant_type") === "refresh_token") {
            if (!refreshTokens.delete(form.get("refresh_token") ?? "")) return refuse("invalid_grant")
          } else {
            const verifier = createHash("sha256").update(form.get("code_verifier") ?? "").digest("base64url")
            const code = form.get("code") ?? ""
            if (challenges.get(code) !== verifier) return refuse("invalid_grant")
            challenges.delete(code)
          }
          const number = ++issued
          refreshTokens.add(`${self.mark}refresh-${number}`)
          good.add(`${self.mark}access-${number}`)
          return response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({
            access_token: `${self.mark}access-${number}`,
            refresh_token: `${self.mark}refresh-${number}`,
            expires_in: self.lifetime,
            token_type: "Bearer"
          }))
        }
        if (self.answer === null) asItShould()
        else self.answer(response, asItShould)
      })
    })
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    const at = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const self: AuthorizationServer = {
      issuer: at,
      metadata: {
        issuer: at,
        authorization_endpoint: `${at}/authorize`,
        token_endpoint: `${at}/token`,
        registration_endpoint: `${at}/register`,
        response_types_supported: ["code"],
        code_challenge_methods_supported: ["S256"]
      },
      registrations,
      authorizations,
      secret: null,
      sender: null,
      mark: "",
      isGood: (token) => good.has(token),
      endTokens: (refresh) => {
        good.clear()
        if (refresh) refreshTokens.clear()
      },
      authorizeURL: `${at}/authorize`,
      tokenURL: `${at}/token`,
      forms,
      answer: null,
      lifetime: 3600,
      browse: async (url) => {
        const response = await fetch(url, { redirect: "manual" })
        return new URL(response.headers.get("location") ?? "")
      }
    }
    return {
      self,
      close: () =>
        new Promise<void>((resolve) => {
          server.close(() => resolve())
          server.closeAllConnections()
        })
    }
  }),
  ({ close }) => Effect.promise(close)
).pipe(Effect.map(({ self }) => self))

/** A folder of its own, gone at the end of the scope. */
export const temporaryFolder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "bezel-accounts-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
)
