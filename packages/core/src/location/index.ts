export * from "./location.ts"
