/** Shell lines: what a person types behind `!`. */
export * from "./contract.ts"
export { session as shellSession } from "./session.ts"
