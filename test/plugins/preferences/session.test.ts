/** The two layers of a person's settings: whole for plugins of the host, narrow for who is at a client. */
import { Plugin } from "@bezel/core/host"
import { RemoteService } from "@bezel/core/service"
import { testSessionHost } from "@bezel/core/testing"
import { Preferences, UserSettings } from "@bezel/plugins/preferences"
import { session } from "@bezel/plugins/preferences/session"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Schema, Stream } from "effect"
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { temporaryFolder } from "../accounts/authorization-server.ts"

const secret = "k-canary-7"
const written = `{
  // mine
  "theme": "dark",
  "permissions": { "bash": "deny" },
  "providers": { "p": { "package": "x", "options": { "apiKey": "${secret}" } } }
}
`

const world = Effect.gen(function*() {
  const config = join(yield* temporaryFolder, "config")
  mkdirSync(config)
  const file = join(config, "bezel.jsonc")
  writeFileSync(file, written)
  let seen: unknown = null
  const reads = Plugin.define({
    id: "test.reads",
    session: (ctx) =>
      Effect.gen(function*() {
        const settings = yield* ctx.use(UserSettings)
        yield* ctx.onActivate(Effect.gen(function*() {
          seen = yield* settings.read
        }))
      })
  })
  const host = yield* testSessionHost([Plugin.define({ id: "bezel.preferences", session }), reads], {
    entries: { "bezel.preferences": { options: { configDirectory: config }, required: true } }
  })
  return { host, client: yield* host.connect(), file, text: () => readFileSync(file, "utf8"), seen: () => seen }
})

/** What a client may try that has a contract of its own making. */
class WidePreferences extends RemoteService.make("bezel.preferences")({
  methods: {
    set: { payload: Schema.Record(Schema.String, Schema.Json), error: Schema.Json },
    read: { success: Schema.Json, error: Schema.Json }
  }
}) {}

class RemoteUserSettings extends RemoteService.make("bezel.user-settings")({
  methods: { read: { success: Schema.Json } }
}) {}

describe("a person's settings", () => {
  it.live("are whole for a plugin of the host, and the theme and the model for a client, which may change those", () =>
    Effect.gen(function*() {
      const { client, seen, text } = yield* world
      expect(seen()).toMatchObject({ permissions: { bash: "deny" }, providers: { p: { options: { apiKey: secret } } } })
      const preferences = yield* client.use(Preferences)
      yield* preferences.ready
      expect(preferences.current.value).toEqual({ theme: "dark", model: null })
      yield* preferences.set({ theme: "light", model: "p/m" })
      yield* preferences.current.changes.pipe(Stream.filter(({ model }) => model === "p/m"), Stream.runHead)
      expect(preferences.current.value).toEqual({ theme: "light", model: "p/m" })
      expect(text()).toContain("// mine")
      yield* preferences.set({ theme: null, model: null })
      expect(text()).not.toContain("light")
    }).pipe(Effect.scoped))

  it.live("that were changed by hand are seen by who comes, and by who is there then", () =>
    Effect.gen(function*() {
      const { client, file, host } = yield* world
      const preferences = yield* client.use(Preferences)
      yield* preferences.ready
      expect(preferences.current.value?.theme).toBe("dark")
      writeFileSync(file, written.replace('"dark"', '"light"'))
      const later = yield* Effect.flatMap(host.connect(), (connection) => connection.use(Preferences))
      for (const one of [later, preferences]) {
        yield* one.current.changes.pipe(Stream.filter(({ theme }) => theme === "light"), Stream.runHead)
        expect(one.current.value?.theme).toBe("light")
      }
    }).pipe(Effect.scoped))

  it.live("can be neither read nor changed beyond that from outside, whatever is asked for by name", () =>
    Effect.gen(function*() {
      const { client, file, text } = yield* world
      const wide = yield* client.use(WidePreferences)
      yield* Effect.exit(wide.set({ permissions: { "*": "allow" } }))
      yield* Effect.exit(wide.set({ theme: { color: 1 } }))
      const unknown = yield* Effect.flip(wide.read())
      const whole = yield* client.use(RemoteUserSettings)
      const local = yield* Effect.flip(whole.read())
      expect(text()).toBe(written)
      expect(existsSync(file)).toBe(true)
      expect(unknown).toMatchObject({ code: "unknown_member" })
      expect(local).toMatchObject({ code: "unknown_service" })
      expect(JSON.stringify([unknown, local])).not.toContain(secret)
    }).pipe(Effect.scoped))
})
