export * from "./block.ts"
export type * from "./context.ts"
export type * from "./contributions.ts"
