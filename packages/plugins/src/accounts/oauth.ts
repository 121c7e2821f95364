/**
 * Signing in to a provider: authorization code with PKCE (RFC 6749, RFC 7636), and the renewal of what that gives.
 *
 * The browser comes back to an address on loopback (RFC 8252), or a person pastes the code. Answers of the server are read
 * in bounds and never quoted, since they hold tokens; of its errors the code and description are (RFC 6749, 5.2).
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { createHash, randomBytes, timingSafeEqual } from "node:crypto"
import { createServer } from "node:http"
import type { OAuthOptions } from "../providers/contract.ts"
import { CredentialError, type SignInServer, type TokenServer, type UnknownServer } from "./contract.ts"

/** What a server has given. */
export interface Grant {
  readonly access: Redacted.Redacted
  readonly refresh: Redacted.Redacted | null
  /** Milliseconds since the epoch; `null`: the server has not said. */
  readonly expiresAt: number | null
}

const requestMillis = 30_000
const maxAnswerBytes = 64 * 1024

const TokenAnswer = Schema.fromJsonString(Schema.Struct({
  access_token: Schema.NonEmptyString,
  refresh_token: Schema.optionalKey(Schema.NullOr(Schema.String)),
  expires_in: Schema.optionalKey(Schema.NullOr(Schema.Finite))
}))
const TokenError = Schema.fromJsonString(Schema.Struct({
  error: Schema.String,
  error_description: Schema.optionalKey(Schema.String)
}))

const fail = (message: string) => Effect.fail(new CredentialError({ message }))

/** Words of a server, fit for one line. */
const plain = (text: string): string => text.replace(/[^\x20-\x7e]+/g, " ").slice(0, 200)

const readBounded = async (response: Response): Promise<string> => {
  if (response.body === null) return ""
  const decoder = new TextDecoder()
  let text = ""
  for await (const chunk of response.body) {
    text += decoder.decode(chunk, { stream: true })
    if (text.length > maxAnswerBytes) throw new Error("its answer is too long")
  }
  return text
}

/** What a form and a header say of the client. */
const clientOf = ({ clientAuth, clientID, clientSecret, resource }: TokenServer) => {
  const secret = clientSecret === undefined ? null : Redacted.value(clientSecret)
  const basic = secret !== null && clientAuth === "basic"
  const encode = (text: string) => new URLSearchParams({ a: text }).toString().slice(2)
  return {
    headers: basic
      ? { authorization: `Basic ${Buffer.from(`${encode(clientID)}:${encode(secret)}`).toString("base64")}` }
      : {},
    form: {
      ...(basic ? {} : { client_id: clientID }),
      ...(secret === null || basic ? {} : { client_secret: secret }),
      ...(resource === undefined ? {} : { resource })
    }
  }
}

const requestToken = Effect.fnUntraced(function*(provider: string, server: TokenServer, form: Record<string, string>) {
  const url = server.tokenURL
  const client = clientOf(server)
  const { ok, status, text } = yield* Effect.tryPromise({
    try: async (signal) => {
      const response = await fetch(url, {
        method: "POST",
        headers: {
          "content-type": "application/x-www-form-urlencoded",
          accept: "application/json",
          ...client.headers
        },
        body: new URLSearchParams({ ...form, ...client.form }),
        redirect: "error",
        signal
      })
      return { ok: response.ok, status: response.status, text: await readBounded(response) }
    },
    catch: () => new CredentialError({ message: `Cannot sign in to ${provider}: ${url} could not be reached.` })
  }).pipe(
    Effect.timeoutOrElse({
      duration: requestMillis,
      orElse: () => fail(`Cannot sign in to ${provider}: ${url} did not answer within ${requestMillis / 1000} seconds.`)
    })
  )
  if (!ok) {
    const said = Option.getOrNull(Schema.decodeUnknownOption(TokenError)(text))
    const why = said === null
      ? `it answered with status ${status}`
      : plain(`${said.error}${said.error_description === undefined ? "" : `, ${said.error_description}`}`)
    return yield* new CredentialError({
      message: `${provider} did not accept the sign-in: ${why}.`,
      ...(said?.error === "invalid_grant" ? { refused: true } : {})
    })
  }
  const answer = Option.getOrNull(Schema.decodeUnknownOption(TokenAnswer)(text))
  if (answer === null) return yield* fail(`Cannot sign in to ${provider}: ${url} did not answer with a token.`)
  const seconds = answer.expires_in ?? null
  return {
    access: Redacted.make(answer.access_token),
    refresh: answer.refresh_token === undefined || answer.refresh_token === null
      ? null
      : Redacted.make(answer.refresh_token),
    expiresAt: seconds === null ? null : (yield* Clock.currentTimeMillis) + Math.max(0, seconds) * 1000
  } satisfies Grant
})

/** A grant in place of one that expires. A server may keep the refresh token by not naming another (RFC 6749, 6). */
export const renew = (
  provider: string,
  server: TokenServer,
  refresh: Redacted.Redacted
): Effect.Effect<Grant, CredentialError> =>
  Effect.map(
    requestToken(provider, server, { grant_type: "refresh_token", refresh_token: Redacted.value(refresh) }),
    (grant) => grant.refresh === null ? { ...grant, refresh } : grant
  )

