import { makePresentation, Plugin } from "@bezel/core/host"
import { testSessionHost } from "@bezel/core/testing"
import { builtinTerminalPlugins } from "@bezel/plugins"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { mismatchText, versionMismatches } from "../../../packages/plugins/src/versions/compare.ts"
import { testTerminal } from "../../tui/memory-terminal.ts"

const acme = (version: string) =>
  Plugin.define({ id: "acme.review", version, session: () => Effect.void, tui: () => Effect.void })

const screenWith = (version: string) =>
  Effect.gen(function*() {
    const host = yield* testSessionHost([acme("1.0.0")])
    const { id } = yield* host.session.create()
    const connection = yield* host.connect(id)
    const presentation = yield* makePresentation({ connection, location: host.location })
    return yield* testTerminal({
      presentation,
      plugins: [...builtinTerminalPlugins("test"), ...Plugin.sources("tui", [acme(version)])]
    })
  })

describe("a plugin whose versions differ", () => {
  it.live("between terminal and session host is told to the person when they connect", () =>
    Effect.gen(function*() {
      const screen = yield* screenWith("2.0.0")
      yield* screen.until(/acme\.review is\s+2\.0\.0 here and 1\.0\.0 there/)
      expect((yield* screen.text).replace(/\s+/g, " ")).toContain("Restart both, or install one version.")
    }).pipe(Effect.scoped))

  it.live("is not told of where they are the same", () =>
    Effect.gen(function*() {
      const screen = yield* screenWith("1.0.0")
      yield* screen.until(/bezel-test-/)
      expect(yield* screen.text).not.toContain("differ")
    }).pipe(Effect.scoped))

  it("is one that both sides have, and not one that failed or that only one has", () => {
    const here = [
      { id: "a", version: "1", state: "loaded" },
      { id: "b", version: "1", state: "failed" },
      { id: "c", version: "1", state: "loaded" },
      { id: "d", version: null, state: "absent" }
    ] as const
    const there = [
      { id: "a", version: "1", state: "absent" },
      { id: "b", version: "2", state: "loaded" },
      { id: "d", version: "3", state: "loaded" }
    ] as const
    const found = versionMismatches(here, there)
    expect(found).toEqual([{ plugin: "d", here: null, there: "3" }])
    expect(mismatchText(found)).toContain("d is no version here and 3 there")
  })
})
