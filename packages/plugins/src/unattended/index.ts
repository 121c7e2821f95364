/** What becomes of what sessions ask while nobody is there. */
export * from "./contract.ts"
export { session as unattendedSession } from "./session.ts"
