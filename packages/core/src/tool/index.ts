export * from "./materialization.ts"
export * from "./tool.ts"
