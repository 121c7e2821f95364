/**
 * One-time codes, by which a page of this server in a person's browser gets a token without anybody typing one.
 *
 *     offered ── redeemed in time ──▶ a token of the code's scope, for the life of this server
 *        └────── time is up, or redeemed before ──▶ void
 *
 * Codes and their tokens are in memory alone, as digests, and are compared in constant time; nothing here is logged.
 */
import * as Redacted from "effect/Redacted"
import { createHash, randomBytes, timingSafeEqual } from "node:crypto"
import type { Caller, Tokens, TokenScope } from "./caller.ts"

/** How long a code can be redeemed. */
export const codeMillis = 600_000

export interface BrowserCodes extends Tokens {
  readonly offer: (scope: TokenScope) => Redacted.Redacted
  /** `null` for one that is none, is too old, or was redeemed before. */
  readonly redeem: (code: string) => { readonly token: string; readonly scope: TokenScope } | null
}

interface Code {
  readonly digest: Buffer
  readonly scope: TokenScope
  readonly until: number
}

const digestOf = (text: string): Buffer => createHash("sha256").update(text).digest()
const random = (): string => randomBytes(32).toString("base64url")

export const makeBrowserCodes = (now: () => number = Date.now): BrowserCodes => {
  const codes = new Set<Code>()
  const tokens: Array<{ readonly digest: Buffer; readonly caller: Caller }> = []
  return {
    offer: (scope) => {
      const code = random()
      codes.add({ digest: digestOf(code), scope, until: now() + codeMillis })
      return Redacted.make(code)
    },
    redeem: (text) => {
      const digest = digestOf(text)
      let found: Code | null = null
      for (const code of codes) {
        if (code.until <= now()) codes.delete(code)
        else if (timingSafeEqual(code.digest, digest)) found = code
      }
      if (found === null) return null
      codes.delete(found)
      const token = `bzl_${random()}`
      tokens.push({ digest: digestOf(token), caller: { name: "browser", scope: found.scope } })
      return { token, scope: found.scope }
    },
    find: (text) => {
      const digest = digestOf(text)
      let found: Caller | null = null
      for (const token of tokens) if (timingSafeEqual(token.digest, digest)) found = token.caller
      return found
    }
  }
}
