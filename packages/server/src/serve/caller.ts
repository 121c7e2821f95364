/** Who calls a server, as its guard has found out: by the token that was shown, and by nothing that the call itself says. */

/**
 * What a token lets its bearer do; each includes the ones before it. `read` sees, `prompt` gives sessions work and answers
 * what they ask, `admin` does everything that the person at the terminal can.
 */
export const tokenScopes = ["read", "prompt", "admin"] as const
export type TokenScope = (typeof tokenScopes)[number]

export interface Caller {
  /** The token's name, for people and logs; that of the server's own token is `owner`. */
  readonly name: string
  readonly scope: TokenScope
}

/** Whether a caller may do what needs a scope. */
export const mayDo = (caller: Caller, needed: TokenScope): boolean =>
  tokenScopes.indexOf(caller.scope) >= tokenScopes.indexOf(needed)

/** The tokens of a server. Looking one up takes the same time whether it is one or not. */
export interface Tokens {
  /** Whose token this is; `null` for one that is nobody's, or that was revoked. */
  readonly find: (token: string) => Caller | null
}
