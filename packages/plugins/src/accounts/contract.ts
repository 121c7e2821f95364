/**
 * Accounts: which providers have a key, and where it is from. Keys themselves cross no connection and enter no state.
 */
import type { ProviderKey } from "@bezel/core/model"
import { Interaction, LocalService, RemoteService } from "@bezel/core/service"
import type * as Effect from "effect/Effect"
import type * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import type { OAuthOptions } from "../providers/contract.ts"

/** What goes wrong with stored keys: one sentence that says where and what to do. It never holds a key. */
export class CredentialError extends Schema.TaggedError<CredentialError>()("CredentialError", {
  message: Schema.String,
  /** What was stored is not taken any more; only a new sign-in helps. */
  refused: Schema.optionalKey(Schema.Boolean)
}) {}

/** What is known of a stored key without the key. */
export interface CredentialInfo {
  readonly provider: string
  readonly kind: "key" | "token"
  /** Milliseconds since the epoch. */
  readonly savedAt: number
  /** When a token has to be renewed, in milliseconds since the epoch; `null`: never. */
  readonly expiresAt: number | null
}

/** Where tokens come from, and as whom one asks for them. */
export interface TokenServer {
  readonly tokenURL: string
  readonly clientID: string
  /** Of a client that was given one; how it is sent says `clientAuth` (RFC 6749, 2.3.1). */
  readonly clientSecret?: Redacted.Redacted
  readonly clientAuth?: "basic" | "post"
  /** What the token is for (RFC 8707). */
  readonly resource?: string
}

/** Where one signs in. */
export interface SignInServer extends TokenServer {
  readonly authorizeURL: string
  readonly scopes?: ReadonlyArray<string>
  /** Who sends the browser back says that it is this one, if it says anything (RFC 9207). */
  readonly issuer?: string
}

/** A server that is asked for a client first, once it is known where the browser comes back to. */
export interface UnknownServer extends Pick<OAuthOptions, "port" | "redirectURL"> {
  readonly find: (redirectURL: string) => Effect.Effect<SignInServer, CredentialError>
}

/** A sign-in to something that is no provider of models. */
export interface SignInRequest {
  /** What the credential is stored under. */
  readonly key: string
  /** What people call it. */
  readonly name: string
  readonly server: UnknownServer
  /** Whose people are asked. */
  readonly sessionID: string
}

/** The stored keys of this user. They never leave the process. */
export interface CredentialsShape {
  /** Asks people to sign in, and stores what they get; false: they gave up. */
  readonly signIn: (request: SignInRequest) => Effect.Effect<boolean, CredentialError>
  readonly list: Effect.Effect<ReadonlyArray<CredentialInfo>, CredentialError>
  /**
   * The key as it is good now: a token that is about to expire has been renewed, and so has one that was `refused`, as far as
   * it can be. `null`: none is stored.
   */
  readonly get: (
    provider: string,
    options?: { readonly refused?: Redacted.Redacted; readonly name?: string }
  ) => Effect.Effect<ProviderKey | null, CredentialError>
  /** Stores it, in place of one that there was; providers have it from then on. */
  readonly set: (provider: string, key: Redacted.Redacted) => Effect.Effect<void, CredentialError>
  /** Forgets it; false: there was none. */
  readonly remove: (provider: string) => Effect.Effect<boolean, CredentialError>
}

export const Credentials: LocalService<CredentialsShape> = LocalService.make("bezel.credentials")

/** One provider, as its account is. */
export const Account = Schema.Struct({
  provider: Schema.String,
  name: Schema.String,
  /** Whether it has a key, wherever that is from. */
  hasKey: Schema.Boolean,
  /** Whether the key is in our file, so that it can be removed. */
  stored: Schema.Boolean,
  /** Whether its models can be used. */
  ready: Schema.Boolean,
  /** Whether one can sign in to it. */
  canSignIn: Schema.Boolean
})
export type Account = typeof Account.Type

/** The accounts for people at a client: ids and booleans. */
export class Accounts extends RemoteService.make("bezel.accounts")({
  methods: {
    list: { success: Schema.Array(Account) },
    /** Looks at the stored keys again, after another process has changed them. */
    refresh: {},
    remove: { payload: Schema.Struct({ provider: Schema.String }), error: CredentialError },
    /** Asks the people at the session to sign in, and stores what they get; it ends when they have, or gave up. */
    signIn: {
      payload: Schema.Struct({ provider: Schema.String, sessionID: Schema.String }),
      success: Schema.Struct({ signedIn: Schema.Boolean }),
      error: CredentialError
    }
  }
}) {}

/** A person opens the address, signs in there, and brings the code back, if the browser did not bring it by itself. */
export const SignIn = Interaction.make("bezel.sign-in")({
  request: Schema.Struct({ provider: Schema.String, url: Schema.String }),
  response: Schema.Struct({ code: Schema.NonEmptyString }),
  unattended: "deny",
  sensitive: true
})

/** What a host says to this plugin. */
export const AccountsOptions = Schema.Struct({
  /** Where `credentials.json` is; default: the data folder of this user. */
  directory: Schema.optionalKey(Schema.String)
})
export type AccountsOptions = typeof AccountsOptions.Type
