import { Plugin, PluginKernel } from "@bezel/core/host"
import { SettingsKey, type SettingsReader } from "@bezel/core/settings"
import { emptySettings, run, say, scriptedModel, testSessionHost } from "@bezel/core/testing"
import { describe, expect, it } from "@effect/vitest"
import { Context, Effect, Fiber, Schema } from "effect"
import { barrier } from "./reload-fixture.ts"

describe("settings that change", () => {
  const theme = SettingsKey.make("theme", { schema: Schema.String, default: "dark", untrusted: "keep" })
  const limit = SettingsKey.make("limit", { schema: Schema.Finite, default: 1, untrusted: "keep" })

  /** Settings whose files somebody edits. */
  const editable = () => {
    let values: { readonly [key: string]: unknown } = {}
    return {
      edit: (next: { readonly [key: string]: unknown }) => {
        values = next
      },
      read: (): SettingsReader => {
        const now = values
        return {
          ...emptySettings,
          get: ({ default: otherwise, name, schema }) =>
            Object.hasOwn(now, name) ? Schema.decodeUnknownSync(schema)(now[name]) : otherwise
        }
      }
    }
  }

  it.live("reload only what has read the changed key; a session that streams goes on", () =>
    Effect.gen(function*() {
      const settings = editable()
      const setups: Array<string> = []
      const reads = (id: string, ...keys: ReadonlyArray<typeof theme | typeof limit>) =>
        Plugin.define({
          id,
          session: (ctx) =>
            Effect.sync(() => void setups.push(`${id} ${keys.map((key) => ctx.settings.get<unknown>(key)).join(" ")}`))
        })
      const stream = yield* barrier
      const model = scriptedModel([[run(stream.pass), say("done")]])
      const host = yield* testSessionHost([reads("a", theme), reads("b", limit), reads("c")], {
        model,
        settings: settings.read
      })
      const { id } = yield* host.session.create()
      yield* host.connect(id)
      yield* host.connect(id)
      const asking = yield* Effect.forkScoped(host.ask(id, "go"))
      yield* stream.reached
      setups.length = 0
      settings.edit({ theme: "light" })
      expect(yield* Context.get(host.services, PluginKernel).reloadSettings).toEqual(["a"])
      expect(setups).toEqual(["a light"])
      yield* stream.open
      expect(yield* Fiber.join(asking)).toBe("done")
      expect(model.requests).toHaveLength(1)
      expect(yield* Context.get(host.services, PluginKernel).reloadSettings).toEqual([])
    }).pipe(Effect.scoped))

  it.live("hold as they were when a plugin refuses its new value", () =>
    Effect.gen(function*() {
      const settings = editable()
      const active: Array<number> = []
      const strict = Plugin.define({
        id: "strict",
        session: (ctx) =>
          Effect.gen(function*() {
            const value = ctx.settings.get(limit)
            yield* ctx.onActivate(
              value > 10 ? Effect.fail(new Error("too much")) : Effect.sync(() => void active.push(value))
            )
          })
      })
      const host = yield* testSessionHost([strict], { settings: settings.read })
      const kernel = Context.get(host.services, PluginKernel)
      settings.edit({ limit: 11 })
      const error = yield* Effect.flip(kernel.reloadSettings)
      expect(error.message).toContain("too much; the old code is active again")
      settings.edit({ limit: 5 })
      expect(yield* kernel.reloadSettings).toEqual(["strict"])
      expect(active).toEqual([1, 1, 5])
    }).pipe(Effect.scoped))
})
