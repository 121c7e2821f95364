/** Replicated state and events, as one text for every transport. */
import { eventFeed, MutableRemoteState, RemoteService } from "@bezel/core/service"
import { expect, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Logger, Schema, Scope, Stream } from "effect"
import { TestClock } from "effect/testing"
import { Models, ModelsState } from "./contract.ts"
import { eventually, makeHost, parentOf, recordSpans, type TransportUnderTest, until, untilStatus } from "./harness.ts"
import { provideModels } from "./provide.ts"

export const state = (transport: TransportUnderTest) => {
  it.effect("a snapshot and concurrent updates arrive without gap, duplicate or reordering", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport)
      const { state } = yield* provideModels(host.directory)
      const writer = yield* Effect.forkChild(
        Effect.forEach(Array.from({ length: 200 }), () =>
          Effect.andThen(
            state.update((draft) => {
              draft.revision++
            }),
            Effect.yieldNow
          ))
      )
      yield* Effect.yieldNow
      const models = yield* (yield* host.client).use(Models)
      const seen = yield* Stream.runCollect(
        Stream.takeUntil(Stream.map(models.state.changes, (value) => value.revision), (revision) => revision === 200)
      )
      yield* Fiber.join(writer)
      const first = seen[0] ?? 0
      expect(seen).toEqual(Array.from({ length: 201 - first }, (_, index) => first + index))
    }))

  it.effect("all consumers of a token in one process share one facade, one replica and one subscription", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport)
      const { state } = yield* provideModels(host.directory)
      const { connection, frames } = yield* host.connectWith()
      const [one, two] = yield* Effect.all([connection.use(Models), connection.use(Models)])
      expect(one).toBe(two)
      yield* Effect.all([one.ready, two.ready])
      yield* state.set({ current: "b", revision: 1, list: [] })
      const [left, right] = yield* Effect.all([
        until(one.state, (value) => value.revision === 1),
        until(two.state, (value) => value.revision === 1)
      ], { concurrency: 2 })
      expect(left).toBe(right)
      expect(frames.sent.filter((frame) => frame.includes(`"states"`))).toHaveLength(1)
    }))

  it.effect("once hydrated, operations cross and not values, and what did not change keeps its identity", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport)
      const { state } = yield* provideModels(host.directory)
      const { connection, frames } = yield* host.connectWith()
      const models = yield* connection.use(Models)
      yield* models.ready
      const before = models.state.value
      const received = frames.received.length
      yield* state.update((draft) => {
        const second = draft.list[1]
        if (second !== undefined) second.note += "hello"
      })
      const after = yield* until(models.state, (value) => value.list[1]?.note === "hello")
      expect(after.list[0]).toBe(before?.list[0])
      expect(after.list[1]).not.toBe(before?.list[1])
      const wire = frames.received.slice(received).join("\n")
      expect(wire).toContain("hello")
      expect(wire).not.toContain(`"current"`)
    }))

  it.effect("an unchanged value is not sent", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport)
      const { state } = yield* provideModels(host.directory)
      const models = yield* (yield* host.client).use(Models)
      yield* models.ready
      yield* state.set({ ...state.value })
      yield* state.update((draft) => {
        draft.current = null
      })
      expect(state.sequence).toBe(0)
      yield* state.update((draft) => {
        draft.revision = 1
      })
      const seen = yield* Stream.runCollect(Stream.takeUntil(models.state.changes, (value) => value.revision === 1))
      expect(seen.length).toBeLessThanOrEqual(2)
      expect(state.sequence).toBe(1)
    }))

  it.effect("operations made elsewhere are one delivery with one sequence number", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport)
      const View = Schema.Struct({ text: Schema.String, entries: Schema.Array(Schema.String) })
      class Viewer extends RemoteService.make("test.view")({ state: { view: View } }) {}
      const view = yield* MutableRemoteState.make(View, { text: "", entries: [] }, { sequence: 41 })
      yield* host.directory.provide(Viewer, { view })
      const viewer = yield* (yield* host.client).use(Viewer)
      yield* viewer.ready
      const seen = yield* Effect.forkChild(Stream.runCollect(Stream.take(viewer.view.changes, 3)))
      yield* Effect.yieldNow
      yield* view.publish([["append", ["text"], "hi"], ["splice", ["entries"], 0, 0, ["one"]]])
      yield* view.publish([])
      expect(view.sequence).toBe(43)
      expect(yield* Fiber.join(seen)).toEqual([
        { text: "", entries: [] },
        { text: "hi", entries: ["one"] },
        { text: "hi", entries: ["one"] }
      ])
    }))

  it.effect("values are detached: what a writer or a reader does to one changes nobody else's", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport)
      const { state } = yield* provideModels(host.directory)
      const first = yield* (yield* host.client).use(Models)
      const second = yield* (yield* host.client).use(Models)
      yield* Effect.all([first.ready, second.ready])
      const mine = { current: "a", revision: 1, list: [{ id: "a", note: "" }] }
      yield* state.set(mine)
      mine.list.push({ id: "smuggled", note: "" })
      const value = yield* until(first.state, (value) => value.revision === 1)
      Reflect.set(value, "current", "changed by a reader")
      expect((yield* until(second.state, (value) => value.revision === 1)).current).toBe("a")
      expect(state.value).toEqual({ current: "a", revision: 1, list: [{ id: "a", note: "" }] })
    }))

  it.effect("all states of a service hydrate as one", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport)
      class Pair extends RemoteService.make("test.pair")({ state: { left: Schema.Int, right: Schema.Int } }) {}
      const left = yield* MutableRemoteState.make(Schema.Int, 1)
      const right = yield* MutableRemoteState.make(Schema.Int, 1)
      yield* host.directory.provide(Pair, { left, right })
      const pair = yield* (yield* host.client).use(Pair)
      expect([pair.left.value, pair.right.value]).toEqual([undefined, undefined])
      const together = yield* Effect.forkChild(
        Stream.runHead(Stream.map(pair.left.changes, (value) => [value, pair.right.value]))
      )
      yield* pair.ready
      expect(yield* Fiber.join(together)).toMatchObject({ value: [1, 1] })
    }))

  it.effect("a state whose values are not JSON crosses through its codec", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport)
      class Dated
        extends RemoteService.make("test.dated")({ state: { due: Schema.Struct({ at: Schema.DateFromString }) } })
      {}
      const due = yield* MutableRemoteState.make(Schema.Struct({ at: Schema.DateFromString }), { at: new Date(0) })
      yield* host.directory.provide(Dated, { due })
      const dated = yield* (yield* host.client).use(Dated)
      yield* dated.ready
      yield* due.set({ at: new Date(5) })
      expect((yield* until(dated.due, (value) => value.at.getTime() === 5)).at).toEqual(new Date(5))
    }))

  it.effect("a client whose contract does not fit the values is told so, and shows none", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport)
      yield* provideModels(host.directory)
      class Other
        extends RemoteService.make("test.models")({ state: { state: Schema.Struct({ current: Schema.Int }) } })
      {}
      const other = yield* (yield* host.client).use(Other)
      const error = yield* Effect.flip(other.ready)
      expect(error).toMatchObject({ code: "invalid_result" })
      expect(error.message).toContain(`"state" of service "test.models"`)
      expect(other.state.value).toBeUndefined()
    }))

  it.effect("after a disconnect the last value stays readable as stale, and a reconnect replaces it", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport)
      const { state } = yield* provideModels(host.directory)
      const { connection } = yield* host.connectWith({ retry: { first: "1 second", longest: "1 second" } })
      const models = yield* connection.use(Models)
      yield* models.ready
      expect(models.state.status).toBe("live")
      yield* connection.drop
      yield* untilStatus(models.state, "stale")
      yield* state.set({ current: "a", revision: 7, list: [] })
      expect(models.state.value).toMatchObject({ revision: 0 })
      yield* TestClock.adjust("1 second")
      expect(yield* until(models.state, (value) => value.revision === 7)).toEqual(state.value)
      yield* untilStatus(models.state, "live")
      yield* state.update((draft) => {
        draft.revision = 8
      })
      yield* until(models.state, (value) => value.revision === 8)
    }))

  it.effect("a subscription is closed some time after its last user left, and opened again by the next", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport)
      const { state } = yield* provideModels(host.directory)
      const { connection, frames } = yield* host.connectWith({ idle: "10 seconds" })
      const interrupts = () => frames.sent.filter((frame) => frame.includes(`"Interrupt"`)).length
      const scope = yield* Scope.make()
      const models = yield* Scope.provide(connection.use(Models), scope)
      yield* models.ready
      yield* Scope.close(scope, Exit.void)
      yield* TestClock.adjust("9 seconds")
      expect(interrupts()).toBe(0)
      yield* TestClock.adjust("2 seconds")
      yield* eventually(() => interrupts() === 1)
      expect(models.state.status).toBe("stale")
      yield* state.update((draft) => {
        draft.revision = 3
      })
      expect(yield* connection.use(Models)).toBe(models)
      yield* models.ready
      expect(models.state.value?.revision).toBe(3)
    }))

  it.effect("a consumer that stops reading never slows the authority, and starts again from a snapshot", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport, { queueLimit: 8 })
      const { state } = yield* provideModels(host.directory)
      const received: Array<string> = []
      const raw = yield* host.raw
      yield* Effect.forkScoped(raw.run((frame) => Effect.sync(() => received.push(frame))))
      const send = (message: object) => raw.send(JSON.stringify(message))
      yield* send({
        _tag: "Request",
        id: "1",
        tag: "watch",
        payload: { type: "states", service: "test.models" },
        headers: []
      })
      yield* eventually(() => received.length === 1)
      // No acknowledgement: this client has stopped reading.
      for (let turn = 1; turn <= 100; turn++) {
        yield* state.update((draft) => {
          draft.revision = turn
        })
      }
      expect(state.value.revision).toBe(100)
      expect(received).toHaveLength(1)
      yield* send({ _tag: "Ack", requestId: "1" })
      yield* eventually(() => received.length === 2)
      const items = JSON.parse(received[1] ?? "").values
      expect(items).toHaveLength(1)
      expect(items[0]).toMatchObject({
        type: "snapshot",
        states: { state: { sequence: 100, value: { revision: 100 } } }
      })
    }))

  it.effect("what waits for a consumer leaves as one batch", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport)
      const { state } = yield* provideModels(host.directory)
      const { connection, frames } = yield* host.connectWith()
      const models = yield* connection.use(Models)
      yield* models.ready
      const before = frames.received.length
      for (let turn = 1; turn <= 50; turn++) {
        yield* state.update((draft) => {
          draft.revision = turn
        })
      }
      yield* until(models.state, (value) => value.revision === 50)
      expect(frames.received.length - before).toBeLessThan(50)
    }))

  it.effect("each delivery is handled in the trace of the write that caused it, the first under the subscriber", () =>
    Effect.gen(function*() {
      const spans = recordSpans()
      yield* spans.traced(Effect.gen(function*() {
        const host = yield* makeHost(transport)
        const { state } = yield* provideModels(host.directory)
        const models = yield* (yield* host.client).use(Models)
        yield* models.ready
        const handle = (value: typeof ModelsState.Type) => Effect.withSpan(Effect.void, `render ${value.revision}`)
        const rendering = yield* Effect.forkChild(Effect.withSpan(models.state.forEach(handle), "ui.subscribe"))
        yield* eventually(() => spans.all.some((span) => span.name === "render 0"))
        yield* Effect.withSpan(
          state.update((draft) => {
            draft.revision = 1
          }),
          "host.write"
        )
        yield* eventually(() => spans.all.some((span) => span.name === "render 1"))
        yield* Fiber.interrupt(rendering)
      }))
      expect(parentOf(spans.named("render 0"))).toBe(spans.named("ui.subscribe").spanId)
      const write = spans.named("host.write")
      const delivery = spans.named("state.delivery")
      expect(spans.named("render 1").traceId).toBe(write.traceId)
      expect(parentOf(spans.named("render 1"))).toBe(delivery.spanId)
      expect(delivery.links.map((link) => link.span.spanId)).toEqual([write.spanId])
    }))

  it.effect("a value that a snapshot brings is handled in the trace of its hydration, also after a reconnect", () =>
    Effect.gen(function*() {
      const spans = recordSpans()
      yield* spans.traced(Effect.gen(function*() {
        const host = yield* makeHost(transport)
        const { state } = yield* provideModels(host.directory)
        const { connection } = yield* host.connectWith({ retry: { first: "1 minute", longest: "1 minute" } })
        const models = yield* connection.use(Models)
        const handle = (value: typeof ModelsState.Type) => Effect.withSpan(Effect.void, `render ${value.revision}`)
        // Before anything is known.
        const rendering = yield* Effect.forkChild(Effect.withSpan(models.state.forEach(handle), "ui.subscribe"))
        yield* eventually(() => spans.all.some((span) => span.name === "render 0"))
        yield* connection.drop
        yield* untilStatus(models.state, "stale")
        yield* Effect.withSpan(
          state.update((draft) => {
            draft.revision = 1
          }),
          "host.write"
        )
        yield* TestClock.adjust("1 minute")
        yield* eventually(() => spans.all.some((span) => span.name === "render 1"))
        yield* Fiber.interrupt(rendering)
      }))
      const hydrations = spans.all.filter((span) => span.name === "rpc.hydrate test.models")
      const handled = ["render 0", "render 1"].map((name) => parentOf(spans.named(name)))
      const deliveries = handled.map((id) => spans.all.find((span) => span.spanId === id))
      const causes = deliveries.map((span) => span?.links.map((link) => link.span.spanId))
      expect(causes).toEqual([[hydrations[0]?.spanId], [hydrations.at(-1)?.spanId]])
      expect(causes[0]).not.toEqual(causes[1])
      expect(spans.named("render 1").traceId).not.toBe(spans.named("host.write").traceId)
    }))

  it.effect("a reload is never seen as missing, and its state replaces the old one's", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport)
      const old = yield* Scope.make()
      yield* Scope.provide(provideModels(host.directory, { first: "a" }), old)
      const models = yield* (yield* host.client).use(Models)
      yield* models.ready
      const statuses: Array<string> = []
      yield* Effect.forkScoped(
        Stream.runForEach(models.state.statuses, (status) => Effect.sync(() => statuses.push(status)))
      )
      const state = yield* MutableRemoteState.make(ModelsState, { current: "b", revision: 1, list: [] })
      const next = yield* host.directory.use(Models)
      yield* host.directory.handOver(
        () => true,
        Effect.gen(function*() {
          yield* Scope.close(old, Exit.void)
          expect(yield* models.who()).toBe("a")
          yield* host.directory.provide(Models, { ...next, state, who: () => Effect.succeed("the new one") })
        })
      )
      expect(yield* models.who()).toBe("the new one")
      yield* until(models.state, (value) => value.current === "b")
      expect(statuses).toEqual(["live"])
    }))

  it.effect("a call in flight ends with unavailable when its provider goes away", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport)
      const scope = yield* Scope.make()
      const provider = yield* Scope.provide(provideModels(host.directory), scope)
      const models = yield* (yield* host.client).use(Models)
      const call = yield* Effect.forkChild(Effect.flip(models.wait()))
      yield* provider.entered
      yield* Scope.close(scope, Exit.void)
      expect(yield* Fiber.join(call)).toMatchObject({ code: "unavailable" })
      yield* eventually(() => provider.interrupted() === 1)
    }))

  it.effect("a service that comes later brings its facade to life", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport)
      yield* host.directory.declare(Models, { perSession: false })
      const models = yield* (yield* host.client).use(Models)
      yield* eventually(() => models.state.status === "detached")
      const { state } = yield* provideModels(host.directory)
      yield* models.ready
      expect(models.state.value).toEqual(state.value)
    }))
}

