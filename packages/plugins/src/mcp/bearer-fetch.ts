/**
 * `fetch` with the token of a sign-in: to the server's own origin and nowhere else, renewed once where the server refuses it.
 *
 *     token? ── no ──▶ as it is ──401──▶ the answer, and that a sign-in is wanted
 *       └ yes ▶ with it ──401──▶ another one? ── yes ──▶ with that, and whatever comes of it
 *                                   └ no ──▶ the answer, and that a sign-in is wanted
 */
import * as Redacted from "effect/Redacted"
import type { McpFailure } from "./failure.ts"

type Fetch = (url: string | URL, init?: RequestInit) => Promise<Response>

/** Why somebody has to sign in: for the first time, anew, or for rights that the token has not, as the server names them. */
export type Wanted = "first" | "again" | { readonly scopes: string }

/** The token of a server, or another one in place of one that it refused; `null` where there is none. Rejects with why not. */
export type TokenSource = (refused: Redacted.Redacted | null) => Promise<Redacted.Redacted | null>

export interface Bearer {
  readonly fetch: Fetch
  /** Whether a token has been taken. */
  readonly signedIn: () => boolean
  /** What ends a request that no sign-in, or the one that there is, is enough for. */
  readonly refusal: (status: number) => McpFailure | null
  /** A text without the tokens that were sent: a server may say them back. */
  readonly hide: (text: string) => string
}

export interface BearerOptions {
  readonly url: string
  readonly token: TokenSource
  readonly base: Fetch
  /** What is said where somebody has to sign in. */
  readonly wanted: (why: Wanted) => McpFailure
}

/** What a token would have to be for (RFC 6750, 3). */
const scopesIn = (challenge: string | null): string =>
  /\bscope="([\x21\x23-\x5b\x5d-\x7e ]{1,500})"/.exec(challenge ?? "")?.[1] ?? ""

export const makeBearer = ({ base, token, url, wanted }: BearerOptions): Bearer => {
  const { origin } = new URL(url)
  const sent = new Set<string>()
  let signedIn = false
  let hadToken = false
  let missing = ""

  const withToken = (init: RequestInit | undefined, one: Redacted.Redacted): RequestInit => {
    const headers = new Headers(init?.headers)
    sent.add(Redacted.value(one))
    headers.set("authorization", `Bearer ${Redacted.value(one)}`)
    return { ...init, headers }
  }

  return {
    signedIn: () => signedIn,
    refusal: (status) =>
      status === 401
        ? wanted(hadToken ? "again" : "first")
        : status === 403 && missing !== ""
        ? wanted({ scopes: missing })
        : null,
    hide: (text) => [...sent].reduce((hidden, one) => hidden.replaceAll(one, "<token>"), text),
    fetch: async (at, init) => {
      let problem: unknown = null
      const one = new URL(at).origin !== origin ? null : await token(null).catch((error: unknown) => {
        problem = error
        return null
      })
      if (one === null) {
        // Why there is no token matters to nobody where none is wanted.
        const open = await base(at, init)
        if (open.status === 401 && problem !== null) throw problem
        return open
      }
      hadToken = true
      const first = await base(at, withToken(init, one))
      missing = first.status === 403 ? scopesIn(first.headers.get("www-authenticate")) : ""
      if (first.status !== 401) {
        signedIn ||= first.ok
        return first
      }
      const other = await token(one)
      if (other === null || Redacted.value(other) === Redacted.value(one)) return first
      await first.body?.cancel().catch(() => {})
      const second = await base(at, withToken(init, other))
      signedIn ||= second.ok
      return second
    }
  }
}
