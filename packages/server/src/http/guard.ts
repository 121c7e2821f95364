/**
 * Who may call at all: the same for every request and every WebSocket.
 *
 * The `Host` header must name this server, so that a page whose name was pointed at this machine reaches nothing; a foreign
 * `Origin` is refused before anything else is looked at; and a token is shown always. Failed attempts are counted by address,
 * told as `overloaded` when there are many, and logged without what was shown. A valid token is never held up by others'
 * attempts.
 */
import type { IncomingMessage } from "node:http"
import { networkInterfaces } from "node:os"
import { isEveryAddress, isLoopback } from "../serve/address.ts"
import type { Caller, Tokens } from "../serve/caller.ts"
import { ApiFailure, failure } from "./failure.ts"

export interface GuardOptions {
  readonly tokens: Tokens
  /** The address that the server listens on. */
  readonly host: string
  /** Further names that `Host` may have. */
  readonly allowedHosts: ReadonlyArray<string>
  /** Origins that may call from a browser, exactly. */
  readonly allowedOrigins: ReadonlyArray<string>
  /** Failed attempts of one address in a minute before they are only counted. */
  readonly failuresPerMinute: number
  readonly now?: () => number
  readonly refusedToken?: () => void
  /** Told of each failed attempt that is worth a line. */
  readonly log: (message: string) => void
}

export interface Guard {
  /** A refusal that holds for everybody, or `null`; with the headers that the answer must have. */
  readonly admit: (request: IncomingMessage) => { readonly refusal: ApiFailure | null; readonly headers: CorsHeaders }
  readonly authenticate: (request: IncomingMessage, token: string | null) => Caller | ApiFailure
  /** Counts an attempt that failed for another reason, and says what who tried is told. */
  readonly refuse: (request: IncomingMessage, why: string) => ApiFailure
}

export interface CorsHeaders {
  readonly [name: string]: string
}

const loopbackNames = ["localhost", "127.0.0.1", "[::1]"]
const minute = 60_000
/** Addresses that are remembered at once. */
const remembered = 1_000

/** The name in a `Host` header, without its port, as it is compared. */
export const hostName = (header: string): string | null => {
  const match = /^(\[[0-9a-f:.]+\]|[^:\s/@[\]]+)(?::\d{1,5})?$/i.exec(header)
  return match?.[1]?.toLowerCase().replace(/\.$/, "") ?? null
}

const bracketed = (address: string): string =>
  address.includes(":") && !address.startsWith("[") ? `[${address}]` : address

/** The token of a request: a bearer token, or what a WebSocket that can set no headers offers as a protocol. */
export const tokenOf = (request: IncomingMessage): string | null => {
  const bearer = /^bearer +([^\s]+) *$/i.exec(request.headers.authorization ?? "")?.[1]
  if (bearer !== undefined) return bearer
  const protocols = request.headers["sec-websocket-protocol"]
  if (typeof protocols !== "string") return null
  return protocols.split(",").map((name) => name.trim()).find((name) => name.startsWith(tokenProtocol))
    ?.slice(tokenProtocol.length) ?? null
}

const tokenProtocol = "bezel.token."

const none = {}

const tokenAdvice = 'Send "Authorization: Bearer <token>"; `bezel auth token` makes tokens.'
const codeAdvice = "It can be used once, for ten minutes; `bezel serve --browser` prints one."

export const makeGuard = (options: GuardOptions): Guard => {
  const now = options.now ?? Date.now
  const failures = new Map<string, { since: number; count: number }>()
  const named = new Set([...options.allowedHosts.map((name) => name.toLowerCase()), bracketed(options.host)])
  if (isLoopback(options.host)) { for (const name of loopbackNames) named.add(name) }
  const origins = new Set(options.allowedOrigins)
  const everywhere = isEveryAddress(options.host)

  const isNamed = (name: string): boolean => {
    if (named.has(name)) return true
    if (!everywhere) return false
    // Addresses come and go with networks, so they are looked at anew.
    for (const addresses of Object.values(networkInterfaces())) {
      for (const { address } of addresses ?? []) if (bracketed(address.toLowerCase()) === name) return true
    }
    return loopbackNames.includes(name)
  }

  const failed = (request: IncomingMessage, why: string, advice: string): ApiFailure => {
    options.refusedToken?.()
    const address = request.socket.remoteAddress ?? "an unknown address"
    const known = failures.get(address)
    const entry = known === undefined || now() - known.since >= minute ? { since: now(), count: 0 } : known
    entry.count++
    failures.delete(address)
    failures.set(address, entry)
    for (const [oldest] of failures) {
      if (failures.size <= remembered) break
      failures.delete(oldest)
    }
    if (entry.count <= options.failuresPerMinute) {
      options.log(`Refused a request from ${address}: ${why}`)
      return new ApiFailure({
        code: "unauthorized",
        message: `${why} ${advice}`,
        headers: { "www-authenticate": "Bearer" }
      })
    }
    if (entry.count === options.failuresPerMinute + 1) {
      options.log(`Too many requests from ${address} have no valid token; the rest of this minute is not logged.`)
    }
    const wait = Math.max(1, Math.ceil((entry.since + minute - now()) / 1_000))
    return new ApiFailure({
      code: "overloaded",
      message: `Too many requests without a valid token; try again in ${wait} s.`,
      headers: { "retry-after": `${wait}` }
    })
  }

  return {
    admit: (request) => {
      const host = hostName(request.headers.host ?? "")
      if (host === null || !isNamed(host)) {
        const refusal = failure(
          "forbidden",
          "The Host header does not name this server; --allow-host admits further names."
        )
        return { refusal, headers: none }
      }
      const { origin } = request.headers
      if (origin === undefined) return { refusal: null, headers: none }
      // The server's own pages are of the origin that `Host` names, which is known to be this server's.
      const isOwn = /^https?:\/\/(.*)$/.exec(origin)?.[1] === request.headers.host
      if (isOwn) return { refusal: null, headers: none }
      if (!origins.has(origin)) {
        const refusal = failure("forbidden", "Pages of this origin may not call; --allow-origin admits one.")
        return { refusal, headers: none }
      }
      return { refusal: null, headers: { "access-control-allow-origin": origin, vary: "Origin" } }
    },
    authenticate: (request, token) => {
      if (token === null) return failed(request, "The request shows no token.", tokenAdvice)
      return options.tokens.find(token) ?? failed(request, "The token of the request is not valid.", tokenAdvice)
    },
    refuse: (request, why) => failed(request, why, codeAdvice)
  }
}

/** What a browser asks before it lets a page of an allowed origin call. */
export const preflightHeaders: CorsHeaders = {
  "access-control-allow-methods": "GET, POST, PATCH, DELETE",
  "access-control-allow-headers": "authorization, content-type, last-event-id",
  "access-control-max-age": "600"
}
