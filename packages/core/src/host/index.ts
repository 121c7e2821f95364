export * from "./context.ts"
export { workingOrder } from "./order.ts"
export * from "./plugin.ts"
