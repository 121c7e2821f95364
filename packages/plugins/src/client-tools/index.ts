/** Tools of clients: what programs outside of the host offer to a session's model, for as long as they are connected. */
export * from "./contract.ts"
export { session as clientToolsSession } from "./session.ts"
