/** The session facet of preferences: the user's settings file for plugins, and a narrow part of it for people at a client. */
import type { SessionContext } from "@bezel/core/host"
import { AppPaths } from "@bezel/core/settings"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { Preferences, PreferencesOptions, PreferenceValues, UserSettings } from "./contract.ts"
import { readThemes } from "./themes.ts"
import { makeUserSettings } from "./user-settings.ts"

type Context = Pick<SessionContext, "clients" | "onActivate" | "options" | "provide" | "state">

const nothing: PreferenceValues = { theme: null, model: null }

const text = (value: unknown): string | null => typeof value === "string" ? value : null

/** The facet for session hosts. */
export const session = Effect.fn("preferences/session")(function*(ctx: Context) {
  const options = yield* Schema.decodeUnknownEffect(PreferencesOptions, { onExcessProperty: "error" })(
    ctx.options ?? {}
  )
  const configDirectory = options.configDirectory ??
    (yield* Effect.provide(AppPaths.use((paths) => Effect.succeed(paths.config)), AppPaths.layer))
  const settings = makeUserSettings(configDirectory)
  yield* ctx.provide(UserSettings, settings)

  const current = yield* ctx.state(PreferenceValues, nothing)
  const show = Effect.flatMap(
    settings.read,
    ({ model, theme }) => current.set({ theme: text(theme), model: text(model) })
  )
  // Who needs the settings says what is wrong with them; here there is then nothing to show.
  yield* Effect.ignore(show)
  // A person may have changed the file by hand since: who comes sees what it says then.
  yield* ctx.onActivate(
    Effect.asVoid(Effect.forkScoped(Stream.runForEach(ctx.clients.changes, () => Effect.ignore(show))))
  )

  yield* ctx.provide(Preferences, {
    current,
    set: (changes) =>
      Effect.andThen(
        Effect.forEach(
          Object.entries(changes),
          ([key, value]) => settings.set(key, value ?? undefined),
          { discard: true }
        ),
        show
      ),
    themes: () => readThemes(configDirectory)
  })
})
