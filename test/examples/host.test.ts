import { modelPlugin, scriptedModel, temporaryDirectory } from "@bezel/core/testing"
import { Placement } from "@bezel/server"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Option, Stream } from "effect"
import board, { BoardView } from "../../examples/authors/board.ts"
import { coordinatedLayer } from "../../examples/host/coordinated.ts"
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

  it.live("has a coordinator above its locations, if it wants one, with the plugins' parts for that", () =>
    Effect.gen(function*() {
      const [folder, here, there] = [
        yield* temporaryDirectory,
        yield* temporaryDirectory,
        yield* temporaryDirectory
      ]
      const plugins = [modelPlugin(scriptedModel([])), board]
      const seen = yield* Effect.gen(function*() {
        const { place } = yield* Placement
        const writer = yield* (yield* (yield* place(here)).connect({ label: "writer" })).use(BoardView)
        const reader = yield* (yield* (yield* place(there)).connect({ label: "reader" })).use(BoardView)
        yield* writer.post({ text: "hello" })
        return yield* Stream.runHead(Stream.filter(reader.texts.changes, (texts) => texts.length > 0))
      }).pipe(Effect.provide(coordinatedLayer(folder, plugins)))
      expect(Option.getOrNull(seen)).toEqual(["hello"])
    }).pipe(Effect.scoped))
})
