/** Limits: how long a turn and how dear a session may get. */
export * from "./contract.ts"
export { session as limitsSession } from "./session.ts"
