import { MemoryTerminal } from "@bezel/tui/testing"
import xterm from "@xterm/headless"
import { describe, expect, it } from "vitest"
import { makeInput } from "../../packages/tui/src/host/input.ts"

/** Reads of a terminal, as pi-tui splits them, through the input; the clock moves between reads only. */
const read = (...reads: ReadonlyArray<string | number>): ReadonlyArray<readonly ["key" | "paste", string]> => {
  const seen: Array<readonly ["key" | "paste", string]> = []
  let clock = 0
  let flush: () => void = () => {}
  const input = makeInput(
    { key: (key) => seen.push(["key", key]), paste: (text) => seen.push(["paste", text]) },
    (run) => {
      flush = run
    },
    () => clock
  )
  const terminal = new MemoryTerminal(new xterm.Terminal({ allowProposedApi: true }))
  terminal.start(input, () => {})
  for (const part of reads) {
    if (typeof part === "number") {
      clock += part
      continue
    }
    terminal.type(part)
    flush()
    flush = () => {}
  }
  terminal.stop()
  return seen
}

describe("input", () => {
  it("gives typing key by key", () => {
    expect(read("a", "b", "\r")).toEqual([["key", "a"], ["key", "b"], ["key", "\r"]])
    expect(read("\x1b[A\x03")).toEqual([["key", "\x1b[A"], ["key", "\x03"]])
  })

  it("takes a line typed ahead for typing, so that it is sent", () => {
    expect(read("yes\r")).toEqual([["key", "y"], ["key", "e"], ["key", "s"], ["key", "\r"]])
    expect(read(`${"a line that a script sends ".repeat(20)}\r`).at(-1)).toEqual(["key", "\r"])
  })

  it("gives a bracketed paste as one, wherever its end marker is cut", () => {
    for (const cut of [1, 2, 3, 4, 5]) {
      const end = "\x1b[201~"
      expect(read("\x1b[200~one\rtwo", end.slice(0, cut), 500, end.slice(cut))).toEqual([["paste", "one\rtwo"]])
    }
  })

  it("takes text with a line break in its middle for a paste, also without brackets", () => {
    expect(read("one\rtwo\r")).toEqual([["paste", "one\rtwo\r"]])
    expect(read(`${"x".repeat(2_000)}\r`)).toEqual([["paste", `${"x".repeat(2_000)}\r`]])
  })

  it("takes what follows such a paste within a moment for its rest", () => {
    expect(read("one\rtwo", 10, "\r", 10, "end\r").map(([kind]) => kind)).toEqual(["paste", "paste", "paste"])
    expect(read("one\rtwo", 500, "\r")).toEqual([["paste", "one\rtwo"], ["key", "\r"]])
  })

  it("keeps the order of keys and pastes in one read", () => {
    expect(read("a\x1b[200~b\x1b[201~\x1b[A")).toEqual([["key", "a"], ["paste", "b"], ["key", "\x1b[A"]])
  })
})
