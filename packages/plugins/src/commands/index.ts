/** Commands: prompts with places for arguments, in markdown files. */
export * from "./contract.ts"
export { expandTemplate, parseCall, wordsOf } from "./expand.ts"
export { configFor, session as commandsSession } from "./session.ts"
