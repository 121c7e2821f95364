/** Tools of servers and agents that only read: nobody knows what such a tool changes, so they do not get it unasked. */
import { Plugin } from "@bezel/core/host"
import type { SettingsKey, SettingsReader } from "@bezel/core/settings"
import {
  call,
  emptySettings,
  scriptedModel,
  type ScriptedTurn,
  temporaryDirectory,
  testSessionHost
} from "@bezel/core/testing"
import { session as agents } from "@bezel/plugins/agents/session"
import { McpSetting } from "@bezel/plugins/mcp"
import { session as mcp } from "@bezel/plugins/mcp/session"
import { PermissionsKey } from "@bezel/plugins/permissions"
import { session as permissions } from "@bezel/plugins/permissions/session"
import { type AgentSettings, AgentsSetting } from "@bezel/plugins/settings"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { program } from "./world.ts"

const open = (script: ReadonlyArray<ScriptedTurn>, own: { readonly [name: string]: AgentSettings } = {}) =>
  Effect.gen(function*() {
    const folder = yield* temporaryDirectory
    const values: { readonly [key: string]: unknown } = {
      [McpSetting.name]: { test: { command: program("plain", folder) } },
      [PermissionsKey.name]: { "test_*": "allow", list_mcp_resources: "allow" },
      [AgentsSetting.name]: own
    }
    const settings: SettingsReader = {
      ...emptySettings,
      get: <A>(key: SettingsKey<A>): A => (values[key.name] ?? key.default) as A
    }
    const model = scriptedModel(script)
    const host = yield* testSessionHost(
      [
        Plugin.define({ id: "bezel.mcp", session: mcp }),
        Plugin.define({ id: "bezel.permissions", session: permissions }),
        Plugin.define({ id: "bezel.agents", session: agents })
      ],
      {
        model,
        settings,
        entries: {
          "bezel.permissions": { options: { stateDirectory: folder, yes: true } },
          "bezel.agents": { options: { configDirectory: folder } }
        }
      }
    )
    const ask = (agent: string) =>
      Effect.gen(function*() {
        const { id } = yield* Effect.orDie(host.session.create({ agent }))
        return yield* host.ask(id, "go")
      })
    const offered = () => model.requests.at(-1)?.tools.map(({ name }) => name) ?? []
    const results = () => {
      const message = model.requests.at(-1)?.messages.findLast((each) => each.role === "tool")
      return message?.role === "tool" ? message.content : []
    }
    return { ask, offered, results }
  })

describe("an agent that only reads", () => {
  it.live("is not offered tools of servers, whatever is allowed, but may read their resources", () =>
    Effect.gen(function*() {
      const { ask, offered, results } = yield* open([
        [call("test_echo", { text: "a" }), call("list_mcp_resources", {})],
        "one",
        "two"
      ])
      expect(yield* ask("plan")).toBe("one")
      expect(offered()).toEqual(["list_mcp_resources", "read_mcp_resource"])
      expect(results()[0]).toMatchObject({ isFailure: true, result: expect.stringContaining("not available here") })
      expect(results()[1]).toMatchObject({ isFailure: false, result: expect.stringContaining("note:1") })
      yield* ask("build")
      expect(offered()).toContain("test_echo")
    }).pipe(Effect.scoped))

  it.live("gets those that its own permissions allow by name", () =>
    Effect.gen(function*() {
      const { ask, offered, results } = yield* open([[call("test_echo", { text: "a" })], "one"], {
        plan: { permissions: { "test_ec*": "allow" } }
      })
      expect(yield* ask("plan")).toBe("one")
      expect(offered()).toEqual(["list_mcp_resources", "read_mcp_resource", "test_echo"])
      expect(results()[0]).toMatchObject({ isFailure: false })
    }).pipe(Effect.scoped))
})
