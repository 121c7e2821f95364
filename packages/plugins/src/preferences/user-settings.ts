/**
 * The user's `bezel.jsonc`, changed in place: one section at a time, comments and order kept, as a whole or not at all.
 *
 * A file that cannot be read as settings is never written: what a person has half typed is not ours to mend.
 */
import type { JsonValue } from "@bezel/core/json"
import { privateFolder } from "@bezel/core/location"
import { readRegularFile, writePrivateFile } from "@bezel/core/settings"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Semaphore from "effect/Semaphore"
import { applyEdits, findNodeAtLocation, modify, parse, type ParseError, parseTree } from "jsonc-parser"
import * as fs from "node:fs/promises"
import * as path from "node:path"
import { PreferencesError, type UserSettingsShape } from "./contract.ts"

const Section = Schema.Record(Schema.String, Schema.Json)

/** Takes a member out with the comma behind it, and nothing else: a comment beside it may be about something else. */
const without = (text: string, key: string): string => {
  const tree = parseTree(text, [], { allowTrailingComma: true })
  const member = tree === undefined ? undefined : findNodeAtLocation(tree, [key])?.parent
  if (member === undefined) return text
  const before = text.slice(0, member.offset).replace(/[ \t]+$/, "")
  const after = text.slice(member.offset + member.length).replace(/^[ \t]*,?/, "")
  return `${before.replace(/\r?\n$/, "")}${before.endsWith("\n") && !/^[ \t]*\r?\n/.test(after) ? "\n" : ""}${after}`
}

/** The settings file of a config folder. */
export const makeUserSettings = (configDirectory: string): UserSettingsShape => {
  const file = path.join(configDirectory, "bezel.jsonc")
  const one = Semaphore.makeUnsafe(1)
  const wrong = (message: string) => new PreferencesError({ message })

  const text = Effect.map(
    Effect.mapError(readRegularFile(file), ({ reason }) => wrong(`The settings in ${file} cannot be read: ${reason}.`)),
    (found) => found ?? ""
  )

  const parsed = (written: string): Effect.Effect<{ readonly [key: string]: JsonValue }, PreferencesError> => {
    if (written.trim() === "") return Effect.succeed({})
    const errors: Array<ParseError> = []
    const value: unknown = parse(written, errors, { allowTrailingComma: true })
    const decoded = errors.length === 0 ? Option.getOrNull(Schema.decodeUnknownOption(Section)(value)) : null
    return decoded === null
      ? Effect.fail(wrong(`The settings in ${file} cannot be read as JSON with comments; mend the file first.`))
      : Effect.succeed(decoded)
  }

  /** Writes the file as `edit` makes it of what is there; `null`: nothing is to be changed. */
  const change = (
    edit: (
      written: string,
      before: { readonly [key: string]: JsonValue },
      put: (path: ReadonlyArray<string>, value: JsonValue) => string
    ) => string | null
  ) =>
    one.withPermits(1)(Effect.gen(function*() {
      const written = yield* text
      const before = yield* parsed(written)
      const base = written.trim() === "" ? "{}\n" : written
      const formattingOptions = { insertSpaces: true, tabSize: 2, eol: base.includes("\r\n") ? "\r\n" : "\n" }
      const next = edit(
        base,
        before,
        (path, value) => applyEdits(base, modify(base, [...path], value, { formattingOptions }))
      )
      if (next === null) return
      yield* Effect.try({
        try: () => privateFolder(configDirectory),
        catch: () => wrong(`Cannot create the folder ${configDirectory} for settings.`)
      })
      // Who keeps settings elsewhere and links them here goes on with the link.
      const target = yield* Effect.promise(() => fs.realpath(file).catch(() => file))
      yield* Effect.mapError(
        writePrivateFile(target, next),
        ({ reason }) => wrong(`Cannot write the settings in ${file}: ${reason}.`)
      )
    }))

  return {
    file,
    read: Effect.flatMap(text, parsed),
    set: (key, value) =>
      change((written, before, put) =>
        value !== undefined ? put([key], value) : Object.hasOwn(before, key) ? without(written, key) : null
      ),
    setIn: (section, member, value) =>
      change((_, before, put) => {
        const now = Object.hasOwn(before, section) ? before[section] : undefined
        // A section that is none is not ours to mend: reading the settings says what is wrong with it.
        return typeof now === "object" && now !== null && !Array.isArray(now)
          ? put([section, member], value)
          : now === undefined
          ? put([section], { [member]: value })
          : null
      })
  }
}
