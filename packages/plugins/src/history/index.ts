/** History: what a session changed in files, and taking turns back. */
export * from "./contract.ts"
export { session as historySession } from "./session.ts"
