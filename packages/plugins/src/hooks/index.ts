/** Hooks for people: commands that run around tool calls and at the end of a turn. */
export * from "./contract.ts"
