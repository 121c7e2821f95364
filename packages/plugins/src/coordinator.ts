/** The coordinator facets of all built-in plugins: what a coordinator loads, in one step. */
export { coordinator as sessionDirectory } from "./session-directory/coordinator.ts"
