/** Accounts: keys of providers that this user has stored, and signing in to get one. */
export * from "./contract.ts"
export { begin, type Grant } from "./oauth.ts"
export { session as accountsSession } from "./session.ts"
export { type CredentialStore, makeCredentialStore } from "./store.ts"
