/**
 * Settings in two layers: the user's file as a whole, for plugins of the host, and the few of its settings that a person may
 * see and change at a client.
 */
import type { JsonValue } from "@bezel/core/json"
import { LocalService, RemoteService } from "@bezel/core/service"
import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { ModelName } from "../providers/contract.ts"

/** The user's settings could not be read or written; the message says where and what to do. */
export class PreferencesError extends Schema.TaggedError<PreferencesError>()("PreferencesError", {
  message: Schema.String
}) {}

export interface UserSettingsShape {
  /** The path of the user's `bezel.jsonc`. */
  readonly file: string
  /** What the file sets, as it is written; an empty object where there is no file. It may hold secrets. */
  readonly read: Effect.Effect<{ readonly [key: string]: JsonValue }, PreferencesError>
  /** Sets one section, or takes it out with `undefined`; everything else of the file stays as a person wrote it. */
  readonly set: (key: string, value: JsonValue | undefined) => Effect.Effect<void, PreferencesError>
  /** Sets one member of a section, which is made if it is not there; its other members and comments stay. */
  readonly setIn: (section: string, member: string, value: JsonValue) => Effect.Effect<void, PreferencesError>
}

/** The user's settings file. It never leaves the process. */
export const UserSettings: LocalService<UserSettingsShape> = LocalService.make("bezel.user-settings")

/** What a person may change at a client. `null`: the file does not say. */
export const PreferenceValues = Schema.Struct({
  theme: Schema.NullOr(Schema.String),
  model: Schema.NullOr(Schema.String)
})
export type PreferenceValues = typeof PreferenceValues.Type

const Color = Schema.Union([
  Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 255 })),
  Schema.String.check(Schema.isPattern(/^#[0-9a-fA-F]{6}$/, { message: "Expected a colour like #7dcfff" }))
])

/** The roles that a theme may colour; the terminal has the same list. */
export const themeRoles = [
  "text",
  "muted",
  "accent",
  "user",
  "success",
  "warning",
  "error",
  "added",
  "removed",
  "code",
  "heading",
  "link",
  "border"
] as const

/** A file `themes/NAME.json` of the config folder. Colours: one of the terminal's 256, or `#rrggbb`. */
export const ThemeFile = Schema.Struct({
  colors: Schema.Record(Schema.Literals(themeRoles), Schema.optionalKey(Color))
})

export const UserTheme = Schema.Struct({ id: Schema.String, colors: Schema.Record(Schema.String, Color) })
export type UserTheme = typeof UserTheme.Type

export class Preferences extends RemoteService.make("bezel.preferences")({
  state: { current: PreferenceValues },
  methods: {
    /** Writes what is given into the user's file; `null` takes a setting out. */
    set: {
      payload: Schema.Struct({
        theme: Schema.optionalKey(Schema.NullOr(Schema.NonEmptyString.check(Schema.isMaxLength(100)))),
        model: Schema.optionalKey(Schema.NullOr(ModelName))
      }),
      error: PreferencesError
    },
    /** The user's own themes, and what is wrong with files that are none. */
    themes: {
      success: Schema.Struct({ themes: Schema.Array(UserTheme), problems: Schema.Array(Schema.String) })
    }
  }
}) {}

/** What a host says to this plugin. */
export const PreferencesOptions = Schema.Struct({
  /** Where the user's `bezel.jsonc` and `themes/` are; default: the config folder of this user. */
  configDirectory: Schema.optionalKey(Schema.String)
})
export type PreferencesOptions = typeof PreferencesOptions.Type
