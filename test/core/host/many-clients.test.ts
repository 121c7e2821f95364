/** Ten clients on one session for an hour of virtual time: all of them see and steer it, and see the same. */
import { Conversation, conversationKey } from "@bezel/core/host"
import { say, scriptedModel, testSessionHost, wait } from "@bezel/core/testing"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber, Stream } from "effect"
import { TestClock } from "effect/testing"

const minutes = 60
const clients = 10

describe("ten clients on one session", () => {
  it.effect(
    "have equal views over an hour in which each of them prompts and connections are lost",
    () =>
      Effect.gen(function*() {
        const model = scriptedModel(
          Array.from({ length: minutes }, (_, turn) => [
            say(`Answer ${turn}, `),
            wait("20 seconds"),
            say("and its end.")
          ])
        )
        const host = yield* testSessionHost([], { model })
        const { id } = yield* host.session.create({})
        const connections = yield* Effect.all(Array.from({ length: clients }, () => host.connect(id)))
        const key = conversationKey(id, "c1")
        const conversations = yield* Effect.forEach(connections, (connection) => connection.use(Conversation, { key }))
        const shown = (entries: number) =>
          Effect.forEach(conversations, (conversation) =>
            conversation.view.changes.pipe(
              Stream.filter((view) => view.turn === null && view.entries.length === entries),
              Stream.runHead
            ), { concurrency: clients })
        yield* shown(0)
        for (let minute = 0; minute < minutes; minute++) {
          const sender = conversations[minute % clients]
          yield* sender?.send({ text: `Prompt ${minute}` }) ?? Effect.die("there is no such client")
          const all = yield* Effect.forkChild(shown((minute + 1) * 2))
          // Now and then one loses its connection in the middle of an answer, and comes back.
          if (minute % 6 === 5) yield* connections[(minute + 1) % clients]?.drop ?? Effect.void
          for (let part = 0; part < 6; part++) yield* TestClock.adjust("10 seconds")
          yield* Fiber.join(all)
          const [first, ...others] = conversations.map(({ view }) => view.value)
          for (const other of others) expect(other).toEqual(first)
          expect(first?.entries).toHaveLength((minute + 1) * 2)
        }
        expect(model.requests).toHaveLength(minutes)
      }),
    30_000
  )
})
