/** What can be connected, how a key is asked for, and what the settings say afterwards. */
import { Plugin } from "@bezel/core/host"
import type { SettingsKey, SettingsReader } from "@bezel/core/settings"
import { emptySettings, temporaryDirectory, testPresentation, testSessionHost } from "@bezel/core/testing"
import { session as accounts } from "@bezel/plugins/accounts/session"
import { Connect, ProviderKeyRequest } from "@bezel/plugins/connect/contract"
import { session as connect } from "@bezel/plugins/connect/session"
import { session as preferences } from "@bezel/plugins/preferences/session"
import { ModelSetting, ProvidersSetting } from "@bezel/plugins/providers/contract"
import { session as providers } from "@bezel/plugins/providers/session"
import { describe, expect, it } from "@effect/vitest"
import { ConfigProvider, Effect, Option, Redacted, Stream } from "effect"
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { createServer } from "node:net"
import { join } from "node:path"
import { startModelServer } from "../../../packages/core/src/testing/model-server.ts"

interface Given {
  readonly environment?: { readonly [name: string]: string }
  readonly settings?: { readonly [key: string]: unknown }
  readonly servers?: ReadonlyArray<{ readonly id: string; readonly name: string; readonly url: string }>
  /** What the user's `bezel.jsonc` says. */
  readonly file?: string
  readonly without?: ReadonlyArray<string>
  /** What a person pastes, in turn; then they give up. */
  readonly pastes?: ReadonlyArray<string>
}

const reader = (values: { readonly [key: string]: unknown }): SettingsReader => ({
  ...emptySettings,
  get: <A>(key: SettingsKey<A>): A => (values[key.name] ?? key.default) as A
})

const world = (given: Given = {}) =>
  Effect.gen(function*() {
    const folder = yield* temporaryDirectory
    const config = join(folder, "config")
    const file = join(config, "bezel.jsonc")
    if (given.file !== undefined) {
      mkdirSync(config)
      writeFileSync(file, given.file)
    }
    const all = { accounts, connect, preferences, providers }
    const options = {
      providers: { configDirectory: config, cacheDirectory: folder },
      accounts: { directory: folder },
      preferences: { configDirectory: config },
      connect: { servers: [...given.servers ?? []] }
    }
    const order = (["providers", "accounts", "preferences", "connect"] as const).filter((name) =>
      given.without?.includes(name) !== true
    )
    const host = yield* testSessionHost(
      order.map((name) => Plugin.define({ id: `bezel.${name}`, session: all[name] })),
      {
        settings: reader(given.settings ?? {}),
        entries: Object.fromEntries(order.map((name) => [`bezel.${name}`, { required: true, options: options[name] }]))
      }
    ).pipe(
      Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromUnknown(given.environment ?? {}))
    )
    const { id: sessionID } = yield* host.session.create({ title: "t" })
    const asked: Array<string | null> = []
    const pastes = [...given.pastes ?? []]
    const connection = yield* testPresentation(host, {
      "test.person": (ctx) =>
        ctx.interactions.handle(ProviderKeyRequest, ({ problem }) => {
          asked.push(problem)
          const paste = pastes.shift()
          return Effect.succeed(paste === undefined ? "declined" as const : { key: Redacted.make(paste) })
        })
    }, sessionID)
    const service = yield* connection.use(Connect)
    yield* service.ready
    return {
      asked,
      credentials: join(folder, "credentials.json"),
      file,
      said: () => JSON.parse(readFileSync(file, "utf8")) as unknown,
      service,
      sessionID
    }
  })

const modelServer = (models: ReadonlyArray<string>, key: string | null = null) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const server = await startModelServer()
      server.always(({ headers }) =>
        key !== null && headers.authorization !== `Bearer ${key}`
          ? { status: 403, json: null }
          : { status: 200, json: { data: models.map((id) => ({ id })) } }
      )
      return server
    }),
    (server) => Effect.promise(server.close)
  )

/** Takes connections and says nothing. */
const silentServer = Effect.acquireRelease(
  Effect.promise(async () => {
    const sockets = new Set<{ destroy: () => void }>()
    const server = createServer((socket) => sockets.add(socket.on("error", () => {})))
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    const address = server.address()
    return { server, sockets, port: typeof address === "object" && address !== null ? address.port : 0 }
  }),
  ({ server, sockets }) =>
    Effect.sync(() => {
      for (const socket of sockets) socket.destroy()
      server.close()
    })
)

