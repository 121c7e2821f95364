export * from "./contract.ts"
export { session as providersSession } from "./session.ts"
