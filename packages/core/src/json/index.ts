export * from "./json.ts"
export * from "./delta.ts"
export * from "./draft.ts"
