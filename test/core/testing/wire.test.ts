/** What an author tests a boundary with: a wire that is recorded, and one that is faulty. */
import { Plugin } from "@bezel/core/host"
import { loopback } from "@bezel/core/rpc"
import { MutableRemoteState, RemoteService } from "@bezel/core/service"
import {
  faultyWire,
  hostIdentity,
  makeServiceHost,
  recordFrames,
  recordSpans,
  testCoordinator
} from "@bezel/core/testing"
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Schema, Stream } from "effect"
import { TestClock } from "effect/testing"
import { connected, until } from "../../matrix/harness.ts"

class Counter extends RemoteService.make("test.counter")({
  state: { count: Schema.Finite },
  methods: { add: { payload: Schema.Finite } }
}) {}

const counting = Effect.gen(function*() {
  const host = yield* makeServiceHost()
  const count = yield* MutableRemoteState.make(Schema.Finite, 0)
  yield* host.directory.provide(Counter, { count, add: (by) => count.set(count.value + by) })
  return { host, count }
})

const quick = { retry: { first: 0, longest: 0 }, check: "1 second" } as const

describe("a wire that is recorded", () => {
  it.effect("has every frame in both directions", () =>
    Effect.gen(function*() {
      const { host } = yield* counting
      const { connect, frames } = recordFrames(loopback(host.endpoint))
      const client = yield* host.connect({ connect })
      yield* connected(client)
      yield* (yield* client.use(Counter)).add(41)
      expect(frames.sent.filter((frame) => frame.includes(`"add"`) && frame.includes("41"))).toHaveLength(1)
      expect(frames.received.length).toBeGreaterThan(0)
    }))
})

describe("a wire that is faulty", () => {
  it.effect.each(["drop", "double", "cut", "delay"] as const)(
    "with %s still ends at the authority's value",
    (kind) =>
      Effect.gen(function*() {
        const { count, host } = yield* counting
        const faults = [4, 5, 6].flatMap((frame) => [{ kind, direction: "to-client" as const, frame }])
        const client = yield* host.connect({ ...quick, connect: faultyWire(loopback(host.endpoint), faults) })
        const counter = yield* client.use(Counter)
        const writing = yield* Effect.forkChild(
          Effect.forEach([1, 2, 3, 4, 5, 6, 7, 8], (value) => Effect.andThen(count.set(value), Effect.yieldNow))
        )
        const seen = yield* Effect.forkChild(until(counter.count, (value) => value === 8))
        yield* Fiber.join(writing)
        for (let turn = 0; turn < 20 && seen.pollUnsafe() === undefined; turn++) yield* TestClock.adjust("1 second")
        expect(yield* Fiber.join(seen)).toBe(8)
      })
  )

  it.effect("cuts the connection in place of the frame, and the call that it carried is disconnected", () =>
    Effect.gen(function*() {
      const { count, host } = yield* counting
      const { connect, frames } = recordFrames(loopback(host.endpoint))
      const probe = yield* host.connect({ connect })
      yield* connected(probe)
      const first = frames.sent.length
      const client = yield* host.connect({
        ...quick,
        connect: faultyWire(loopback(host.endpoint), [{ kind: "cut", direction: "to-host", frame: first }])
      })
      yield* connected(client)
      const counter = yield* client.use(Counter)
      expect(yield* Effect.flip(counter.add(1))).toMatchObject({ code: "disconnected" })
      expect(count.value).toBe(0)
    }))
})

describe("spans that are recorded", () => {
  it.effect("know their way from the outermost one, and what there is when one is missing", () =>
    Effect.gen(function*() {
      const spans = recordSpans()
      yield* spans.traced(Effect.void.pipe(Effect.withSpan("inner"), Effect.withSpan("outer")))
      expect(spans.path(spans.named("inner"))).toEqual(["outer", "inner"])
      expect(() => spans.named("other")).toThrow("there are outer, inner")
    }))
})

describe("a coordinator for tests", () => {
  it.live("has records and a fleet that a facet works with, and tells who is connected", () =>
    Effect.gen(function*() {
      const started = yield* Deferred.make<string>()
      const coordinator = yield* testCoordinator([
        Plugin.define({
          id: "test.starter",
          coordinator: (ctx) =>
            ctx.onActivate(Effect.gen(function*() {
              yield* Effect.forkScoped(
                Stream.runForEach(ctx.fleet.processes.changes, ({ state }) => Deferred.succeed(started, state)),
                { startImmediately: true }
              )
              const location = { directory: "/place", workspaceID: null }
              const { id } = yield* ctx.fleet.records.create({ location, title: "made" })
              yield* ctx.fleet.processes.start(id)
            }))
        })
      ])
      expect(yield* Deferred.await(started)).toBe("running")
      expect(yield* coordinator.hosts).toMatchObject([{ state: "running", location: { directory: "/place" } }])
      yield* coordinator.connect(hostIdentity({ directory: "/place", workspaceID: null }))
      expect((yield* coordinator.clients).map(({ host }) => host)).toEqual(["/place"])
    }).pipe(Effect.scoped))
})
