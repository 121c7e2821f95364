/** The terminal facets of all built-in plugins: what a terminal host loads, in one step. */
export { tui as agents } from "./agents/tui.ts"
export { tui as chat } from "./chat/tui.ts"
export { tui as compaction } from "./compaction/tui.ts"
export { tui as permissions } from "./permissions/tui.ts"
export { tui as question } from "./question/tui.ts"
export { tui as sessionDirectory } from "./session-directory/tui.ts"
export { tui as subagent } from "./subagent/tui.ts"
export { tui as tools } from "./tools/tui.ts"
