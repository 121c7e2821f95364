/**
 * A plugin as its author writes it: one facet for each kind of host that it takes part in.
 *
 * This is the bundle form, for hosts in one process and for files with a default export. Hosts of other packages add their
 * facet's name by augmenting `HostContexts`.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Facet, ManifestEntry, PluginSource } from "../kernel/index.ts"
import type { HostContexts } from "./context.ts"

export type HostName = keyof HostContexts

/** What a facet is, by host. */
export type Facets = {
  readonly [Host in HostName]?: (context: HostContexts[Host]) => Effect.Effect<void, unknown, Scope.Scope>
}

export interface Plugin extends Facets {
  readonly id: string
  readonly version?: string
}

export const Plugin = {
  /** `Plugin.define({ id: "acme.review", session: Effect.fn("review/session")(function*(ctx) { … }) })` */
  define: (plugin: Plugin): Plugin => plugin,

  /** The manifest entries and loaders of bundled plugins for one host, in the order given. */
  sources: <Host extends HostName>(
    host: Host,
    plugins: ReadonlyArray<Plugin>,
    entries?: { readonly [id: string]: Partial<Omit<ManifestEntry, "id">> }
  ): ReadonlyArray<PluginSource<HostContexts[Host]>> =>
    plugins.map((plugin) => {
      const facets: Facets = plugin
      const facet: Facet<HostContexts[Host]> | undefined = facets[host]
      return {
        entry: {
          id: plugin.id,
          ...(plugin.version === undefined ? {} : { version: plugin.version }),
          ...entries?.[plugin.id]
        },
        load: Effect.succeed(facet)
      }
    })
}
