import { Conversation, conversationKey } from "@bezel/core/host"
import { scriptedModel, testPresentation, testSessionHost } from "@bezel/core/testing"
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Layer, Tracer } from "effect"

/** A tracer that keeps its spans, as an exporter in memory. */
const recorder = () => {
  const spans: Array<Tracer.Span> = []
  const tracer = Tracer.make({
    span: (options) => {
      const span = new Tracer.NativeSpan(options)
      spans.push(span)
      return span
    }
  })
  return { spans, layer: Layer.succeed(Tracer.Tracer, tracer) }
}

/** The names from a span up to its root. A parent may be known by its id alone, as it has come over a connection. */
const ancestry = (spans: ReadonlyArray<Tracer.Span>, name: string): ReadonlyArray<string> => {
  const names: Array<string> = []
  let current = spans.find((span) => span.name === name)
  while (current !== undefined && names.length < 20) {
    names.unshift(current.name)
    const parentID: string | undefined = current.parent._tag === "Some" ? current.parent.value.spanId : undefined
    current = spans.find((span) => span.spanId === parentID)
  }
  return names
}

describe("the spans of a call from a screen", () => {
  it.live("are one tree, from the key that was pressed, across the connection, to the session's own work", () => {
    const { layer, spans } = recorder()
    return Effect.gen(function*() {
      const host = yield* testSessionHost([], { model: scriptedModel(["Hello."]) })
      const { id } = yield* host.session.create()
      const sent = yield* Deferred.make<void>()
      const chat = yield* testPresentation(host, {
        "test.chat": (ctx) =>
          ctx.observe(
            Conversation,
            (conversation, key) =>
              key !== conversationKey(id, "c1") ? Effect.void : Effect.gen(function*() {
                const { inputID } = yield* conversation.send({ text: "a secret word" }).pipe(
                  Effect.withSpan("ui.chat.send")
                )
                yield* conversation.wait({ inputID })
                yield* Deferred.succeed(sent, undefined)
              })
          )
      }, id)
      yield* Deferred.await(sent)
      expect(chat.state.value.status).toBe("connected")
      const tree = ancestry(spans, "Conversation.send")
      expect(tree).toEqual([
        "ui.chat.send",
        "rpc.client bezel.conversation.send",
        "rpc.server bezel.conversation.send",
        "Conversation.send"
      ])
      expect(ancestry(spans, "task.bezel.generation")).toEqual([...tree, "task.bezel.generation"])
      expect(new Set(spans.filter((span) => tree.includes(span.name)).map((span) => span.traceId)).size).toBe(1)
      expect(spans.filter((span) => tree.includes(span.name)).map(({ kind, name }) => [name.split(" ")[0], kind]))
        .toEqual(
          expect.arrayContaining([["rpc.client", "client"], ["rpc.server", "server"]])
        )
      const said = spans.flatMap((span) => [span.name, ...span.attributes.values()])
      expect(said.filter((value) => JSON.stringify(value)?.includes("secret"))).toEqual([])
    }).pipe(Effect.scoped, Effect.provide(layer))
  })
})
