import type { PluginStatus } from "@bezel/core/kernel"
import { renderBlocks } from "@bezel/tui/testing"
import { describe, expect, it } from "vitest"
import { pluginBlocks } from "../../../packages/plugins/src/reload/plugin-list.ts"

const status = (id: string, given: Partial<PluginStatus> = {}): PluginStatus => ({
  id,
  version: "1.0.0",
  state: "loaded",
  phase: "activate",
  required: false,
  error: null,
  ...given
})
const rows = (...given: Parameters<typeof pluginBlocks>) => renderBlocks(pluginBlocks(...given), 70)

describe("the list of plugins", () => {
  it("shows those that failed first and says why, then the others and where they run", () => {
    expect(rows([
      status("acme.both"),
      status("acme.bad", { state: "failed", phase: "setup", error: "Plugin acme.bad failed: no \x1b[2Jfile" }),
      status("acme.here", { state: "absent" })
    ], [status("acme.both"), status("acme.bad", { state: "absent" }), status("acme.here", { version: null })])).toEqual(
      [
        "✗ acme.bad                  1.0.0",
        "    Plugin acme.bad failed: no ␛[2Jfile",
        "✓ acme.both                 1.0.0      session, terminal",
        "✓ acme.here                 1.0.0      terminal"
      ]
    )
  })

  it("says so when the session's host does not answer", () => {
    expect(rows(null, [status("acme.here")])).toEqual([
      "The session's host does not answer, so only this terminal's plugins",
      "are here.",
      "✓ acme.here                 1.0.0      terminal"
    ])
  })
})
