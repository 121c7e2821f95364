/** Names of keys, as settings and facets write them: `ctrl+t`, `alt+enter`, `f2`. */
import { type KeyId, matchesKey } from "@earendil-works/pi-tui"
import type { Keybinding } from "../contributions.ts"
import type { Visible } from "./registry.ts"

const named = new Set(
  ("escape esc enter return tab space backspace delete insert clear home end pageup pagedown up down left right " +
    "f1 f2 f3 f4 f5 f6 f7 f8 f9 f10 f11 f12").split(" ")
)
const modifiers = new Set(["ctrl", "shift", "alt", "super"])

/** Whether a key press is `key`; a name that no key has never matches. */
export const pressed = (sequence: string, key: string): boolean => {
  try {
    return matchesKey(sequence, key as KeyId)
  } catch {
    return false
  }
}

/** Whether a key has this name. A terminal may still be unable to send it. */
export const isKeyName = (name: string): boolean => {
  const parts = name.toLowerCase().split("+")
  // The plus key itself: `+`, `ctrl++`.
  const isPlus = name === "+" || name.endsWith("++")
  const key = isPlus ? "+" : parts.at(-1) ?? ""
  const held = parts.slice(0, isPlus ? -2 : -1)
  return (named.has(key) || /^[\x21-\x7e]$/.test(key)) && new Set(held).size === held.length &&
    held.every((modifier) => modifiers.has(modifier))
}

/** What keys do: those of the settings, and of what facets bind that which the settings leave. */
export const boundKeys = (
  settings: { readonly [key: string]: string },
  bindings: ReadonlyArray<Visible<Keybinding>>
): ReadonlyArray<{ readonly key: string; readonly plugin: string; readonly binding: Keybinding }> => {
  const taken = new Set(Object.keys(settings).map((key) => key.toLowerCase()))
  return [
    ...Object.entries(settings).map(([key, command]) => ({ key, plugin: "settings", binding: { command } })),
    ...bindings.flatMap(({ key, plugin, value }) =>
      taken.has(key.toLowerCase()) ? [] : [{ key, plugin, binding: value }]
    )
  ]
}
