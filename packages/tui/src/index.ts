/**
 * `@bezel/tui`: the terminal host, its contexts and the blocks that facets show.
 *
 * Importing this loads no terminal library; `runTerminal` loads it when it runs.
 */
export * from "./block.ts"
export { outputRows, outputTail } from "./card.ts"
export type * from "./context.ts"
export type * from "./contributions.ts"
export type { TerminalEnd } from "./host/facilities.ts"
export type { TerminalItem } from "./host/registry.ts"
export { describeImage } from "./image.ts"
export { runTerminal, type RunTerminalOptions } from "./run.ts"
export { plainOutput, sanitize, sanitizeLine } from "./sanitize.ts"
