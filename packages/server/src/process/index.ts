/** Session hosts in processes of their own: for servers, and for the program that such a process runs. */
export type { HostOrder } from "./order.ts"
export { processPlacement } from "./placement.ts"
export type { ProcessPlacementOptions } from "./placement.ts"
export { openLifeline, serveSessionHost } from "./serve-host.ts"
export type { Lifeline } from "./serve-host.ts"
