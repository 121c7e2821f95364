/** The session facets of all built-in plugins: what a session host loads, in one step. */
export { session as compaction } from "./compaction/session.ts"
export { session as context } from "./context/session.ts"
export { session as limits } from "./limits/session.ts"
export { session as permissions } from "./permissions/session.ts"
export { session as providers } from "./providers/session.ts"
export { session as question } from "./question/session.ts"
export { session as subagent } from "./subagent/session.ts"
export { session as tools } from "./tools/session.ts"
