/**
 * The runtime of Bezel in one import, for host builders and plugin authors. Each part has a subpath of its own
 * (`@bezel/core/host`, `@bezel/core/tool`, …), which loads less.
 */
export * as contribution from "./contribution/index.ts"
export { Conversation, conversationKey, LocationMap, makePresentation, Plugin, SessionPlugins } from "./host/index.ts"
export type { HostContexts, PresentationContext, SessionContext } from "./host/index.ts"
export { decodeManifest, Kernel } from "./kernel/index.ts"
export { Location, resolveLocation } from "./location/index.ts"
export { Connection, Endpoint, loopback } from "./rpc/index.ts"
export { Interaction, LocalService, RemoteService, ServiceError } from "./service/index.ts"
export { SessionRuntime, SessionStore } from "./session/index.ts"
export { AppPaths, Settings, SettingsKey } from "./settings/index.ts"
export { SessionStorage } from "./storage/index.ts"
export { tool, ToolFailure } from "./tool/index.ts"
