/** What a person should know of what is left out here, before a command does anything. */
import { type SettingsReader, Trust } from "@bezel/core/settings"
import * as Effect from "effect/Effect"

/** What of the settings has no effect. */
export function settingsNotices(settings: SettingsReader): ReadonlyArray<string> {
  const files = [...new Set(settings.skipped.map((item) => item.file))]
  return [
    ...files.map((file) => {
      const keys = settings.skipped.filter((item) => item.file === file).map((item) => item.key)
      return `${file} is not trusted, so ${keys.join(", ")} in it ${
        keys.length === 1 ? "has" : "have"
      } no effect (--trust takes it all for this run)`
    }),
    ...settings.warnings
  ]
}

/** The same of folders in `.bezel` whose files do nothing until they are trusted. */
export const folderNotices = (directory: string) =>
  Effect.gen(function*() {
    const { sets, status } = yield* Effect.flatMap(Trust, (trust) => trust.status(directory))
    const files = status === "trusted" ? [] : sets.filter((item) => item.keys.length === 0).map(({ file }) => file)
    if (files.length === 0) return []
    const [are, them] = files.length === 1 ? ["is", "it"] : ["are", "them"]
    return [
      `${files.join(", ")} ${are} not trusted, so what is in ${them} has no effect (--trust takes it all for this run)`
    ]
  }).pipe(Effect.orElseSucceed((): ReadonlyArray<string> => []))
