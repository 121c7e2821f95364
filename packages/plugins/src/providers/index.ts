/** Providers: where models come from, by settings and environment, and one that needs neither. */
export * from "./contract.ts"
export { guidance } from "./guidance.ts"
export { session as providersSession } from "./session.ts"
