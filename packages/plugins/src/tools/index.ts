export * from "./contract.ts"
export { session as toolsSession } from "./session.ts"
