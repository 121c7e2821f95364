/**
 * What a terminal facet may do: everything that a presentation may, and the facilities of a terminal.
 *
 * A facet sees sessions through service facades only and the terminal through blocks and registries only; it holds
 * neither a harness nor a file descriptor.
 */
import type { ViewEntry } from "@bezel/core/harness"
import type { PresentationContext } from "@bezel/core/host"
import type { Block } from "./block.ts"
import type {
  Commands,
  ContributionRegistry,
  EntryRenderer,
  Keybindings,
  Screens,
  Slots,
  Themes,
  ToolCallView,
  ToolRenderer,
  ToolRenderOptions,
  Ui
} from "./contributions.ts"

export interface ToolRenderers extends ContributionRegistry<ToolRenderer> {
  /** The card of a call: the registered renderer's, or the default one. Never throws. */
  readonly render: (call: ToolCallView, options: ToolRenderOptions) => ReadonlyArray<Block>
}

export interface EntryRenderers extends ContributionRegistry<EntryRenderer> {
  /** The blocks of an entry by the renderer of its kind, or `null` when there is none. Never throws. */
  readonly render: (entry: ViewEntry) => ReadonlyArray<Block> | null
}

/** The facilities and registries that the terminal adds to a presentation's context. */
export interface TerminalFacilities {
  readonly ui: Ui
  readonly commands: Commands
  readonly keybindings: Keybindings
  readonly toolRenderers: ToolRenderers
  readonly entryRenderers: EntryRenderers
  readonly slots: Slots
  readonly screens: Screens
  readonly themes: Themes
}

export interface TuiContext extends PresentationContext, TerminalFacilities {}

declare module "@bezel/core/host" {
  interface HostContexts {
    readonly tui: TuiContext
  }
}
