/** The user's themes: `themes/NAME.json` in the config folder, read in bounds. */
import { readRegularFile } from "@bezel/core/settings"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as fs from "node:fs/promises"
import * as path from "node:path"
import { ThemeFile, type UserTheme } from "./contract.ts"

const maxThemes = 100
const decode = Schema.decodeUnknownResult(Schema.fromJsonString(ThemeFile), {
  onExcessProperty: "error",
  errors: "first"
})

export const readThemes = Effect.fnUntraced(function*(configDirectory: string) {
  const folder = path.join(configDirectory, "themes")
  const names = yield* Effect.promise(() => fs.readdir(folder).catch((): Array<string> => []))
  const themes: Array<UserTheme> = []
  const problems: Array<string> = []
  for (const name of names.filter((one) => one.endsWith(".json")).sort().slice(0, maxThemes)) {
    const file = path.join(folder, name)
    const id = name.slice(0, -".json".length)
    if (!/^[\w.-]{1,64}$/.test(id)) {
      problems.push(`${file} is no theme: its name may have letters, digits, ".", "_" and "-"`)
      continue
    }
    const text = yield* Effect.result(readRegularFile(file, 64 * 1024))
    if (Result.isFailure(text)) {
      problems.push(`${file} is no theme: ${text.failure.reason}`)
      continue
    }
    const theme = decode(text.success ?? "")
    if (Result.isFailure(theme)) {
      problems.push(`${file} is no theme: ${String(theme.failure).replace(/\s*\n\s*/g, " ").slice(0, 300)}`)
      continue
    }
    const colors = Object.entries(theme.success.colors).flatMap(([role, color]) =>
      color === undefined ? [] : [[role, color] as const]
    )
    themes.push({ id, colors: Object.fromEntries(colors) })
  }
  return { themes, problems }
})
