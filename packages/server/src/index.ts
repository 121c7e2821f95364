export { type ConnectOptions, connectTo } from "./connect.ts"
export * from "./host-processes.ts"
export * from "./inline.ts"
export * from "./placement.ts"
