import { MemoryTerminal } from "@bezel/tui/testing"
import { it } from "@effect/vitest"
import xterm from "@xterm/headless"
import * as Effect from "effect/Effect"
import * as Scope from "effect/Scope"
import { describe, expect } from "vitest"
import { makeTerminalHost } from "../../packages/tui/src/host/facilities.ts"
import { boundKeys, isKeyName } from "../../packages/tui/src/host/keys.ts"

describe("names of keys", () => {
  it("are those that a terminal has", () => {
    for (
      const name of [
        "ctrl+t",
        "alt+enter",
        "Escape",
        "f12",
        "shift+tab",
        "ctrl+alt+x",
        "a",
        "/",
        "+",
        "ctrl++",
        "pageUp"
      ]
    ) {
      expect([name, isKeyName(name)]).toEqual([name, true])
    }
    for (const name of ["", "ctlr+t", "ctrl+", "ctrl", "strg+t", "ctrl+ctrl+t", "f13", "ctrl-t", "ctrl+tt", "ä"]) {
      expect([name, isKeyName(name)]).toEqual([name, false])
    }
  })

  it("in a list of what is bound are those of the settings and what facets bind beside them", () => {
    const bound = (key: string, command: string) => ({
      key,
      plugin: "p",
      value: { command },
      scope: Scope.makeUnsafe()
    })
    expect(
      boundKeys({ "Alt+Q": "app.help", f2: "own" }, [bound("alt+q", "chat.queue"), bound("ctrl+c", "quit")])
        .map(({ binding, key, plugin }) => [key, binding.command, plugin])
    ).toEqual([["Alt+Q", "app.help", "settings"], ["f2", "own", "settings"], ["ctrl+c", "quit", "p"]])
  })

  it.live("that there are none of are told, with how keys are written", () =>
    Effect.scoped(Effect.gen(function*() {
      const host = yield* makeTerminalHost({
        terminal: new MemoryTerminal(new xterm.Terminal({ allowProposedApi: true })),
        keybindings: { "ctlr+t": "nothing.there", f2: "nothing.there" }
      })
      expect(host.unknownNames()).toEqual([
        'There is no key "ctlr+t" for a binding; keys are written like ctrl+t, alt+enter or f2.',
        "ctlr+t is bound to nothing.there, which does not exist.",
        "f2 is bound to nothing.there, which does not exist."
      ])
    })))
})