export const events = (transport: TransportUnderTest) => {
  it.effect("three taken of an endless stream end its subscription at the host, once and soon", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport)
      const { changed } = yield* provideModels(host.directory)
      const { connection, frames } = yield* host.connectWith({ idle: 0 })
      const models = yield* connection.use(Models)
      const taking = yield* Effect.forkChild(Stream.runCollect(Stream.take(models.changed, 3)))
      const producer = yield* Effect.forkChild(
        Effect.forever(Effect.andThen(changed.emit({ type: "changed", model: "x" }), Effect.yieldNow))
      )
      expect(yield* Fiber.join(taking)).toHaveLength(3)
      yield* TestClock.adjust(1)
      yield* eventually(() => eventFeed(changed)?.size === 0)
      yield* Fiber.interrupt(producer)
      expect(frames.sent.filter((frame) => frame.includes(`"Interrupt"`))).toHaveLength(1)
    }))

  it.effect("events arrive in order, in the trace of their cause", () =>
    Effect.gen(function*() {
      const spans = recordSpans()
      const seen: Array<string> = []
      yield* spans.traced(Effect.gen(function*() {
        const host = yield* makeHost(transport)
        const { changed } = yield* provideModels(host.directory)
        const models = yield* (yield* host.client).use(Models)
        yield* Effect.forkScoped(models.changed.forEach((event) =>
          Effect.withSpan(Effect.sync(() => seen.push(event.model)), `handle ${event.model}`)
        ))
        // Events before the subscription stands are nobody's.
        yield* eventually(() => {
          Effect.runSync(changed.emit({ type: "changed", model: "probe" }))
          return seen.length > 0
        })
        seen.length = 0
        for (const model of ["x", "y", "z"]) {
          yield* Effect.withSpan(changed.emit({ type: "changed", model }), `cause ${model}`)
        }
        yield* eventually(() =>
          seen.includes("z")
        )
      }))
      expect(seen.filter((model) => model !== "probe")).toEqual(["x", "y", "z"])
      for (const model of ["x", "y", "z"]) {
        expect(spans.named(`handle ${model}`).traceId).toBe(spans.named(`cause ${model}`).traceId)
      }
    }))

  it.effect("a state that is read on an event of the same write may be older or newer, the state stream is the truth", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport)
      yield* provideModels(host.directory)
      const models = yield* (yield* host.client).use(Models)
      yield* models.ready
      yield* models.select({ model: "b", options: [] })
      expect((yield* until(models.state, (value) => value.current === "b")).revision).toBe(1)
    }))

  it.effect("events go on after a reconnect; those of the time between are lost", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport)
      const { changed } = yield* provideModels(host.directory)
      const { connection } = yield* host.connectWith({ retry: { first: "1 second", longest: "1 second" } })
      const models = yield* connection.use(Models)
      const seen: Array<string> = []
      yield* Effect.forkScoped(Stream.runForEach(models.changed, (event) => Effect.sync(() => seen.push(event.model))))
      const probe = (model: string) =>
        eventually(() => {
          Effect.runSync(changed.emit({ type: "changed", model }))
          return seen.includes(model)
        })
      yield* probe("before")
      yield* connection.drop
      yield* eventually(() => connection.state.value.status === "disconnected")
      yield* changed.emit({ type: "changed", model: "between" })
      yield* TestClock.adjust("1 second")
      yield* probe("after")
      expect(seen).not.toContain("between")
    }))

  it.effect("a consumer that is slower than the events are misses the oldest, and its log says how many", () => {
    const logged: Array<string> = []
    const logger = Logger.make((entry) => {
      logged.push(Logger.formatJson.log(entry))
    })
    return Effect.gen(function*() {
      const host = yield* makeHost(transport, { queueLimit: 8 })
      const { changed } = yield* provideModels(host.directory)
      const models = yield* (yield* host.client).use(Models)
      const seen: Array<string> = []
      yield* Effect.forkScoped(Stream.runForEach(models.changed, (event) => Effect.sync(() => seen.push(event.model))))
      yield* eventually(() => {
        Effect.runSync(changed.emit({ type: "changed", model: "probe" }))
        return seen.length > 0
      })
      // In one step, so that nobody reads meanwhile.
      for (let count = 1; count <= 100; count++) Effect.runSync(changed.emit({ type: "changed", model: `${count}` }))
      yield* eventually(() => seen.includes("100"))
      const numbered = seen.filter((model) => model !== "probe")
      expect(numbered).toEqual(Array.from({ length: 8 }, (_, index) => `${93 + index}`))
      expect(logged.join("\n")).toMatch(/\d+ events \\?"changed\\?" of service \\?"test.models\\?" were lost/)
    }).pipe(Effect.provide(Logger.layer([logger])))
  })
}
