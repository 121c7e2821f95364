/** Preferences: the user's settings file, and what of it people change at a client. */
export * from "./contract.ts"
export { session as preferencesSession } from "./session.ts"
export { makeUserSettings } from "./user-settings.ts"
