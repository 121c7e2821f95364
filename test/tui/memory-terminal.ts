/** Terminal facets on a terminal in memory, with the emulator that the tests here use. */
import type { PresentationHalf, PresentationItem } from "@bezel/core/host"
import type { PluginSource } from "@bezel/core/kernel"
import type { TuiContext } from "@bezel/tui"
import { testTerminal as onScreen } from "@bezel/tui/testing"
import xterm from "@xterm/headless"

/** `above` is what the terminal shows already. */
export const testTerminal = <Item = PresentationItem>(options: {
  readonly presentation: PresentationHalf<Item>
  readonly plugins: ReadonlyArray<PluginSource<TuiContext>>
}, above = "") => {
  const screen = new xterm.Terminal({ cols: 80, rows: 24, scrollback: 100_000, allowProposedApi: true })
  screen.write(above)
  return onScreen({ ...options, screen })
}
