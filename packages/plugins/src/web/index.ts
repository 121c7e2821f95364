/** The web: fetching pages. */
export * from "./contract.ts"
export { session as webSession } from "./session.ts"
