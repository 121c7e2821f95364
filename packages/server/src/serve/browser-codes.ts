/**
 * One-time codes, by which a page of this server in a person's browser gets a token without anybody typing one.
 *
 *     offered ── redeemed in time ──▶ worth a token of its scope, once
 *        └────── time is up, or redeemed before ──▶ void
 *
 * Codes are in memory alone, as digests, and are compared in constant time; nothing here is logged.
 */
import * as Redacted from "effect/Redacted"
import { createHash, randomBytes, timingSafeEqual } from "node:crypto"
import type { TokenScope } from "./caller.ts"

/** How long a code can be redeemed. */
export const codeMillis = 600_000

export interface BrowserCodes {
  readonly offer: (scope: TokenScope) => Redacted.Redacted
  /** What a token for it may do; `null` for a code that is none, is too old, or was redeemed before. */
  readonly redeem: (code: string) => TokenScope | null
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
      return found.scope
    }
  }
}
