/**
 * The registries of the terminal: what is visible now of all that facets have registered.
 *
 * Facets register items through the kernel, which owns them by scope, stages them until bind and gives the whole visible
 * set, in manifest order, at each change. A registry is nothing but a view of the newest set, so there is no state of its
 * own that a removal could forget.
 */
import type { Registered } from "@bezel/core/kernel"
import type * as Scope from "effect/Scope"
import type {
  Command,
  Contributed,
  EntryRenderer,
  Keybinding,
  Screen,
  SlotContent,
  Theme,
  ToolRenderer
} from "../contributions.ts"

interface Values {
  readonly command: Command
  readonly keybinding: Keybinding
  readonly toolRenderer: ToolRenderer
  readonly entryRenderer: EntryRenderer
  readonly slot: SlotContent
  readonly screen: Screen
  readonly theme: Theme
}

export type RegistryName = keyof Values

/** One registration, with the scope of the facet that made it: what it does runs there. */
export type TerminalItem = {
  readonly [N in RegistryName]: {
    readonly terminal: N
    readonly key: string
    readonly value: Values[N]
    readonly scope: Scope.Scope
  }
}[RegistryName]

export interface Visible<A> {
  readonly key: string
  readonly value: A
  readonly plugin: string
  readonly scope: Scope.Scope
}

export interface Registries {
  /** Replaces what is visible; `items` in manifest order, then in order of registration. */
  readonly apply: (items: ReadonlyArray<Registered<TerminalItem>>) => void
  /** The one in use: the last that was registered under the key. */
  readonly find: <N extends RegistryName>(name: N, key: string) => Visible<Values[N]> | undefined
  /** Every one, also those hidden by a later one of the same key. */
  readonly all: <N extends RegistryName>(name: N) => ReadonlyArray<Visible<Values[N]>>
  /** Those in use, in order, each with the plugins whose contribution it hides. */
  readonly list: <N extends RegistryName>(name: N) => ReadonlyArray<Contributed<Values[N]>>
}

type Table = { [N in RegistryName]: Array<Visible<Values[N]>> }

const emptyTable = (): Table => ({
  command: [],
  keybinding: [],
  toolRenderer: [],
  entryRenderer: [],
  slot: [],
  screen: [],
  theme: []
})

const place = <N extends RegistryName>(
  table: Table,
  item: Extract<TerminalItem, { readonly terminal: N }>,
  plugin: string
): void => {
  const rows: Array<Visible<Values[N]>> = table[item.terminal as N]
  rows.push({ key: item.key, value: item.value as Values[N], plugin, scope: item.scope })
}

/** `changed` is called after each change of what is visible. */
export const makeRegistries = (changed: () => void): Registries => {
  let table = emptyTable()
  return {
    apply: (items) => {
      const next = emptyTable()
      for (const { item, plugin } of items) place(next, item, plugin)
      table = next
      changed()
    },
    find: (name, key) => table[name].findLast((candidate) => candidate.key === key),
    all: (name) => table[name],
    list: (name) => {
      const rows = table[name]
      return rows.flatMap((candidate, index) =>
        rows.findLastIndex((other) => other.key === candidate.key) !== index ? [] : [{
          key: candidate.key,
          value: candidate.value,
          plugin: candidate.plugin,
          hides: rows.filter((other, at) => other.key === candidate.key && at !== index).map((other) => other.plugin)
        }]
      )
    }
  }
}
