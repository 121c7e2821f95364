/**
 * The built-in plugins: the ordered manifest of the coding agent, and how each host loads its facets.
 *
 * A host imports only what it runs: the facets of a kind of host are behind imports of their own, which happen when that host
 * boots. Order is meaning: providers and tools first, the gate over tools after them, what is shown last. All are required:
 * one that fails to start fails its host.
 */
import type { HostContexts, HostName } from "@bezel/core/host"
import type { Facet, ManifestEntry, PluginSource } from "@bezel/core/kernel"
import * as Effect from "effect/Effect"
import type { ContextOptions } from "./context/contract.ts"
import type { LimitsOptions } from "./limits/contract.ts"
import type { PermissionOptions } from "./permissions/contract.ts"
import type { ToolsOptions } from "./tools/contract.ts"

/** Options of built-in plugins, as a manifest gives them. */
export interface BuiltinOptions {
  readonly tools?: ToolsOptions
  readonly context?: ContextOptions
  readonly permissions?: PermissionOptions
  readonly limits?: LimitsOptions
}

type Feature = "providers" | "tools" | "context" | "limits" | "permissions" | "chat"

const order: ReadonlyArray<Feature> = ["providers", "tools", "context", "limits", "permissions", "chat"]

const sessionFacets = {
  providers: async () => (await import("./providers/session.ts")).session,
  tools: async () => (await import("./tools/session.ts")).session,
  context: async () => (await import("./context/session.ts")).session,
  limits: async () => (await import("./limits/session.ts")).session,
  permissions: async () => (await import("./permissions/session.ts")).session
}

const terminalFacets = {
  tools: async () => (await import("./tools/tui.ts")).tui,
  permissions: async () => (await import("./permissions/tui.ts")).tui,
  chat: async () => (await import("./chat/tui.ts")).tui
}

/** The manifest entries of the built-in plugins, in order. */
export const builtinEntries = (version: string, options: BuiltinOptions = {}): ReadonlyArray<ManifestEntry> =>
  order.map((feature) => entryOf(feature, version, options))

const entryOf = (feature: Feature, version: string, options: { readonly [F in Feature]?: object }): ManifestEntry => {
  const given = options[feature]
  return { id: `bezel.${feature}`, version, required: true, ...(given === undefined ? {} : { options: { ...given } }) }
}

/** Entries with the loaders of their facets; a plugin without a facet for a host is `absent` there. */
const sources = <Host extends HostName>(
  version: string,
  options: BuiltinOptions,
  facets: { readonly [F in Feature]?: () => Promise<Facet<HostContexts[Host]>> }
): ReadonlyArray<PluginSource<HostContexts[Host]>> =>
  order.map((feature) => ({
    entry: entryOf(feature, version, options),
    load: Effect.promise(() => facets[feature]?.() ?? Promise.resolve(undefined))
  }))

/** For a session host: `SessionPlugins` takes them as they are. */
export const builtinSessionPlugins = (version: string, options: BuiltinOptions = {}) =>
  sources<"session">(version, options, sessionFacets)

/** For a terminal host. */
export const builtinTerminalPlugins = (version: string, options: BuiltinOptions = {}) =>
  sources<"tui">(version, options, terminalFacets)
