import { Conversation, conversationKey } from "@bezel/core/host"
import { recordSpans, scriptedModel, testPresentation, testSessionHost } from "@bezel/core/testing"
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect } from "effect"

describe("the spans of a call from a screen", () => {
  it.live("are one tree, from the key that was pressed, across the connection, to the session's own work", () => {
    const { all: spans, named, path, traced } = recordSpans()
    return traced(
      Effect.gen(function*() {
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
        const tree = path(named("Conversation.send"))
        expect(tree).toEqual([
          "ui.chat.send",
          "rpc.client bezel.conversation.send",
          "rpc.server bezel.conversation.send",
          "Conversation.send"
        ])
        expect(path(named("task.bezel.generation"))).toEqual([...tree, "task.bezel.generation"])
        expect(new Set(spans.filter((span) => tree.includes(span.name)).map((span) => span.traceId)).size).toBe(1)
        expect(spans.filter((span) => tree.includes(span.name)).map(({ kind, name }) => [name.split(" ")[0], kind]))
          .toEqual(
            expect.arrayContaining([["rpc.client", "client"], ["rpc.server", "server"]])
          )
        const said = spans.flatMap((span) => [span.name, ...span.attributes.values()])
        expect(said.filter((value) => JSON.stringify(value)?.includes("secret"))).toEqual([])
      }).pipe(Effect.scoped)
    )
  })
})
