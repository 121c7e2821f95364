/** The terminal facets of all built-in plugins: what a terminal host loads, in one step. */
export { tui as chat } from "./chat/tui.ts"
export { tui as permissions } from "./permissions/tui.ts"
export { tui as tools } from "./tools/tui.ts"
