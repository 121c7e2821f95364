/**
 * The built-in plugins: the ordered manifest of the coding agent, and how each host loads its facets.
 *
 * A host imports only what it runs: the facets of a kind of host are behind one import of their own, which happens when that
 * host boots. Order is meaning: providers and tools first, the gate over tools after them, what is shown last. All are required:
 * one that fails to start fails its host.
 */
import type { HostContexts, HostName, Power } from "@bezel/core/host"
import type { Facet, ManifestEntry, PluginSource } from "@bezel/core/kernel"
import * as Effect from "effect/Effect"
import type { AccountsOptions } from "./accounts/contract.ts"
import type { AgentsOptions } from "./agents/contract.ts"
import type { CommandsOptions } from "./commands/contract.ts"
import type { ConnectOptions } from "./connect/contract.ts"
import type { ContextOptions } from "./context/contract.ts"
import type { LimitsOptions } from "./limits/contract.ts"
import type { McpOptions } from "./mcp/contract.ts"
import type { PermissionOptions } from "./permissions/contract.ts"
import type { ProvidersPluginOptions } from "./providers/contract.ts"
import type { SkillsOptions } from "./skills/contract.ts"
import type { ToolsOptions } from "./tools/contract.ts"

/** Options of built-in plugins, as a manifest gives them. */
export interface BuiltinOptions {
  readonly providers?: ProvidersPluginOptions
  readonly accounts?: AccountsOptions
  readonly connect?: ConnectOptions
  readonly tools?: ToolsOptions
  readonly context?: ContextOptions
  readonly permissions?: PermissionOptions
  readonly limits?: LimitsOptions
  readonly agents?: AgentsOptions
  readonly mcp?: McpOptions
  readonly skills?: SkillsOptions
  readonly commands?: CommandsOptions
}

type Feature =
  | "providers"
  | "accounts"
  | "preferences"
  | "connect"
  | "sandbox"
  | "shell"
  | "tools"
  | "todo"
  | "web"
  | "question"
  | "subagent"
  | "notices"
  | "unattended"
  | "hooks"
  | "history"
  | "titles"
  | "context"
  | "mcp"
  | "clientTools"
  | "limits"
  | "permissions"
  | "agents"
  | "skills"
  | "commands"
  | "mentions"
  | "git"
  | "compaction"
  | "sessionDirectory"
  | "reload"
  | "versions"
  | "chat"

const order: ReadonlyArray<Feature> = [
  "providers",
  "accounts",
  "preferences",
  "connect",
  "sandbox",
  "tools",
  "todo",
  "web",
  "question",
  "context",
  "mcp",
  "clientTools",
  "limits",
  "permissions",
  "agents",
  "skills",
  "commands",
  "mentions",
  "git",
  "subagent",
  "hooks",
  "notices",
  "unattended",
  "history",
  "titles",
  "compaction",
  "sessionDirectory",
  "reload",
  "versions",
  "chat",
  // Behind the chat, so that escape is its own while a line runs.
  "shell"
]

/** Built-in plugins are granted what they need as any other is. */
const grants: { readonly [F in Feature]?: ReadonlyArray<Power> } = {
  agents: ["turns"],
  compaction: ["turns"],
  history: ["reverting"]
}

/** The manifest entries of the built-in plugins, in order. */
export const builtinEntries = (version: string, options: BuiltinOptions = {}): ReadonlyArray<ManifestEntry> =>
  order.map((feature) => entryOf(feature, version, options))

const entryOf = (feature: Feature, version: string, options: { readonly [F in Feature]?: object }): ManifestEntry => {
  const given = feature === "mcp" ? { version, ...options.mcp } : options[feature]
  const name = feature.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
  const powers = grants[feature]
  return {
    id: `bezel.${name}`,
    version,
    required: true,
    ...(given === undefined ? {} : { options: { ...given } }),
    ...(powers === undefined ? {} : { grants: powers })
  }
}

/** Entries with the loaders of their facets; a plugin without a facet for a host is `absent` there. */
const sources = <Host extends HostName>(
  version: string,
  options: BuiltinOptions,
  load: () => Promise<{ readonly [F in Feature]?: Facet<HostContexts[Host]> }>
): ReadonlyArray<PluginSource<HostContexts[Host]>> =>
  order.map((feature) => ({
    entry: entryOf(feature, version, options),
    load: Effect.promise(async () => (await load())[feature])
  }))

/** For a session host: `SessionPlugins` takes them as they are. */
export const builtinSessionPlugins = (version: string, options: BuiltinOptions = {}) =>
  sources<"session">(version, options, () => import("./session.ts"))

/** For a coordinator. */
export const builtinCoordinatorPlugins = (version: string, options: BuiltinOptions = {}) =>
  sources<"coordinator">(version, options, () => import("./coordinator.ts"))

/** For a terminal host. */
export const builtinTerminalPlugins = (version: string, options: BuiltinOptions = {}) =>
  sources<"tui">(version, options, () => import("./tui.ts"))
