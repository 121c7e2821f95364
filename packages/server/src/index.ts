export { type ConnectOptions, connectTo } from "./connect.ts"
export { HostProcesses, type HostProcessesShape } from "./host-processes.ts"
export * from "./inline.ts"
export * from "./placement.ts"
