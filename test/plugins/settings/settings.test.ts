import { AppPaths, Settings, settingsJsonSchema, Trust } from "@bezel/core/settings"
import { PermissionsKey } from "@bezel/plugins/permissions"
import { ModelSetting, ProvidersSetting } from "@bezel/plugins/providers/contract"
import {
  AgentsSetting,
  builtinSettingsKeys,
  CompactionSetting,
  KeybindingsSetting,
  LimitsSetting,
  McpSetting,
  PluginsSetting,
  ThemeSetting,
  tighterLimits
} from "@bezel/plugins/settings"
import { describe, expect, it } from "@effect/vitest"
import { ConfigProvider, Effect, Layer, Redacted } from "effect"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"

const sample = `{
  "model": "local/qwen",
  "providers": {
    "local": { "package": "@ai-sdk/openai-compatible", "options": { "baseURL": "http://127.0.0.1:8080/v1", "apiKey": "{env:LOCAL_KEY}" },
      "models": { "qwen": { "name": "Qwen", "contextWindow": 32768, "maxOutput": 4096, "reasoning": false, "images": false } } }
  },
  "permissions": { "bash": { "git status*": "allow", "rm *": "deny", "*": "ask" }, "write": "ask", "read": "allow" },
  "agents": { "review": { "description": "…", "prompt": "…", "tools": { "write": false }, "model": "local/qwen" } },
  "mcp": { "files": { "command": ["npx", "-y", "@modelcontextprotocol/server-filesystem", "."] } },
  "plugins": ["./tools/ticket.ts", "bezel-plugin-jira"],
  "compaction": { "threshold": 0.8, "keepRecent": 20000 }, "limits": { "toolOutput": "64KiB" }, "theme": "dark", "keybindings": { "ctrl+t": "thinking.cycle" }
}`

const world = (
  files: { readonly user?: string; readonly project?: string },
  options: { readonly trust?: boolean; readonly overrides?: ReadonlyArray<string> } = {}
) =>
  Effect.gen(function*() {
    const home = yield* Effect.acquireRelease(
      Effect.sync(() => fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "bezel-sections-")))),
      (directory) => Effect.sync(() => fs.rmSync(directory, { recursive: true, force: true }))
    )
    for (const folder of ["config", "project"]) fs.mkdirSync(path.join(home, folder))
    if (files.user !== undefined) fs.writeFileSync(path.join(home, "config/bezel.jsonc"), files.user)
    if (files.project !== undefined) fs.writeFileSync(path.join(home, "project/bezel.jsonc"), files.project)
    const reader = yield* Effect.flatMap(Settings, (settings) => settings.forLocation(path.join(home, "project"))).pipe(
      Effect.provide(
        Settings.layer({ keys: builtinSettingsKeys, ...options }).pipe(
          Layer.provide(Trust.layer),
          Layer.provide(AppPaths.layerTest(home)),
          Layer.provideMerge(ConfigProvider.layer(ConfigProvider.fromEnv({ env: { LOCAL_KEY: "sesame" } })))
        )
      )
    )
    return { home, reader }
  })

