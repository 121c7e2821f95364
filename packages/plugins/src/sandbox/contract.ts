/** The sandbox of commands: what it is told by settings, and what whoever runs a command asks of it. */
import type { JsonObject, JsonValue } from "@bezel/core/json"
import { LocalService } from "@bezel/core/service"
import { SettingsKey } from "@bezel/core/settings"
import type { ToolFailure } from "@bezel/core/tool"
import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

export const SandboxSettings = Schema.Struct({
  bash: Schema.optionalKey(Schema.Boolean).annotateKey({
    description: "Whether commands run in the sandbox. Default: they do not."
  }),
  network: Schema.optionalKey(Schema.Boolean).annotateKey({
    description: "Whether they reach the network from there. Default: they do."
  }),
  write: Schema.optionalKey(Schema.Array(Schema.NonEmptyString)).annotateKey({
    description: "Folders that they may write beside the workspace and the folder for temporary files."
  })
})
export type SandboxSettings = typeof SandboxSettings.Type

const isObject = (value: JsonValue | undefined): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** A project that nobody trusts yet may only make it tighter. */
const tighter = (value: JsonValue): JsonValue | undefined =>
  isObject(value)
    ? {
      ...(value.bash === true ? { bash: true } : {}),
      ...(value.network === false ? { network: false } : {})
    }
    : undefined

export const SandboxSetting: SettingsKey<SandboxSettings> = SettingsKey.make("sandbox", {
  schema: SandboxSettings,
  default: {},
  untrusted: tighter,
  relocate: (value, absolute) =>
    isObject(value) && Array.isArray(value.write)
      ? {
        ...value,
        write: value.write.map((folder) =>
          typeof folder === "string" && /^\.\.?(\/|$)/.test(folder) ? absolute(folder) : folder
        )
      }
      : value,
  description: "Runs commands where only the workspace can be written, with bubblewrap (Linux)."
})

export interface CommandSandboxShape {
  /** The words that run these ones confined, as the settings want it; the same words where they do not. */
  readonly confine: (
    words: readonly [string, ...ReadonlyArray<string>]
  ) => Effect.Effect<readonly [string, ...ReadonlyArray<string>], ToolFailure>
  /** To be asked when a command has ended: what confined ones have made that needs to be told, one sentence each. */
  readonly made: Effect.Effect<ReadonlyArray<string>>
}

export const CommandSandbox: LocalService<CommandSandboxShape> = LocalService.make("bezel.command-sandbox")
