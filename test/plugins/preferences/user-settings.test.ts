/** Changing the user's settings file, and the user's themes. */
import { it } from "@effect/vitest"
import { Effect } from "effect"
import { existsSync, lstatSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect } from "vitest"
import { makeUserSettings } from "../../../packages/plugins/src/preferences/index.ts"
import { readThemes } from "../../../packages/plugins/src/preferences/themes.ts"
import { temporaryFolder } from "../accounts/authorization-server.ts"

const place = Effect.map(temporaryFolder, (folder) => {
  const config = join(folder, "config")
  const file = join(config, "bezel.jsonc")
  return {
    folder,
    config,
    file,
    settings: makeUserSettings(config),
    write: (text: string) => {
      mkdirSync(config, { recursive: true })
      writeFileSync(file, text)
    },
    text: () => readFileSync(file, "utf8")
  }
})

describe("the user's settings file", () => {
  it.effect("keeps comments, order and line ends when one setting changes", () =>
    Effect.gen(function*() {
      const { settings, text, write } = yield* place
      write('// mine\r\n{\r\n  "theme": "dark", // for the night\r\n  "model": "bezel/offline",\r\n}\r\n')
      yield* settings.set("theme", "light")
      expect(text()).toBe(
        '// mine\r\n{\r\n  "theme": "light", // for the night\r\n  "model": "bezel/offline",\r\n}\r\n'
      )
      yield* settings.set("model", undefined)
      expect(text()).toBe('// mine\r\n{\r\n  "theme": "light", // for the night\r\n}\r\n')
      write('{ "theme": "a", /* x */ "model": "b/c" }')
      yield* settings.set("model", undefined)
      yield* settings.set("theme", undefined)
      expect(text()).toContain("/* x */")
      yield* settings.set("theme", "light")
      expect(yield* settings.read).toEqual({ theme: "light" })
    }).pipe(Effect.scoped))

  it.effect("is made, readable by this user only, when there is none, and not for taking out what is not there", () =>
    Effect.gen(function*() {
      const { config, file, settings } = yield* place
      yield* settings.set("theme", undefined)
      expect(existsSync(file)).toBe(false)
      yield* settings.set("theme", "light")
      expect(yield* settings.read).toEqual({ theme: "light" })
      expect(statSync(file).mode & 0o777).toBe(0o600)
      expect(statSync(config).mode & 0o777).toBe(0o700)
    }).pipe(Effect.scoped))

  it.effect("that cannot be read is told and left as it is", () =>
    Effect.gen(function*() {
      const { file, settings, text, write } = yield* place
      for (const broken of ['{ "theme": ', "[]", '"theme"', "{ theme: 1 }"]) {
        write(broken)
        const { message } = yield* Effect.flip(settings.set("theme", "light"))
        expect(message).toBe(`The settings in ${file} cannot be read as JSON with comments; mend the file first.`)
        expect(text()).toBe(broken)
      }
    }).pipe(Effect.scoped))

  it.effect("that is a link elsewhere stays one", () =>
    Effect.gen(function*() {
      const { config, file, folder, settings } = yield* place
      mkdirSync(config)
      writeFileSync(join(folder, "dotfiles.jsonc"), "{}")
      symlinkSync(join(folder, "dotfiles.jsonc"), file)
      yield* settings.set("theme", "light")
      expect(lstatSync(file).isSymbolicLink()).toBe(true)
      expect(readFileSync(join(folder, "dotfiles.jsonc"), "utf8")).toContain("light")
    }).pipe(Effect.scoped))

  it.effect("takes many changes at once without losing one", () =>
    Effect.gen(function*() {
      const { settings } = yield* place
      const keys = Array.from({ length: 20 }, (_, index) => `k${index}`)
      yield* Effect.forEach(keys, (key) => settings.set(key, 1), { concurrency: "unbounded" })
      expect(Object.keys(yield* settings.read).sort()).toEqual(keys.sort())
    }).pipe(Effect.scoped))
})

describe("the user's themes", () => {
  it.effect("are the files that are themes; of the others each is told", () =>
    Effect.gen(function*() {
      const { config } = yield* place
      expect(yield* readThemes(config)).toEqual({ themes: [], problems: [] })
      mkdirSync(join(config, "themes"), { recursive: true })
      const write = (name: string, text: string) => writeFileSync(join(config, "themes", name), text)
      write("sea.json", '{ "colors": { "accent": "#0aF0af", "muted": 8 } }')
      write("a.json", '{ "colors": { "accent": "blue" } }')
      write("b.json", '{ "colors": { "sky": 3 } }')
      write("c.json", "{")
      write("d\u001b[2J.json", '{ "colors": {} }')
      write("e.json", "x".repeat(100_000))
      write("notes.txt", "not looked at")
      mkdirSync(join(config, "themes", "f.json"))
      const { problems, themes } = yield* readThemes(config)
      expect(themes).toEqual([{ id: "sea", colors: { accent: "#0aF0af", muted: 8 } }])
      expect(problems).toHaveLength(6)
      expect(problems[0]).toMatch(/a\.json is no theme: .*Expected a colour like #7dcfff/)
      expect(problems[1]).toMatch(/b\.json is no theme: .*sky/)
    }).pipe(Effect.scoped))
})
