/** The todo list: what the model plans to do, and how far it is. */
export * from "./contract.ts"
export { session as todoSession } from "./session.ts"
