/**
 * What may be imported on every side of a connection: contexts as types, `Plugin.define`, and the tokens of services that
 * hosts provide themselves. Nothing of a running host is reachable from here.
 */
export { mismatchTexts } from "../rpc/index.ts"
export type { Mismatch } from "../rpc/index.ts"
export * from "./context.ts"
export { ConversationViewSchema, ViewEventSchema } from "./conversation-view.ts"
export { Conversation, conversationKey } from "./conversation.ts"
export * from "./plugin.ts"
export { Plugins } from "./plugins.ts"
export { Registries } from "./registries.ts"
export { standingEntries } from "./standing.ts"