/** A sign-in that has begun. */
export interface Begun {
  /** Where a person goes. */
  readonly url: string
  /** Where it is, to be kept with what it gives. */
  readonly server: SignInServer
  /** Completes when the browser comes back, with its code. */
  readonly returned: Effect.Effect<string, CredentialError>
  /** Exchanges the code, by itself or as the whole address that the browser was sent to. */
  readonly finish: (code: string) => Effect.Effect<Grant, CredentialError>
}

const page = (title: string, text: string): string =>
  `<!doctype html><meta charset="utf-8"><title>${title}</title><p style="font-family:sans-serif">${text}</p>`

const equal = (left: string, right: string): boolean => {
  const [a, b] = [left, right].map((text) => createHash("sha256").update(text).digest())
  return a !== undefined && b !== undefined && timingSafeEqual(a, b)
}

/** What the browser brings back. */
type Back = { readonly code: string; readonly issuer: string | null } | { readonly problem: string }

const checkIssuer = (provider: string, server: SignInServer, issuer: string | null) =>
  issuer === null || server.issuer === undefined || issuer === server.issuer
    ? Effect.void
    : fail(
      `The sign-in to ${provider} failed: the answer came from ${plain(issuer)}, not from ${plain(server.issuer)}.`
    )

/** Listens on loopback for the browser, for the life of the scope. */
const listen = Effect.fnUntraced(function*(provider: string, state: string, port: number) {
  const result = Promise.withResolvers<Back>()
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? "/", "http://127.0.0.1")
    const answer = (status: number, title: string, text: string) =>
      response.writeHead(status, { "content-type": "text/html; charset=utf-8", connection: "close" })
        .end(page(title, text))
    if (pathname !== "/callback") return answer(404, "Not here", "There is nothing here.")
    // Whoever does not know the state did not come from this sign-in; it stays open for who did.
    if (!equal(searchParams.get("state") ?? "", state)) {
      return answer(400, "Not this sign-in", "This does not belong to the sign-in that Bezel waits for.")
    }
    const code = searchParams.get("code")
    if (code === null || code === "") {
      answer(400, "Not signed in", "The sign-in did not succeed. The terminal says more.")
      return result.resolve({ problem: plain(searchParams.get("error") ?? "no code came back") })
    }
    answer(200, "Signed in", "Signed in. This page can be closed.")
    result.resolve({ code, issuer: searchParams.get("iss") })
  })
  yield* Effect.acquireRelease(
    Effect.tryPromise({
      try: () =>
        new Promise<void>((resolve, reject) => {
          server.once("error", reject)
          server.listen(port, "127.0.0.1", () => resolve())
        }),
      catch: () =>
        new CredentialError({
          message:
            `Cannot sign in to ${provider}: port ${port} of this machine is in use, and the browser comes back to it.`
        })
    }),
    () =>
      Effect.sync(() => {
        server.close()
        server.closeAllConnections()
      })
  )
  const address = server.address()
  const bound = typeof address === "object" && address !== null ? address.port : port
  return { redirect: `http://127.0.0.1:${bound}/callback`, returned: Effect.promise(() => result.promise) }
})

/** Begins a sign-in; its scope is as long as it may take. */
export const begin = Effect.fnUntraced(function*(
  provider: string,
  options: OAuthOptions | UnknownServer
): Effect.fn.Return<Begun, CredentialError, Scope.Scope> {
  const state = randomBytes(24).toString("base64url")
  const verifier = randomBytes(48).toString("base64url")
  const { redirect, returned } = options.redirectURL === undefined
    ? yield* listen(provider, state, options.port ?? 0)
    : { redirect: options.redirectURL, returned: Effect.never }
  const server: SignInServer = "find" in options ? yield* options.find(redirect) : options
  const url = new URL(server.authorizeURL)
  const query = {
    response_type: "code",
    client_id: server.clientID,
    redirect_uri: redirect,
    ...(server.scopes === undefined ? {} : { scope: server.scopes.join(" ") }),
    ...(server.resource === undefined ? {} : { resource: server.resource }),
    state,
    code_challenge: createHash("sha256").update(verifier).digest("base64url"),
    code_challenge_method: "S256"
  }
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value)
  return {
    url: url.href,
    server,
    returned: Effect.flatMap(returned, (back) =>
      "code" in back
        ? Effect.as(checkIssuer(provider, server, back.issuer), back.code)
        : fail(`The sign-in to ${provider} failed: ${back.problem}.`)),
    finish: (given) =>
      Effect.gen(function*() {
        const written = given.trim()
        const address = URL.canParse(written) ? new URL(written).searchParams : null
        const code = address === null ? written : address.get("code") ?? ""
        if (address !== null && !equal(address.get("state") ?? "", state)) {
          return yield* fail(`This address does not belong to this sign-in to ${provider}; begin again.`)
        }
        yield* checkIssuer(provider, server, address?.get("iss") ?? null)
        if (code === "") {
          return yield* fail(`There is no code in what was given; begin the sign-in to ${provider} again.`)
        }
        return yield* requestToken(provider, server, {
          grant_type: "authorization_code",
          code,
          redirect_uri: redirect,
          code_verifier: verifier
        })
      })
  }
})
