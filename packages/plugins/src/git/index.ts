/** The git repository of a location: its status, as state and events. */
export * from "./contract.ts"
export { session as gitSession } from "./session.ts"
