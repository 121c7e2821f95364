/**
 * `{env:NAME}` and `{file:path}` inside the text values of a trusted settings file.
 *
 * A file's path is relative to the settings file, `~/` is the home folder, one newline at its end is dropped. A variable
 * that is not set makes the member that names it absent (a key without a value is no key), with a warning; inside an array,
 * where leaving out would shift the rest, it is an error, and so is a file that cannot be read. What comes out may be a
 * secret: it never gets into an error or a warning.
 */
import * as Effect from "effect/Effect"
import * as os from "node:os"
import * as path from "node:path"
import type { JsonValue, Path } from "../json/index.ts"
import { type SettingsDocument, settingsError } from "./document.ts"
import type { SettingsError } from "./error.ts"
import { readRegularFile } from "./files.ts"

const pattern = /\{(env|file):([^{}]+)\}/g

/** True if the text names a variable or a file. */
export const isSubstituted = (text: string): boolean => new RegExp(pattern.source).test(text)

export interface Substituted {
  readonly value: JsonValue
  readonly warnings: ReadonlyArray<string>
}

const absent = Symbol("absent")

export const substitute = Effect.fnUntraced(function*(
  document: SettingsDocument,
  variable: (name: string) => Effect.Effect<string | null>
): Effect.fn.Return<Substituted, SettingsError> {
  const warnings: Array<string> = []

  const text = Effect.fnUntraced(
    function*(value: string, at: Path): Effect.fn.Return<string | typeof absent, SettingsError> {
      const where = { file: document.file, line: document.lineOf(at), path: at }
      let out = ""
      let end = 0
      for (const match of value.matchAll(pattern)) {
        const [whole, kind, name] = match
        if (kind === undefined || name === undefined) continue
        out += value.slice(end, match.index)
        end = match.index + whole.length
        if (kind === "env") {
          const found = yield* variable(name)
          if (found === null || found === "") {
            if (typeof at.at(-1) === "number") {
              return yield* settingsError("invalid_value", where, `the environment variable ${name} is not set`)
            }
            warnings.push(
              settingsError(
                "invalid_value",
                where,
                `the environment variable ${name} is not set, so this counts as absent`
              ).message
            )
            return absent
          }
          out += found
        } else {
          const named = name.startsWith("~/") ? path.join(os.homedir(), name.slice(2)) : name
          const target = path.resolve(path.dirname(document.file), named)
          const content = yield* Effect.mapError(
            readRegularFile(target),
            (why) => settingsError("unreadable", where, `cannot read ${target}: ${why.reason}`)
          )
          if (content === null) return yield* settingsError("unreadable", where, `there is no file ${target}`)
          out += content.replace(/\r?\n$/, "")
        }
      }
      return out + value.slice(end)
    }
  )

  const walk = (value: JsonValue, at: Path): Effect.Effect<JsonValue | typeof absent, SettingsError> => {
    if (typeof value === "string") return isSubstituted(value) ? text(value, at) : Effect.succeed(value)
    if (typeof value !== "object" || value === null) return Effect.succeed(value)
    return Effect.gen(function*() {
      if (Array.isArray(value)) {
        const out: Array<JsonValue> = []
        for (const [index, item] of value.entries()) {
          const next = yield* walk(item, [...at, index])
          if (next !== absent) out.push(next)
        }
        return out
      }
      const out: Record<string, JsonValue> = {}
      for (const [name, member] of Object.entries(value)) {
        const next = yield* walk(member, [...at, name])
        if (next !== absent) out[name] = next
      }
      return out
    })
  }

  const value = yield* walk(document.value, [])
  return { value: value === absent ? {} : value, warnings }
})
