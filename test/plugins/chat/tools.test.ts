import type { JsonValue } from "@bezel/core/json"
import type { ToolCallView } from "@bezel/tui"
import { renderBlocks } from "@bezel/tui/testing"
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import { toolRenderers } from "../../../packages/plugins/src/tools/tui.ts"
import { toolCard } from "../../../packages/tui/src/card.ts"

const show = (
  name: string,
  args: JsonValue,
  given: Partial<ToolCallView> = {},
  expanded = false
): ReadonlyArray<string> =>
  renderBlocks(
    toolCard(
      {
        callID: "c",
        name,
        args,
        argsText: "",
        status: "completed",
        output: "",
        progress: null,
        details: null,
        isError: false,
        ...given
      },
      toolRenderers[name] ?? null,
      { expanded }
    ),
    60
  )

describe("the built-in tools' cards", () => {
  it("say what a call is about in one row, and hide output that only the model needs", () => {
    expect(show("read", { path: "src/a.ts", offset: 10, limit: 20 }, { output: "a\nb\n" })).toEqual([
      "✓ read src/a.ts from line 10, 20 lines (2 lines)"
    ])
    expect(show("list", {}, { output: "a\n" })).toEqual(["✓ list . (1 line)"])
    expect(show("search", { pattern: "foo", path: "src", glob: "*.ts" }, { output: "x" })).toEqual([
      "✓ search foo in src *.ts (1 line)"
    ])
  })

  it("show an error in full", () => {
    expect(show("read", { path: "gone" }, { output: "There is no file gone.", isError: true, status: "failed" }))
      .toEqual(["✗ read gone", "  There is no file gone."])
  })

  it("show a command with its output's end", () => {
    expect(show("bash", { command: "make", timeout: 5 }, { output: "\x1b[32mok\x1b[0m\n" })).toEqual([
      "✓ bash make  (timeout 5)",
      "  ok"
    ])
  })

  it("show an edit as what it takes and what it gives", () => {
    expect(show("edit", { path: "a", oldText: "same\nold\nend", newText: "same\nnew\nmore\nend" })).toEqual([
      "✓ edit a",
      "  - old",
      "  + new",
      "  + more"
    ])
  })

  it("show the diff of what was really changed once it is known", () => {
    const diff = "--- a\n+++ b\n@@ -1,2 +1,2 @@\n context\n-old\n+new\n"
    expect(show("edit", { path: "a", oldText: "x", newText: "y" }, { details: { diff } })).toEqual([
      "✓ edit a",
      "  @@ -1,2 +1,2 @@",
      "   context",
      "  -old",
      "  +new"
    ])
  })

  it("cut a long new file and show it all when expanded", () => {
    const content = Array.from({ length: 40 }, (_, index) => `line ${index}`).join("\n")
    expect(show("write", { path: "a", content })).toHaveLength(14)
    expect(show("write", { path: "a", content }).at(-1)).toBe("  … 28 more lines")
    expect(show("write", { path: "a", content }, {}, true)).toHaveLength(41)
  })

  it("never fail, whatever a model sends", () => {
    expect(() =>
      fc.assert(
        fc.property(
          fc.constantFrom(...Object.keys(toolRenderers)),
          fc.jsonValue(),
          fc.jsonValue(),
          (name, args, details) => {
            show(name, args as JsonValue, { details: details as JsonValue, output: "x" })
            show(name, { path: args, content: args, oldText: args, newText: args, command: args } as JsonValue, {
              details: { diff: details } as JsonValue
            })
          }
        )
      )
    ).not.toThrow()
  })
})
