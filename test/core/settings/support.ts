import { AppPaths, Settings, SettingsKey, type SettingsOptions, Trust } from "@bezel/core/settings"
import { ConfigProvider, Effect, Layer, Redacted, Schema, type Scope } from "effect"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"

/** A directory of this test, gone afterwards. Its real path, since locations have real paths. */
export const temporary: Effect.Effect<string, never, Scope.Scope> = Effect.acquireRelease(
  Effect.sync(() => fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "bezel-settings-")))),
  (directory) => Effect.sync(() => fs.rmSync(directory, { recursive: true, force: true }))
)

/** Writes files below a directory; an object stands for its JSON. */
export const write = (directory: string, files: { readonly [name: string]: string | object }): void => {
  for (const [name, content] of Object.entries(files)) {
    const file = path.join(directory, name)
    fs.mkdirSync(path.dirname(file), { recursive: true })
    fs.writeFileSync(file, typeof content === "string" ? content : JSON.stringify(content, null, 2))
  }
}

export const Colour = SettingsKey.make("colour", {
  schema: Schema.Literals(["red", "green", "blue"]),
  default: "red",
  untrusted: "keep",
  description: "Which colour."
})
export const Server = SettingsKey.make("server", {
  schema: Schema.Struct({
    host: Schema.String,
    port: Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 65535 }))),
    key: Schema.optionalKey(Schema.RedactedFromValue(Schema.String)),
    args: Schema.optionalKey(Schema.Array(Schema.String))
  }),
  default: { host: "localhost" },
  untrusted: "drop"
})
export const Size = SettingsKey.make("size", {
  schema: Schema.Finite,
  default: 10,
  untrusted: (value, trusted) =>
    typeof value === "number" && value < (typeof trusted === "number" ? trusted : 10) ? value : undefined
})
export const Files = SettingsKey.make("files", {
  schema: Schema.Array(Schema.String),
  default: [],
  untrusted: "drop",
  relocate: (value, absolute) =>
    Array.isArray(value) ? value.map((entry) => typeof entry === "string" ? absolute(entry) : entry) : value
})

const keys = [Colour, Server, Size, Files]

/** Settings of a home whose user file is `config/bezel.jsonc`, with this environment. */
export const services = (
  home: string,
  options: Partial<SettingsOptions> = {},
  environment: Record<string, string> = {}
) =>
  Settings.layer({ keys, ...options }).pipe(
    Layer.provideMerge(Trust.layer),
    Layer.provideMerge(AppPaths.layerTest(home)),
    Layer.provideMerge(ConfigProvider.layer(ConfigProvider.fromEnv({ env: environment })))
  )

/** What holds in a directory. */
export const readIn = (
  home: string,
  directory: string,
  options?: Partial<SettingsOptions>,
  environment?: Record<string, string>
) =>
  Effect.provide(
    Effect.flatMap(Settings, (settings) => settings.forLocation(directory)),
    services(home, options, environment)
  )

export const secretOf = (value: Redacted.Redacted<string> | undefined): string | undefined =>
  value === undefined ? undefined : Redacted.value(value)
