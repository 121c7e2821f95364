/**
 * The built-in sections of `bezel.jsonc`, all of them: what the composition root hands to `Settings.layer`.
 */
import type { SettingsKey } from "@bezel/core/settings"
import { SnapshotsSetting } from "../history/contract.ts"
import { HooksSetting } from "../hooks/contract.ts"
import { McpSetting } from "../mcp/contract.ts"
import { NotifySetting } from "../notices/contract.ts"
import { PermissionsKey } from "../permissions/contract.ts"
import { ModelSetting, ProvidersSetting } from "../providers/contract.ts"
import { SandboxSetting } from "../sandbox/contract.ts"
import { TitleSetting } from "../titles/contract.ts"
import { UnattendedSetting } from "../unattended/contract.ts"
import {
  AgentsSetting,
  CompactionSetting,
  KeybindingsSetting,
  LimitsSetting,
  MouseSetting,
  PluginsSetting,
  ScreenSetting,
  SessionsSetting,
  TelemetrySetting,
  ThemeSetting,
  WebSetting
} from "./contract.ts"

export { McpSetting } from "../mcp/contract.ts"
export * from "./contract.ts"

export const builtinSettingsKeys: ReadonlyArray<SettingsKey.Any> = [
  ModelSetting,
  ProvidersSetting,
  PermissionsKey,
  AgentsSetting,
  McpSetting,
  HooksSetting,
  SandboxSetting,
  NotifySetting,
  UnattendedSetting,
  PluginsSetting,
  CompactionSetting,
  LimitsSetting,
  WebSetting,
  SessionsSetting,
  SnapshotsSetting,
  TitleSetting,
  TelemetrySetting,
  ThemeSetting,
  ScreenSetting,
  MouseSetting,
  KeybindingsSetting
]
