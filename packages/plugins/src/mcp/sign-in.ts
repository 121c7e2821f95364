/**
 * How one signs in to a server at an address: where it is asked for, and as which client, by what the server and its
 * authorization server say of themselves (RFC 9728, 8414, 7591). The sign-in itself is that of `accounts`.
 *
 * Nothing that they say is taken on trust: an authorization server is the one that it says it is, a token is for the server
 * that it is sent to, and all addresses are encrypted, or on this machine if the server is.
 */
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { CredentialError, type SignInServer, type UnknownServer } from "../accounts/contract.ts"
import type { McpAddress } from "./contract.ts"
import type * as sdkModule from "./sdk.ts"
import { oneLine } from "./text.ts"

type Sdk = typeof sdkModule

const requestMillis = 30_000
const maxBytes = 256 * 1024

/** What a sign-in is stored under: the address itself, so that no other server of the same name gets its token. */
export const credentialKey = ({ url }: McpAddress): string => {
  const { origin, pathname, search } = new URL(url)
  return `mcp ${origin}${pathname}${search}`
}

const isLocal = ({ hostname }: URL): boolean => /^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname)

class Refused extends Error {}

const refuse = (message: string): never => {
  throw new Refused(message)
}

/** An address that a stranger named. */
const checkedAddress = (server: URL, named: string | URL): URL => {
  const at = new URL(named)
  if (at.protocol === "https:" && !isLocal(at)) return at
  if (isLocal(at) && isLocal(server) && (at.protocol === "https:" || at.protocol === "http:")) return at
  return refuse(`it names an address that is not encrypted or not its own, ${at.origin}`)
}

/** For what is asked of strangers: their addresses checked, their answers bounded, in time, and no redirect followed. */
const carefulFetch = (server: URL) => async (named: string | URL, init?: RequestInit): Promise<Response> => {
  const at = checkedAddress(server, named)
  const response = await fetch(at, { ...init, redirect: "error", signal: AbortSignal.timeout(requestMillis) })
  const decoder = new TextDecoder()
  let text = ""
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk, { stream: true })
    if (text.length > maxBytes) refuse(`${at.origin} answers with too much`)
  }
  const { headers, status, statusText } = response
  const hasBody = status >= 200 && ![204, 205, 304].includes(status)
  return new Response(hasBody ? text : null, {
    headers: { "content-type": headers.get("content-type") ?? "" },
    status,
    statusText
  })
}

const sameIssuer = (left: string, right: string): boolean => left.replace(/\/$/, "") === right.replace(/\/$/, "")

/** What the server says where nobody has signed in. */
const challengeOf = async (sdk: Sdk, server: URL, headers: McpAddress["headers"] = {}) => {
  const own = Object.entries(headers).map(([name, value]): [string, string] => [name, Redacted.value(value)])
  const response = await fetch(server, {
    method: "POST",
    headers: {
      ...Object.fromEntries(own),
      "content-type": "application/json",
      accept: "application/json, text/event-stream"
    },
    body: JSON.stringify({
      jsonrpc: "2.0",
      id: 0,
      method: "initialize",
      params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "bezel", version: "0" } }
    }),
    redirect: "manual",
    signal: AbortSignal.timeout(requestMillis)
  })
  await response.body?.cancel()
  return sdk.extractWWWAuthenticateParams(response)
}

