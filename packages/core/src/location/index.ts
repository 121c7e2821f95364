export * from "./location.ts"
export * from "./resolve.ts"
