import type { Registered } from "@bezel/core/kernel"
import * as Scope from "effect/Scope"
import { describe, expect, it } from "vitest"
import { makeRegistries, type TerminalItem } from "../../packages/tui/src/host/registry.ts"

const scope = Scope.makeUnsafe()
const command = (plugin: string, key: string): Registered<TerminalItem> => ({
  plugin,
  version: null,
  order: 0,
  item: {
    terminal: "command",
    key,
    value: {
      description: plugin,
      run: () => {
        throw new Error("not run")
      }
    },
    scope
  }
})

describe("registries", () => {
  it("use the later of two contributions, tell whom it hides, and bring the earlier back", () => {
    const registries = makeRegistries(() => {})
    const first = command("a", "open")
    const second = command("b", "open")
    registries.apply([first, command("a", "close"), second])
    expect(registries.find("command", "open")?.plugin).toBe("b")
    expect(registries.list("command").map(({ hides, key, plugin }) => ({ hides, key, plugin }))).toEqual([
      { key: "close", plugin: "a", hides: [] },
      { key: "open", plugin: "b", hides: ["a"] }
    ])
    registries.apply([first])
    expect(registries.find("command", "open")?.plugin).toBe("a")
    expect(registries.find("command", "close")).toBeUndefined()
  })

  it("tell the host of each change", () => {
    let changes = 0
    const registries = makeRegistries(() => {
      changes += 1
    })
    registries.apply([command("a", "open")])
    registries.apply([])
    expect(changes).toBe(2)
    expect(registries.list("command")).toEqual([])
  })
})