describe("the settings file", () => {
  it.effect("as it is documented, loads whole", () =>
    Effect.gen(function*() {
      const { home, reader } = yield* world({ user: sample })
      expect(reader.get(ModelSetting)).toBe("local/qwen")
      const key = reader.get(ProvidersSetting).local?.options?.apiKey
      expect(key === undefined ? null : Redacted.value(key)).toBe("sesame")
      expect(reader.get(PermissionsKey)).toEqual({
        bash: { "git status*": "allow", "rm *": "deny", "*": "ask" },
        write: "ask",
        read: "allow"
      })
      expect(reader.get(AgentsSetting).review).toMatchObject({ tools: { write: false } })
      expect(reader.get(McpSetting).files).toEqual({
        command: ["npx", "-y", "@modelcontextprotocol/server-filesystem", "."]
      })
      expect(reader.get(PluginsSetting)).toEqual([path.join(home, "config/tools/ticket.ts"), "bezel-plugin-jira"])
      expect(reader.get(CompactionSetting)).toEqual({ threshold: 0.8, keepRecent: 20_000 })
      expect(reader.get(LimitsSetting)).toEqual({ toolOutput: 65_536 })
      expect(reader.get(ThemeSetting)).toBe("dark")
      expect(reader.get(KeybindingsSetting)).toEqual({ "ctrl+t": "thinking.cycle" })
      expect(reader.warnings).toEqual([])
    }))

  it.effect("of an untrusted project sets theme, keybindings, compaction, tighter limits and denials, and nothing else", () =>
    Effect.gen(function*() {
      const { reader } = yield* world({ project: sample.replace('"64KiB"', '"1KiB", "artifact": "1 GiB"') })
      expect(reader.get(ThemeSetting)).toBe("dark")
      expect(reader.get(KeybindingsSetting)).toEqual({ "ctrl+t": "thinking.cycle" })
      expect(reader.get(CompactionSetting)).toEqual({ threshold: 0.8, keepRecent: 20_000 })
      expect(reader.get(LimitsSetting)).toEqual({ toolOutput: 1024 })
      expect(reader.get(PermissionsKey)).toEqual({ bash: { "rm *": "deny" } })
      expect(reader.get(ModelSetting)).toBeNull()
      for (const key of [ProvidersSetting, AgentsSetting, McpSetting]) expect(reader.get<object>(key)).toEqual({})
      expect(reader.get(PluginsSetting)).toEqual([])
      expect(reader.skipped.map(({ key, partly }) => partly ? `${key} (partly)` : key)).toEqual([
        "model",
        "providers",
        "permissions (partly)",
        "agents",
        "mcp",
        "plugins",
        "limits (partly)"
      ])
    }))

  it.effect("of a project that only denies leaves nothing out", () =>
    Effect.gen(function*() {
      const { reader } = yield* world({ project: '{ "permissions": { "web": "deny", "bash": { "rm *": "deny" } } }' })
      expect(reader.skipped).toEqual([])
      expect(reader.get(PermissionsKey)).toEqual({ web: "deny", bash: { "rm *": "deny" } })
    }))

  it.effect("of a project does not lift what the user denies, and neither does the command line", () =>
    Effect.gen(function*() {
      const { reader } = yield* world(
        {
          user: '{ "permissions": { "bash": { "rm *": "deny" }, "web": "deny" } }',
          project: '{ "permissions": { "bash": { "rm *": "allow" }, "web": "allow" } }'
        },
        { trust: true, overrides: ["permissions.web=allow"] }
      )
      expect(reader.get(PermissionsKey)).toEqual({ bash: { "rm *": "deny" }, web: { "*": "deny" } })
    }))

  it.effect("of a project adds plugins to the user's", () =>
    Effect.gen(function*() {
      const { home, reader } = yield* world({
        user: '{ "plugins": ["a"] }',
        project: '{ "plugins": [{ "source": "./b.ts", "options": { "x": 1 } }] }'
      }, { trust: true })
      expect(reader.get(PluginsSetting)).toEqual(["a", { source: path.join(home, "project/b.ts"), options: { x: 1 } }])
    }))

  const wrong: ReadonlyArray<readonly [text: string, message: string]> = [
    ['{ "agents": { "r": { "promt": "x" } } }', 'agents.r.promt: unknown setting; did you mean "prompt"?'],
    [
      '{ "agents": { "r": { "permissions": { "bash": "nope" } } } }',
      'agents.r.permissions.bash: expected "allow" or "ask" or "deny"'
    ],
    [
      '{ "permissions": { "bash": { "rm": true } } }',
      'permissions.bash.rm: expected "allow" or "ask" or "deny", found true'
    ],
    ['{ "mcp": { "x": { "command": [] } } }', "mcp.x.command"],
    ['{ "compaction": { "threshold": 80 } }', "compaction.threshold: expected a number from 0.1 to 1, found 80"],
    [
      '{ "limits": { "toolOutput": "64 apples" } }',
      'limits.toolOutput: expected a size like "64KiB", found "64 apples"'
    ],
    ['{ "limits": { "maxSteps": 0 } }', "limits.maxSteps: expected a number of steps above 0, found 0"],
    ['{ "keybindings": { "ctrl+t": 3 } }', 'keybindings["ctrl+t"]: expected'],
    ['{ "plugins": "a" }', "plugins: expected array, found text"],
    ['{ "model": "qwen" }', "model: expected provider/model, like bezel/offline"]
  ]
  for (const [text, message] of wrong) {
    it.effect(`is refused with file, line and what would be right: ${text}`, () =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(world({ user: text }))
        expect(error).toMatchObject({
          _tag: "SettingsError",
          line: 1,
          message: expect.stringContaining(`/config/bezel.jsonc:1: ${message}`)
        })
        expect("message" in error && error.message).not.toContain("\n")
      }))
  }
})

describe("sizes", () => {
  it.effect("are what people write", () =>
    Effect.gen(function*() {
      for (
        const [text, bytes] of [["64KiB", 65_536], ["1 MiB", 1_048_576], ["10 kB", 10_000], ["512 B", 512]] as const
      ) {
        const { reader } = yield* world({}, { overrides: [`limits.toolOutput=${text}`] })
        expect(reader.get(LimitsSetting)).toEqual({ toolOutput: bytes })
      }
      const { reader } = yield* world({}, { overrides: ["limits.toolOutput=2048"] })
      expect(reader.get(LimitsSetting)).toEqual({ toolOutput: 2048 })
    }))

  it("a limit is tighter only if it is lower than what holds without it", () => {
    expect(tighterLimits({ toolOutput: "32KiB", toolLines: 3000, maxSteps: 5 }, undefined)).toEqual({
      toolOutput: "32KiB",
      maxSteps: 5
    })
    expect(tighterLimits({ maxSteps: 5, toolOutput: 100 }, { maxSteps: 4, toolOutput: "50 B" })).toBeUndefined()
  })
})

describe("the JSON Schema", () => {
  it("knows every section, refuses unknown names, and refers to nothing that is not in it", () => {
    const schema = settingsJsonSchema(builtinSettingsKeys)
    expect(schema).toMatchObject({
      $schema: "https://json-schema.org/draft/2020-12/schema",
      additionalProperties: false
    })
    expect(Object.keys(schema.properties as object).sort()).toEqual(
      ["$schema", ...builtinSettingsKeys.map((key) => key.name)].sort()
    )
    const text = JSON.stringify(schema)
    for (const [, name] of text.matchAll(/"\$ref":"#\/\$defs\/([^"]+)"/g)) {
      expect(Object.keys(schema.$defs as object)).toContain(name)
    }
    expect(JSON.parse(text)).toEqual(schema)
  })

  it("says of each section what it is for", () => {
    const properties = settingsJsonSchema(builtinSettingsKeys).properties as Record<string, { description?: string }>
    for (const key of builtinSettingsKeys) expect(properties[key.name]?.description).toMatch(/\.$/)
  })
})
