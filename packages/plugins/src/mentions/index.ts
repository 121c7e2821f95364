/** Mentions: files that a prompt names with `@`. */
export { attachMentions } from "./attach.ts"
export * from "./contract.ts"
export { mentionsIn } from "./parse.ts"
export { session as mentionsSession } from "./session.ts"
