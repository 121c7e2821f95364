/** Every built-in feature can be left out of the manifest: the location is up, a turn runs, and what is left works. */
import { Plugin } from "@bezel/core/host"
import type { SettingsKey, SettingsReader } from "@bezel/core/settings"
import { call, emptySettings, scriptedModel, temporaryDirectory, testSessionHost } from "@bezel/core/testing"
import { tool } from "@bezel/core/tool"
import { builtinSessionPlugins } from "@bezel/plugins"
import { HooksSetting } from "@bezel/plugins/hooks"
import { McpSetting } from "@bezel/plugins/mcp"
import { PermissionsKey } from "@bezel/plugins/permissions"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { program } from "./mcp/world.ts"

/** All features with something to do. */
const settings = (folder: string): SettingsReader => {
  const values: { readonly [key: string]: unknown } = {
    [McpSetting.name]: { own: { command: program("plain", folder) } },
    [HooksSetting.name]: { beforeTool: [{ match: "blocked", command: "exit 2" }], turnEnd: [{ command: "true" }] },
    [PermissionsKey.name]: { "*": "allow" }
  }
  return { ...emptySettings, get: <A>(key: SettingsKey<A>): A => (values[key.name] ?? key.default) as A }
}

const probe = Plugin.define({
  id: "test.probe",
  session: (ctx) =>
    Effect.asVoid(ctx.tool.transform((draft) => {
      for (const name of ["probe", "blocked"]) {
        draft.set(
          name,
          tool({
            description: name,
            input: Schema.Struct({}),
            execute: () => Effect.succeed(`${name} ran`)
          })
        )
      }
    }))
})

const features = await Promise.all(
  builtinSessionPlugins("1.0.0").map(async ({ entry, load }) => ({ entry, facet: await Effect.runPromise(load) }))
)
const withFacet = features.flatMap(({ entry, facet }) => facet === undefined ? [] : [{ entry, facet }])

const without = (id: string | null) =>
  Effect.gen(function*() {
    const stateDirectory = yield* temporaryDirectory
    const model = scriptedModel([[call("probe", {}), call("blocked", {}), call("own_echo", { text: "hi" })], "done"])
    const kept = withFacet.filter(({ entry }) => entry.id !== id)
    const host = yield* testSessionHost(
      [...kept.map(({ entry, facet }) => Plugin.define({ id: entry.id, version: "1.0.0", session: facet })), probe],
      {
        model,
        settings: settings(yield* temporaryDirectory),
        entries: Object.fromEntries(kept.map(({ entry }) => [entry.id, {
          required: true,
          ...(entry.id === "bezel.permissions"
            ? { options: { stateDirectory } }
            : entry.options === undefined
            ? {}
            : { options: entry.options })
        }]))
      }
    )
    const { id: sessionID } = yield* Effect.orDie(host.session.create({ title: "t" }))
    const answer = yield* host.ask(sessionID, "go")
    const results = model.requests.at(-1)?.messages.findLast(({ role }) => role === "tool")
    const told = results?.role === "tool" ? results.content.map(({ result }) => String(result)) : []
    return { answer, told, states: (yield* host.plugins).filter(({ state }) => state !== "loaded") }
  }).pipe(Effect.scoped)

describe("the built-in features", () => {
  it.live("work together", () =>
    Effect.gen(function*() {
      const { answer, states, told } = yield* without(null)
      expect([answer, states]).toEqual(["done", []])
      expect(told).toEqual(["probe ran", "A hook of the user blocked this call.", '{"text":"hi"}'])
    }))

  it.live.each(withFacet.map(({ entry }) => [entry.id]))("work without %s", ([id = ""]) =>
    Effect.gen(function*() {
      const { answer, states, told } = yield* without(id)
      expect([answer, states]).toEqual(["done", []])
      const [probed, blocked, own] = told
      expect(probed).toBe("probe ran")
      expect(blocked).toBe(id === "bezel.hooks" ? "blocked ran" : "A hook of the user blocked this call.")
      expect(own).toMatch(id === "bezel.mcp" ? /^There is no tool "own_echo"/ : /hi/)
    }))
})
