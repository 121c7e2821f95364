import { makeProviderRegistry, type ModelRef, ProviderRegistry } from "@bezel/core/model"
import type { SettingsKey, SettingsReader } from "@bezel/core/settings"
import { describe, expect, it } from "@effect/vitest"
import { ConfigProvider, Effect, Redacted, Result, Schema, Scope } from "effect"
import { ModelSetting, ProvidersSetting } from "../../../packages/plugins/src/providers/contract.ts"
import { session } from "../../../packages/plugins/src/providers/session.ts"
import { temporaryFolder } from "../accounts/authorization-server.ts"
import { collect, server, textOf } from "./support.ts"

const decode = <A>(key: SettingsKey<A>, value: unknown) =>
  Schema.decodeUnknownResult(key.schema, { onExcessProperty: "error" })(value)

const decoded = <A>(key: SettingsKey<A>, value: unknown): A => Result.getOrThrow(decode(key, value))

const reader = (values: { readonly [name: string]: unknown }): SettingsReader => ({
  get: (key) => Object.hasOwn(values, key.name) ? decoded(key, values[key.name]) : key.default,
  skipped: [],
  sources: [],
  warnings: []
})

/** A location's registry with this plugin alone, under these settings and this environment. */
const registry = (
  settings: { readonly [name: string]: unknown } = {},
  environment: { readonly [name: string]: string } = {}
) =>
  Effect.gen(function*() {
    const providers = yield* ProviderRegistry
    const scope = yield* Effect.scope
    const folder = yield* temporaryFolder
    yield* session({
      options: { configDirectory: folder, cacheDirectory: folder },
      settings: reader(settings),
      provide: () => Effect.void,
      provider: {
        transform: (change) =>
          providers.contributions.transform({ plugin: "bezel.providers", version: "1", order: 0 }, change).pipe(
            Effect.provideService(Scope.Scope, scope)
          ),
        reload: providers.contributions.reload,
        list: Effect.succeed([])
      }
    }).pipe(Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromUnknown(environment)))
    expect(yield* providers.contributions.faults).toEqual([])
    return providers
  })

const run = <A, E>(body: Effect.Effect<A, E, ProviderRegistry | Scope.Scope>) =>
  Effect.scoped(body).pipe(Effect.provideServiceEffect(ProviderRegistry, makeProviderRegistry))

const problem = (providers: ProviderRegistry["Service"], ref: ModelRef) =>
  Effect.map(Effect.flip(providers.resolve(ref)), (error) => error.message)

