import { modelPlugin, scriptedModel, temporaryDirectory } from "@bezel/core/testing"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { ask, hostLayer } from "../../examples/host/host.ts"

describe("examples/host", () => {
  it.live("answers a question over its own connection, and keeps the session in its folder", () =>
    Effect.gen(function*() {
      const folder = yield* temporaryDirectory
      const directory = yield* temporaryDirectory
      const model = scriptedModel(["forty-two"])
      const answer = yield* ask(directory, "What is it?").pipe(Effect.provide(hostLayer(folder, [modelPlugin(model)])))
      expect(answer).toBe("forty-two")
      expect(model.requests).toHaveLength(1)
    }).pipe(Effect.scoped))
})