const find = async (sdk: Sdk, setting: McpAddress, redirectURL: string): Promise<SignInServer> => {
  const server = new URL(setting.url)
  const fetchFn = carefulFetch(server)
  const challenge = await challengeOf(sdk, server, setting.headers)
  const found = await sdk.discoverOAuthServerInfo(server, {
    fetchFn,
    ...(challenge.resourceMetadataUrl === undefined ? {} : { resourceMetadataUrl: challenge.resourceMetadataUrl })
  })
  const { authorizationServerMetadata: metadata, authorizationServerUrl: issuer, resourceMetadata } = found
  if (metadata === undefined) return refuse("it does not say how one signs in")
  if (!sameIssuer(metadata.issuer, issuer)) {
    return refuse(`${oneLine(issuer, 200)} says that it is another server, ${oneLine(metadata.issuer, 200)}`)
  }
  const resource = resourceMetadata?.resource
  const isOurs = resource === undefined || sdk.checkResourceAllowed({
    requestedResource: sdk.resourceUrlFromServerUrl(server),
    configuredResource: resource
  })
  if (!isOurs) return refuse(`it asks for a token for another server, ${oneLine(resource, 200)}`)
  if (metadata.code_challenge_methods_supported?.includes("S256") === false) {
    return refuse(`${oneLine(issuer, 200)} does not protect a sign-in by PKCE`)
  }
  const authorizeURL = checkedAddress(server, metadata.authorization_endpoint).href
  const tokenURL = checkedAddress(server, metadata.token_endpoint).href
  const own = setting.oauth ?? {}
  const asked = own.scopes ?? challenge.scope?.split(/\s+/).filter((each) => each !== "") ??
    resourceMetadata?.scopes_supported ?? []
  // Without it some servers give nothing to renew a token with.
  const offline = asked.length > 0 && own.scopes === undefined && !asked.includes("offline_access") &&
    metadata.scopes_supported?.includes("offline_access") === true
  const scopes = offline ? [...asked, "offline_access"] : asked
  const client = await clientFor(sdk, { fetchFn, issuer, metadata, own, redirectURL, scopes })
  return {
    authorizeURL,
    tokenURL,
    ...client,
    ...(scopes.length === 0 ? {} : { scopes }),
    ...(resource === undefined ? {} : { resource }),
    issuer: metadata.issuer
  }
}

const clientFor = async (
  sdk: Sdk,
  { fetchFn, issuer, metadata, own, redirectURL, scopes }: {
    readonly fetchFn: ReturnType<typeof carefulFetch>
    readonly issuer: string
    readonly metadata: NonNullable<Awaited<ReturnType<Sdk["discoverAuthorizationServerMetadata"]>>>
    readonly own: NonNullable<McpAddress["oauth"]>
    readonly redirectURL: string
    readonly scopes: ReadonlyArray<string>
  }
): Promise<Pick<SignInServer, "clientID" | "clientSecret" | "clientAuth">> => {
  const methods = metadata.token_endpoint_auth_methods_supported ?? []
  const made = (id: string, secret: Redacted.Redacted | undefined, information: { readonly client_id: string }) => {
    if (secret === undefined) return { clientID: id }
    const method = sdk.selectClientAuthMethod(information, methods)
    if (method === "none") return { clientID: id }
    return {
      clientID: id,
      clientSecret: secret,
      clientAuth: method === "client_secret_basic" ? "basic" as const : "post" as const
    }
  }
  if (own.clientID !== undefined) {
    return made(own.clientID, own.clientSecret, {
      client_id: own.clientID,
      ...(own.clientSecret === undefined ? {} : { client_secret: "set" })
    })
  }
  if (metadata.registration_endpoint === undefined) {
    return refuse(
      `${
        oneLine(issuer, 200)
      } makes no clients by itself; register one there and put its id into oauth.clientID of the setting`
    )
  }
  const client = await sdk.registerClient(issuer, {
    metadata,
    clientMetadata: {
      client_name: "Bezel",
      redirect_uris: [redirectURL],
      grant_types: ["authorization_code", "refresh_token"],
      response_types: ["code"],
      token_endpoint_auth_method: "none",
      ...(scopes.length === 0 ? {} : { scope: scopes.join(" ") })
    },
    fetchFn
  })
  const secret = client.client_secret === undefined ? undefined : Redacted.make(client.client_secret)
  return made(client.client_id, secret, client)
}

/** Where one signs in to a server of this name, for `accounts`. */
export const signInServer = (name: string, setting: McpAddress): UnknownServer => ({
  ...(setting.oauth?.port === undefined ? {} : { port: setting.oauth.port }),
  ...(setting.oauth?.redirectURL === undefined ? {} : { redirectURL: setting.oauth.redirectURL }),
  find: (redirectURL) =>
    Effect.tryPromise({
      try: async () => find(await import("./sdk.ts"), setting, redirectURL),
      catch: (error) => {
        const text = error instanceof Error ? error.message : String(error)
        const why = error instanceof Refused ? text : oneLine(text === "" ? "it cannot be reached" : text, 300)
        return new CredentialError({ message: `Cannot sign in to the MCP server ${oneLine(name, 100)}: ${why}.` })
      }
    })
})