describe("the providers of a location", () => {
  it.effect("without a key and without settings work offline", () =>
    run(Effect.gen(function*() {
      const providers = yield* registry()
      const model = yield* providers.resolve(null)
      expect(model.info).toMatchObject({ provider: "bezel", model: "offline" })
      expect(textOf((yield* collect(model)).parts)).toContain("ANTHROPIC_API_KEY")
      expect(yield* problem(providers, { provider: "anthropic", model: "claude-sonnet-5-5" })).toContain(
        "store one with bezel auth set anthropic, or set ANTHROPIC_API_KEY"
      )
      expect(yield* problem(providers, { provider: "openai", model: "x" })).toContain("set OPENAI_API_KEY")
      expect(yield* problem(providers, { provider: "bezel", model: "oflline" })).toContain("did you mean offline?")
      expect(yield* problem(providers, { provider: "antropic", model: "x" })).toContain("did you mean anthropic?")
    })))

  it.effect("use a key of the environment, and say so to who talks to the offline model", () =>
    run(Effect.gen(function*() {
      const providers = yield* registry({}, { OPENAI_API_KEY: "k", ANTHROPIC_API_KEY: " " })
      expect((yield* providers.resolve({ provider: "openai", model: "some/new-model" })).info.model).toBe(
        "some/new-model"
      )
      expect(yield* problem(providers, { provider: "anthropic", model: "claude-sonnet-5-5" })).toContain(
        "no key is set"
      )
      expect(textOf((yield* collect(yield* providers.resolve(null))).parts)).toContain("PROVIDER is openai")
    })))

  it.live("of the environment are reached at the base URL that it names", () =>
    run(Effect.gen(function*() {
      const { requests, url } = yield* server({ text: "one" }, { text: "two" })
      const providers = yield* registry({}, { OPENAI_BASE_URL: url, ANTHROPIC_BASE_URL: url.replace("/v1", "/") })
      expect(textOf((yield* collect(yield* providers.resolve({ provider: "openai", model: "m" }))).parts)).toBe("one")
      expect(textOf((yield* collect(yield* providers.resolve({ provider: "anthropic", model: "m" }))).parts)).toBe(
        "two"
      )
      expect(requests.map((request) => request.path)).toEqual(["/v1/chat/completions", "/v1/messages"])
    })))

  it.live("of the settings are reached where and as they say", () =>
    run(Effect.gen(function*() {
      const { requests, url } = yield* server({ text: "hello" })
      const providers = yield* registry({
        model: "local/qwen",
        providers: {
          local: {
            package: "@ai-sdk/openai-compatible",
            options: { baseURL: url, apiKey: "abc", headers: { "x-a": "b" } },
            models: { qwen: { name: "Qwen", contextWindow: 32768, maxOutput: 4096, reasoning: false, images: false } }
          }
        }
      })
      const model = yield* providers.resolve(null)
      expect(model.info).toEqual({
        provider: "local",
        model: "qwen",
        name: "Qwen",
        contextWindow: 32768,
        maxOutput: 4096,
        reasoning: false,
        images: false,
        cost: null
      })
      expect(textOf((yield* collect(model)).parts)).toBe("hello")
      expect(requests[0]?.headers).toMatchObject({ authorization: "Bearer abc", "x-a": "b" })
      expect(requests[0]?.body).toMatchObject({ model: "qwen", max_tokens: 4096 })
      expect(yield* problem(providers, { provider: "local", model: "qwem" })).toContain("did you mean qwen?")
    })))

  it.effect("take what settings change of a built-in one, and keep the rest", () =>
    run(Effect.gen(function*() {
      const providers = yield* registry({
        providers: {
          anthropic: { options: { apiKey: "k" }, models: { "claude-own": { cost: { input: 1, output: 2 } } } }
        }
      })
      expect((yield* providers.resolve({ provider: "anthropic", model: "claude-own" })).info.cost).toEqual({
        input: 1,
        output: 2,
        cacheRead: 1,
        cacheWrite: 1
      })
      expect((yield* providers.list).some((one) => one.info.model === "claude-sonnet-5-5")).toBe(true)
    })))

  it.effect("that cannot be used as set up say why", () =>
    run(Effect.gen(function*() {
      const providers = yield* registry({
        providers: { nowhere: {}, odd: { package: "@ai-sdk/mistral", options: { apiKey: "k" } } }
      })
      expect(yield* problem(providers, { provider: "nowhere", model: "x" })).toContain(
        "providers.nowhere.options.baseURL"
      )
      expect(yield* problem(providers, { provider: "odd", model: "x" })).toContain("@ai-sdk/mistral")
    })))

  it.effect("whose default model does not exist refuse it by name", () =>
    run(Effect.gen(function*() {
      const providers = yield* registry({ model: "nobody/x" })
      expect((yield* Effect.flip(providers.resolve(null))).message).toContain('There is no provider "nobody"')
    })))
})

describe("the settings of providers", () => {
  it("are read strictly", () => {
    const wrong: ReadonlyArray<unknown> = [
      { local: { modles: {} } },
      { local: { options: { baseUrl: "http://x" } } },
      { local: { options: { baseURL: "127.0.0.1:8080" } } },
      { local: { options: { baseURL: "ftp://x" } } },
      { local: { options: { apiKey: 5 } } },
      { local: { models: { a: { contextWindow: -1 } } } },
      { local: { models: { a: { contextWindow: 1.5 } } } },
      { local: { models: { a: { cost: { input: -1, output: 0 } } } } },
      { bezel: {} },
      { "a/b": {} },
      []
    ]
    for (const value of wrong) {
      expect(Result.isFailure(decode(ProvidersSetting, value)), JSON.stringify(value)).toBe(true)
    }
    expect(Result.isSuccess(decode(ProvidersSetting, { local: { options: { baseURL: "https://x/v1" } } }))).toBe(true)
  })

  it("keep keys and headers redacted", () => {
    const { local } = decoded(ProvidersSetting, {
      local: { options: { apiKey: "secret-1", headers: { a: "secret-2" } } }
    })
    expect(JSON.stringify(local)).not.toContain("secret")
    expect(local?.options?.apiKey === undefined ? null : Redacted.value(local.options.apiKey)).toBe("secret-1")
  })

  it("name a model as provider/model", () => {
    for (const good of ["bezel/offline", "router/meta/llama-3", null]) {
      expect(Result.isSuccess(decode(ModelSetting, good))).toBe(true)
    }
    for (const bad of ["offline", "/x", "x/", "", 5]) expect(Result.isFailure(decode(ModelSetting, bad))).toBe(true)
  })

  it("of a project that nobody trusts do not take effect", () => {
    expect([ModelSetting.untrusted, ProvidersSetting.untrusted]).toEqual(["drop", "drop"])
  })
})
