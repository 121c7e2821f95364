import { decodeManifest } from "@bezel/core/kernel"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"

describe("decodeManifest", () => {
  it.effect("takes a manifest and keeps its order", () =>
    Effect.gen(function*() {
      const manifest = yield* decodeManifest({
        plugins: [{ id: "b", required: true }, {
          id: "a",
          version: "1.0.0",
          options: { depth: 2 },
          grants: []
        }]
      })
      expect(manifest.plugins.map(({ id }) => id)).toEqual(["b", "a"])
    }))

  const message = (value: unknown) => Effect.map(Effect.flip(decodeManifest(value)), (error) => error.message)

  it.effect("refuses an unknown key with its path", () =>
    Effect.gen(function*() {
      const text = yield* message({ plugins: [{ id: "a" }, { id: "b", requird: true }] })
      expect(text).toContain("requird")
      expect(text).toContain("1")
    }))

  it.effect("refuses a duplicate id with both places", () =>
    Effect.gen(function*() {
      expect(yield* message({ plugins: [{ id: "a" }, { id: "b" }, { id: "a" }] })).toBe(
        'The plugin manifest is not valid: plugins[2].id: "a" already stands at plugins[0]'
      )
    }))

  it.effect("refuses a power that there is not, by its name and path", () =>
    Effect.gen(function*() {
      yield* decodeManifest({ plugins: [{ id: "b", grants: ["process.list"] }] }, ["process.list"])
      expect(yield* message({ plugins: [{ id: "a" }, { id: "b", grants: ["process.kill"] }] })).toBe(
        'The plugin manifest is not valid: plugins[1].grants[0]: there is no power "process.kill" to grant; take it out'
      )
    }))

  it.effect("names every fault, not only the first", () =>
    Effect.gen(function*() {
      const text = yield* message({ plugins: [{ id: 1 }, { id: "b", required: "yes" }] })
      expect(text).toContain("id")
      expect(text).toContain("required")
    }))
})
