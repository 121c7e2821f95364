export * from "./json.ts"
export * from "./delta.ts"
