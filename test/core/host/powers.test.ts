/** What a plugin has only where the manifest grants it. */
import { Plugin, powers } from "@bezel/core/host"
import { testSessionHost } from "@bezel/core/testing"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"

const uses = {
  turns: Plugin.define({ id: "test.decides", session: (ctx) => ctx.turns.configure({}) }),
  reverting: Plugin.define({
    id: "test.decides",
    session: (ctx) => ctx.reverting({ stage: () => Effect.die("not used"), clear: () => Effect.die("not used") })
  })
}

describe.each(powers)("the power %s", (power) => {
  it.live("is refused to a plugin whose entry does not name it, which is taken out and says so", () =>
    Effect.gen(function*() {
      const others = powers.filter((other) => other !== power)
      const host = yield* testSessionHost([uses[power]], { entries: { "test.decides": { grants: others } } })
      const status = (yield* host.plugins).find(({ id }) => id === "test.decides")
      expect(status).toMatchObject({
        state: "failed",
        error: expect.stringContaining(
          `Plugin test.decides is not granted the power "${power}"; name it in "grants" of the plugin's entry`
        )
      })
    }).pipe(Effect.scoped))

  it.live("is there for a plugin that it is granted to", () =>
    Effect.gen(function*() {
      const host = yield* testSessionHost([uses[power]], { entries: { "test.decides": { grants: [power] } } })
      expect((yield* host.plugins).find(({ id }) => id === "test.decides")).toMatchObject({ state: "loaded" })
    }).pipe(Effect.scoped))
})
