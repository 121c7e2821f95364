export * from "./keyed.ts"
export * from "./location.ts"
export * from "./resolve.ts"
