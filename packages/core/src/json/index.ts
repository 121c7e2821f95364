export * from "./delta.ts"
export * from "./draft.ts"
export * from "./json.ts"
export { stored } from "./stored.ts"
