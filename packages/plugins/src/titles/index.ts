/** Titles: what sessions are called. */
export * from "./contract.ts"
export { session as titlesSession } from "./session.ts"
