export type * from "./clients.ts"
export * from "./context.ts"
export { ConversationViewSchema, ViewEventSchema } from "./conversation-view.ts"
export { Conversation, conversationKey } from "./conversation.ts"
export type * from "./coordinator-context.ts"
export * from "./coordinator-host.ts"
export * from "./coordinator-identity.ts"
export type * from "./definitions.ts"
export { fleetRecords } from "./fleet-records.ts"
export * from "./location-map.ts"
export type * from "./log.ts"
export { workingOrder } from "./order.ts"
export * from "./plugin.ts"
export { Plugins } from "./plugins.ts"
export { type Power, powers } from "./powers.ts"
export * from "./presentation.ts"
export { Registries } from "./registries.ts"
export {
  endpointLayer,
  endpointOptions,
  locationLayer,
  PluginKernel,
  SessionHost,
  SessionPlugins
} from "./session-host.ts"
export type { PluginKernelShape, SessionHostShape } from "./session-host.ts"
export { Upstream, viaUpstream } from "./upstream.ts"
export type { UpstreamShape } from "./upstream.ts"