describe("what can be connected", () => {
  it.live("begins with what is set and what answers on this machine, and says how each was found", () =>
    Effect.gen(function*() {
      const { url } = yield* modelServer(["a", "b"])
      const empty = yield* modelServer([])
      const silent = yield* silentServer
      const { service } = yield* world({
        environment: { GEMINI_API_KEY: "k", OPENAI_API_KEY: " " },
        settings: { providers: { own: { options: { baseURL: "http://127.0.0.1:9/v1" } } } },
        servers: [
          { id: "none", name: "None", url: "http://127.0.0.1:9/v1" },
          { id: "quiet", name: "Quiet", url: `http://127.0.0.1:${silent.port}/v1` },
          { id: "empty", name: "Empty", url: empty.url },
          { id: "own", name: "Own", url },
          { id: "here", name: "Here", url }
        ]
      })
      const since = performance.now()
      const found = (yield* service.find()).filter(({ provider }) => provider !== "test")
      expect(performance.now() - since).toBeLessThan(5_000)
      expect(found.map(({ found, provider, ready }) => [provider, ready, found])).toEqual([
        ["gemini", true, "GEMINI_API_KEY is set"],
        ["own", true, "set up already"],
        ["here", true, `answers on ${new URL(url).host}`],
        ["empty", true, `answers on ${new URL(empty.url).host}, has no models`],
        ["anthropic", false, "takes a key"],
        ["openai", false, "takes a key"],
        ["openrouter", false, "takes a key"],
        ["mistral", false, "takes a key"],
        ["deepseek", false, "takes a key"],
        ["groq", false, "takes a key"],
        ["xai", false, "takes a key"]
      ])
      expect((yield* Effect.flip(service.models({ provider: "empty" }))).message).toBe(
        "Empty answers, but has no models yet."
      )
      expect((yield* Effect.flip(service.models({ provider: "own" }))).message).toContain("could not be reached")
      expect((yield* Effect.flip(service.models({ provider: "mistral" }))).message).toMatch(
        /no key is set: .*MISTRAL_API_KEY\.$/
      )
      expect((yield* Effect.flip(service.models({ provider: "\u001b[2J" }))).message).toContain("There is no provider")
    }).pipe(Effect.scoped))

  it.live("is a provider from when it is kept, and the default where none is set", () =>
    Effect.gen(function*() {
      const { url } = yield* modelServer(["a"])
      const { file, service } = yield* world({
        environment: { GEMINI_API_KEY: "k" },
        servers: [{ id: "here", name: "Here", url }],
        file: '{\n  // mine\n  "providers": {\n    // of the office\n    "own": { "name": "Own" }\n  }\n}\n'
      })
      const guidance = (needed: boolean) =>
        Effect.map(
          Stream.runHead(
            Stream.filter(service.guidance.changes, (now) => now.needed === needed && now.keys.length > 0)
          ),
          Option.getOrThrow
        )
      expect(yield* guidance(true)).toEqual({ needed: true, keys: ["GEMINI_API_KEY"] })
      yield* service.find()
      expect(yield* service.models({ provider: "here" })).toEqual([{ model: "a", name: "a" }])
      expect(yield* service.keep({ provider: "here", model: "a" })).toMatch(/bezel\.jsonc$/)
      expect((yield* guidance(false)).needed).toBe(false)
      const written = readFileSync(file, "utf8")
      expect(written).toMatch(/^\{\n {2}\/\/ mine\n {2}"providers": \{\n {4}\/\/ of the office\n {4}"own": /)
      expect(JSON.parse(written.replace(/\/\/ (?:mine|of the office)/g, ""))).toEqual({
        model: "here/a",
        providers: { own: { name: "Own" }, here: { name: "Here", options: { baseURL: url } } }
      })
      expect(yield* service.models({ provider: "here" })).toEqual([{ model: "a", name: "a" }])
    }).pipe(Effect.scoped))

  it.live("leaves a model that somebody has named, in the file or otherwise", () =>
    Effect.gen(function*() {
      const { url } = yield* modelServer(["a"])
      const servers = [{ id: "here", name: "Here", url }]
      const inFile = yield* world({ servers, file: '{ "model": "own/m" }' })
      yield* inFile.service.find()
      yield* inFile.service.keep({ provider: "here", model: "a" })
      expect(inFile.said()).toMatchObject({ model: "own/m", providers: { here: { options: { baseURL: url } } } })
      const elsewhere = yield* world({ servers, settings: { [ModelSetting.name]: "own/m" } })
      yield* elsewhere.service.find()
      yield* elsewhere.service.keep({ provider: "here", model: "a" })
      expect(elsewhere.said()).toEqual({ providers: { here: { name: "Here", options: { baseURL: url } } } })
    }).pipe(Effect.scoped))

  it.live("is used where it cannot be kept, which is said, and leaves a damaged file as it is", () =>
    Effect.gen(function*() {
      const { url } = yield* modelServer(["a"])
      const { file, service } = yield* world({ servers: [{ id: "here", name: "Here", url }], file: '{ "theme": ' })
      yield* service.find()
      expect((yield* Effect.flip(service.keep({ provider: "here", model: "a" }))).message).toMatch(
        /^It answers from now on, and could not be kept: .*mend the file first\.$/
      )
      expect(readFileSync(file, "utf8")).toBe('{ "theme": ')
    }).pipe(Effect.scoped))
})

describe("a key", () => {
  const gate = (url: string) => ({ [ProvidersSetting.name]: { gate: { name: "Gate", options: { baseURL: url } } } })

  it.live("is asked for until one is accepted, and stored for its owner alone", () =>
    Effect.gen(function*() {
      const { requests, url } = yield* modelServer(["a"], "right")
      const { asked, credentials, service, sessionID } = yield* world({
        settings: gate(url),
        pastes: ["two words", "  ", "wrong", " right\n"]
      })
      expect(yield* Effect.flip(service.models({ provider: "gate" }))).toMatchObject({
        message: "Gate asks for a key (status 403).",
        needsKey: true
      })
      expect(yield* service.askForKey({ provider: "gate", sessionID })).toBe(true)
      expect(asked).toEqual([
        null,
        "That is no key: it holds spaces, line ends or characters that no key has.",
        "Nothing was pasted.",
        "Gate does not accept the key (status 403)."
      ])
      // What is no key at all is not sent anywhere.
      expect(requests.map(({ headers }) => headers.authorization)).toEqual([undefined, "Bearer wrong", "Bearer right"])
      expect(yield* service.models({ provider: "gate" })).toEqual([{ model: "a", name: "a" }])
      expect(readFileSync(credentials, "utf8")).toContain('"right"')
      expect(statSync(credentials).mode & 0o777).toBe(0o600)
    }).pipe(Effect.scoped))

  it.live("that somebody does not give changes nothing", () =>
    Effect.gen(function*() {
      const { url } = yield* modelServer(["a"], "right")
      const { credentials, service, sessionID } = yield* world({ settings: gate(url), pastes: ["wrong"] })
      expect(yield* service.askForKey({ provider: "gate", sessionID })).toBe(false)
      expect(existsSync(credentials)).toBe(false)
    }).pipe(Effect.scoped))

  it.live("of the environment that is refused is not asked for again: another would not be used", () =>
    Effect.gen(function*() {
      const { url } = yield* modelServer(["a"], "right")
      const { service } = yield* world({ environment: { OPENAI_API_KEY: "wrong", OPENAI_BASE_URL: url } })
      expect(yield* Effect.flip(service.models({ provider: "openai" }))).toMatchObject({
        message: "OpenAI does not accept the key (status 403).",
        needsKey: false
      })
    }).pipe(Effect.scoped))

  it.live("cannot be stored without who keeps keys, which is said, and the choice holds without who keeps settings", () =>
    Effect.gen(function*() {
      const { url } = yield* modelServer(["a"], "right")
      const without = yield* world({ settings: gate(url), without: ["accounts", "preferences"], pastes: ["right"] })
      const { sessionID, service } = without
      expect((yield* Effect.flip(service.askForKey({ provider: "gate", sessionID }))).message).toContain(
        "bezel.accounts"
      )
      expect(yield* service.keep({ provider: "gate", model: "a" })).toBeNull()
    }).pipe(Effect.scoped))
})
