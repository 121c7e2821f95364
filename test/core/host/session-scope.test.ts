/** What a session facet gets of each open session. */
import type { ConversationNode, SessionEvents } from "@bezel/core/harness"
import { Plugin, type SessionContext } from "@bezel/core/host"
import { scriptedModel, testSessionHost } from "@bezel/core/testing"
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Stream } from "effect"

type OnSession = Parameters<SessionContext["onSession"]>[0]

const host = (turns: Parameters<typeof scriptedModel>[0], onSession: OnSession) =>
  testSessionHost([Plugin.define({ id: "test.scope", session: (ctx) => ctx.onSession(onSession) })], {
    model: scriptedModel(turns)
  })

describe("the scope of an open session", () => {
  it.live("has a tree: the main conversation, and each fork below the one it is of", () =>
    Effect.gen(function*() {
      const trees: Array<ReadonlyArray<ConversationNode>> = []
      const forked = yield* Deferred.make<string>()
      const { ask, session } = yield* host(["one", "two"], (open) =>
        Effect.gen(function*() {
          yield* Effect.gen(function*() {
            const happened = yield* open.events
            yield* Stream.runHead(
              Stream.filter(happened, ({ events }) => events.some(({ type }) => type === "turn.ended"))
            )
            trees.push(yield* open.tree)
            const [entry] = yield* open.main.entries({})
            const fork = yield* open.main.fork(entry?.id ?? "")
            trees.push(yield* open.tree)
            yield* Deferred.succeed(forked, `${entry?.id} ${fork.id}`)
          }).pipe(Effect.scoped, Effect.forkScoped)
        }))
      const { id } = yield* session.create()
      yield* ask(id, "hello")
      const [at, fork] = (yield* Deferred.await(forked)).split(" ")
      expect(trees[0]).toEqual([{ id: "c1", parent: null, owner: null }])
      expect(trees[1]).toEqual([
        { id: "c1", parent: null, owner: null },
        { id: fork, parent: { conversation: "c1", at }, owner: null }
      ])
    }).pipe(Effect.scoped))

  it.live("has the events of all its conversations in order, also of one that comes later", () =>
    Effect.gen(function*() {
      const seen: Array<SessionEvents> = []
      const ended = yield* Deferred.make<void>()
      let turns = 0
      const { ask, session } = yield* host(["one", "two"], (open) =>
        Effect.gen(function*() {
          const happened = yield* open.events
          yield* Stream.runForEach(happened, (one) =>
            Effect.gen(function*() {
              seen.push(one)
              if (!one.events.some(({ type }) => type === "turn.ended")) return
              turns += 1
              if (turns === 2) yield* Deferred.succeed(ended, undefined)
              if (turns !== 1) return
              const [entry] = yield* open.main.entries({})
              const fork = yield* open.main.fork(entry?.id ?? "")
              yield* fork.send({ content: [{ type: "text", text: "and there?" }] })
            })).pipe(Effect.forkScoped)
        }))
      const { id } = yield* session.create()
      yield* ask(id, "hello")
      yield* Deferred.await(ended)
      const of = (conversation: string) =>
        seen.filter((one) => one.conversation === conversation).flatMap(({ events }) => events.map(({ type }) => type))
      const fork = seen.at(-1)?.conversation ?? ""
      expect(fork).not.toBe("c1")
      for (const types of [of("c1"), of(fork)]) {
        expect(types.filter((type) => type.startsWith("turn."))).toEqual(["turn.started", "turn.ended"])
        expect(types.indexOf("input.placed")).toBeLessThan(types.indexOf("generation.started"))
        expect(types.indexOf("generation.completed")).toBeLessThanOrEqual(types.indexOf("turn.ended"))
      }
      expect(seen.every(({ events }) => events.length > 0)).toBe(true)
    }).pipe(Effect.scoped))

  it.live("ends its events when the session closes", () =>
    Effect.gen(function*() {
      const log: Array<string> = []
      const turn = yield* Deferred.make<void>()
      yield* Effect.gen(function*() {
        const { ask, session } = yield* host(["one"], (open) =>
          Effect.gen(function*() {
            const happened = yield* open.events
            yield* Stream.runForEach(happened, ({ events }) =>
              Effect.suspend(() => {
                if (!events.some(({ type }) => type === "turn.ended")) return Effect.void
                log.push("turn")
                return Deferred.succeed(turn, undefined)
              })).pipe(
                Effect.onExit(() => Effect.sync(() => log.push("ended"))),
                Effect.forkScoped
              )
          }))
        const { id } = yield* session.create()
        yield* ask(id, "hello")
        yield* Deferred.await(turn)
      }).pipe(Effect.scoped)
      expect(log).toEqual(["turn", "ended"])
    }))
})
