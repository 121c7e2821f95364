import { makeProviderRegistry, type ModelInfo, type Provider, type ProviderRegistry } from "@bezel/core/model"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Exit, type Scope } from "effect"
import { scriptedModel } from "../../../packages/core/src/testing/model.ts"

const plugin = (name: string, order = 0) => ({ plugin: name, version: "1", order })

const info = (provider: string, model: string): ModelInfo => ({
  provider,
  model,
  name: model,
  contextWindow: null,
  maxOutput: null,
  reasoning: false,
  images: false,
  cost: null
})

const provider = (id: string, models: ReadonlyArray<string>, change: Partial<Provider> = {}): Provider => ({
  id,
  name: id,
  models: models.map((model) => info(id, model)),
  openEnded: false,
  availability: { ready: true },
  open: (model) => Effect.succeed(scriptedModel([], { provider: id, model })),
  ...change
})

const withRegistry = <A, E>(body: (registry: ProviderRegistry["Service"]) => Effect.Effect<A, E, Scope.Scope>) =>
  Effect.scoped(Effect.flatMap(makeProviderRegistry, body))

const messageOf = (registry: ProviderRegistry["Service"], provider: string, model: string) =>
  Effect.map(Effect.flip(registry.resolve({ provider, model })), (error) => {
    expect(error).toMatchObject({ kind: "unknown_model", retryable: false, retryAfterMs: null })
    return error.message
  })

describe("the provider registry", () => {
  it.effect("opens a model that a plugin contributes, by its full name", () =>
    withRegistry(Effect.fn(function*(registry) {
      yield* registry.contributions.transform(
        plugin("a"),
        (draft) => draft.set("router", provider("router", ["meta/llama-3"]))
      )
      const model = yield* registry.resolve({ provider: "router", model: "meta/llama-3" })
      expect(model.info).toMatchObject({ provider: "router", model: "meta/llama-3" })
      expect((yield* registry.list).map((one) => one.info.model)).toEqual(["meta/llama-3"])
      expect((yield* registry.table).plugins.get("router")).toBe("a")
    })))

  it.effect("gives the default model to who names none: the last that was said, else bezel/offline", () =>
    withRegistry(Effect.fn(function*(registry) {
      yield* registry.contributions.transform(plugin("a", 0), (draft) => {
        draft.set("bezel", provider("bezel", ["offline"]))
        draft.set("local", provider("local", ["a", "b"]))
      })
      expect((yield* registry.resolve(null)).info).toMatchObject({ provider: "bezel", model: "offline" })
      yield* registry.contributions.transform(
        plugin("c", 2),
        (draft) => draft.setDefault({ provider: "local", model: "b" })
      )
      yield* registry.contributions.transform(
        plugin("b", 1),
        (draft) => draft.setDefault({ provider: "local", model: "a" })
      )
      expect((yield* registry.resolve(null)).info.model).toBe("b")
    })))

  it.effect("refuses what does not exist by name, with what does", () =>
    withRegistry(Effect.fn(function*(registry) {
      yield* registry.contributions.transform(plugin("a"), (draft) => {
        draft.set("local", provider("local", ["qwen", "llama"]))
        draft.set(
          "away",
          provider("away", ["x"], { availability: { ready: false, reason: "no key is set: set AWAY_KEY" } })
        )
      })
      expect(yield* messageOf(registry, "locall", "qwen")).toBe(
        'There is no provider "locall" for the model locall/qwen; did you mean local?'
      )
      expect(yield* messageOf(registry, "zzzzzz", "qwen")).toContain("there are local, away")
      expect(yield* messageOf(registry, "local", "qwn")).toBe(
        'There is no model "qwn" at the provider "local"; did you mean qwen?'
      )
      expect(yield* messageOf(registry, "local", "gpt-9000")).toContain("there are qwen, llama")
      expect(yield* messageOf(registry, "away", "x")).toBe(
        "The model away/x cannot be used: no key is set: set AWAY_KEY"
      )
      expect(yield* messageOf(registry, "", "")).toContain('There is no provider ""')
      expect(yield* messageOf(registry, "__proto__", "constructor")).toContain("There is no provider")
    })))

  it.effect("hands any model id to a provider that knows more than it lists", () =>
    withRegistry(Effect.fn(function*(registry) {
      yield* registry.contributions.transform(
        plugin("a"),
        (draft) => draft.set("open", provider("open", [], { openEnded: true }))
      )
      expect((yield* registry.resolve({ provider: "open", model: "anything/at:all" })).info.model).toBe(
        "anything/at:all"
      )
    })))

  it.effect("rebuilds without what a plugin contributed once that is gone", () =>
    withRegistry(Effect.fn(function*(registry) {
      yield* registry.contributions.transform(plugin("a"), (draft) => draft.set("local", provider("local", ["old"])))
      const later = yield* registry.contributions.transform(plugin("b", 1), (draft) => {
        draft.update("local", (one) => ({ ...one, models: [info("local", "new")] }))
        draft.set("more", provider("more", ["x"]))
      })
      expect((yield* registry.list).map((one) => one.info.model)).toEqual(["new", "x"])
      yield* later.unregister
      expect((yield* registry.list).map((one) => one.info.model)).toEqual(["old"])
    })))

  it.effect("leaves out a transform that misuses its draft, and keeps the others", () =>
    withRegistry(Effect.fn(function*(registry) {
      yield* registry.contributions.transform(plugin("good"), (draft) => draft.set("local", provider("local", ["a"])))
      const misuses: ReadonlyArray<Parameters<typeof registry.contributions.transform>[1]> = [
        (draft) => draft.remove("nobody"),
        (draft) => draft.update("nobody", (one) => one),
        (draft) => draft.set("a b", provider("a b", [])),
        (draft) => draft.set("", provider("", [])),
        (draft) => draft.set("x", provider("y", [])),
        (draft) => draft.set("x", { ...provider("x", []), models: [info("local", "a")] })
      ]
      for (const misuse of misuses) yield* registry.contributions.transform(plugin("bad", 1), misuse)
      expect((yield* registry.list).map((one) => one.info.provider)).toEqual(["local"])
      expect((yield* registry.contributions.faults).map((fault) => fault.plugin)).toEqual(misuses.map(() => "bad"))
    })))

  it.effect("fails with what the provider says when it cannot open a model", () =>
    withRegistry(Effect.fn(function*(registry) {
      yield* registry.contributions.transform(
        plugin("a"),
        (draft) => draft.set("broken", provider("broken", ["x"], { open: () => Effect.die(new Error("bug")) }))
      )
      const exit = yield* Effect.exit(registry.resolve({ provider: "broken", model: "x" }))
      expect(Exit.isFailure(exit)).toBe(true)
    })))
})
