export * from "./block.ts"
export { outputRows, outputTail } from "./card.ts"
export type * from "./context.ts"
export type * from "./contributions.ts"
