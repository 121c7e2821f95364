/** A host between two others: client of the one, host of the other. As one text for every transport. */
import { type Facade, MutableRemoteEvents, MutableRemoteState, RemoteService, ServiceError } from "@bezel/core/service"
import { expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Schema, Stream } from "effect"
import { TestClock } from "effect/testing"
import { eventually, makeHost, parentOf, recordSpans, type TransportUnderTest, until, untilStatus } from "./harness.ts"

const Title = Schema.Struct({ title: Schema.String })

class Directory extends RemoteService.make("test.directory")({
  state: { records: Schema.Array(Schema.Struct({ title: Schema.String, owner: Schema.String, cwd: Schema.String })) },
  events: { happened: Schema.Struct({ type: Schema.String, title: Schema.String, owner: Schema.String }) },
  methods: { create: { payload: Title }, wait: {} }
}) {}

class Picker extends RemoteService.make("test.picker")({
  state: { titles: Schema.Array(Schema.String) },
  events: { happened: Schema.Struct({ type: Schema.String, title: Schema.String }) },
  methods: { create: { payload: Title, error: ServiceError }, wait: { error: ServiceError } }
}) {}

/** Derives its own state from upstream state, forwards events under their own cause, and passes calls on. */
const project = (upstream: Facade<Directory>) =>
  Effect.gen(function*() {
    const titles = yield* MutableRemoteState.make(Schema.Array(Schema.String), [])
    const happened = yield* MutableRemoteEvents.make(Picker.contract.events.happened)
    yield* Effect.forkScoped(upstream.records.forEach((records) => titles.set(records.map((record) => record.title))))
    yield* Effect.forkScoped(upstream.happened.forEach(({ title, type }) => happened.emit({ type, title })))
    const passing = <A>(call: Effect.Effect<A, ServiceError>) =>
      Effect.mapError(call, (error) =>
        error.code === "disconnected"
          ? new ServiceError({ code: "unavailable", message: "The coordinator cannot be reached at the moment." })
          : error)
    return {
      titles,
      happened,
      create: (title: typeof Title.Type) => passing(upstream.create(title)),
      wait: () => passing(upstream.wait())
    }
  })

const chain = (transport: TransportUnderTest) =>
  Effect.gen(function*() {
    const coordinator = yield* makeHost(transport)
    const records = yield* MutableRemoteState.make(Directory.contract.state.records, [
      { title: "first", owner: "owner-canary", cwd: "/cwd-canary" }
    ])
    const happened = yield* MutableRemoteEvents.make(Directory.contract.events.happened)
    const entered = yield* Deferred.make<void>()
    let interrupted = 0
    yield* coordinator.directory.provide(Directory, {
      records,
      happened,
      create: ({ title }) =>
        Effect.withSpan(
          Effect.andThen(
            records.update((draft) => {
              draft.push({ title, owner: "owner-canary", cwd: "/cwd-canary" })
            }),
            happened.emit({ type: "created", title, owner: "owner-canary" })
          ),
          "coordinator.create"
        ),
      wait: () =>
        Effect.andThen(Deferred.succeed(entered, undefined), Effect.never).pipe(
          Effect.onInterrupt(() =>
            Effect.sync(() => {
              interrupted++
            })
          )
        )
    })
    const upstream = yield* coordinator.connectWith({ retry: { first: "1 second", longest: "1 second" } })
    const session = yield* makeHost(transport)
    const directory = yield* upstream.connection.use(Directory)
    yield* directory.ready
    yield* session.directory.provide(Picker, yield* project(directory))
    return { session, upstream, records, entered: Deferred.await(entered), interrupted: () => interrupted }
  })

export const chained = (transport: TransportUnderTest) => {
  it.effect("nothing that only the upstream contract has reaches a presentation", () =>
    Effect.gen(function*() {
      const { session } = yield* chain(transport)
      const { connection, frames } = yield* session.connectWith()
      const picker = yield* connection.use(Picker)
      const seen: Array<string> = []
      yield* Effect.forkScoped(Stream.runForEach(picker.happened, (event) => Effect.sync(() => seen.push(event.title))))
      yield* until(picker.titles, (titles) => titles.length === 1)
      let created = 0
      yield* eventually(() => {
        if (seen.length === 0) Effect.runFork(picker.create({ title: `made ${++created}` }))
        return seen.length > 0
      })
      yield* until(picker.titles, (titles) => titles.length > 1)
      expect(frames.received.join("\n")).not.toMatch(/canary/)
    }))

  it.effect("one upstream subscription feeds any number of clients, and a client that leaves ends none of it", () =>
    Effect.gen(function*() {
      const { records, session, upstream } = yield* chain(transport)
      const clients = yield* Effect.forEach([1, 2, 3], () => session.client)
      const pickers = yield* Effect.forEach(clients, (client) => client.use(Picker))
      yield* Effect.forEach(pickers, (picker) => picker.ready)
      yield* clients[0]?.drop ?? Effect.void
      yield* records.update((draft) => {
        draft.push({ title: "second", owner: "", cwd: "" })
      })
      yield* Effect.forEach(pickers, (picker) => until(picker.titles, (titles) => titles.includes("second")))
      expect(upstream.frames.sent.filter((frame) => frame.includes(`"states"`))).toHaveLength(1)
      expect(upstream.frames.sent.filter((frame) => frame.includes(`"Interrupt"`))).toHaveLength(0)
    }))

  it.effect("a client that comes late gets the whole projection", () =>
    Effect.gen(function*() {
      const { records, session } = yield* chain(transport)
      yield* records.update((draft) => {
        draft.push({ title: "second", owner: "", cwd: "" })
      })
      const first = yield* (yield* session.client).use(Picker)
      yield* until(first.titles, (titles) => titles.length === 2)
      const late = yield* (yield* session.client).use(Picker)
      yield* late.ready
      expect(late.titles.value).toEqual(["first", "second"])
    }))

  it.effect("without its upstream a host serves what it knew, fails mutations with unavailable, and recovers", () =>
    Effect.gen(function*() {
      const { records, session, upstream } = yield* chain(transport)
      const client = yield* session.client
      const picker = yield* client.use(Picker)
      yield* until(picker.titles, (titles) => titles.length === 1)
      yield* upstream.connection.drop
      yield* eventually(() => upstream.connection.state.value.status === "disconnected")
      expect(yield* Effect.flip(picker.create({ title: "lost" }))).toMatchObject({ code: "unavailable" })
      expect(client.state.value.status).toBe("connected")
      expect([picker.titles.value, picker.titles.status]).toEqual([["first"], "live"])
      yield* records.update((draft) => {
        draft.push({ title: "meanwhile", owner: "", cwd: "" })
      })
      yield* TestClock.adjust("1 second")
      yield* until(picker.titles, (titles) => titles.includes("meanwhile"))
      yield* picker.create({ title: "back" })
      yield* until(picker.titles, (titles) => titles.includes("back"))
      yield* untilStatus(picker.titles, "live")
      expect(picker.titles.value).not.toContain("lost")
    }))

  it.effect("cancelling a call reaches through both hosts", () =>
    Effect.gen(function*() {
      const { entered, interrupted, session } = yield* chain(transport)
      const picker = yield* (yield* session.client).use(Picker)
      const call = yield* Effect.forkChild(picker.wait())
      yield* entered
      yield* Fiber.interrupt(call)
      yield* eventually(() => interrupted() === 1)
      expect(interrupted()).toBe(1)
    }))

  it.effect("a call through both hosts is one trace, and so is what it causes on the way back", () =>
    Effect.gen(function*() {
      const spans = recordSpans()
      yield* spans.traced(Effect.gen(function*() {
        const { session } = yield* chain(transport)
        const picker = yield* (yield* session.client).use(Picker)
        yield* picker.ready
        const render = (titles: ReadonlyArray<string>) => Effect.withSpan(Effect.void, `render ${titles.length}`)
        yield* Effect.forkScoped(picker.titles.forEach(render))
        yield* eventually(() => spans.all.some((span) => span.name === "render 1"))
        yield* Effect.withSpan(picker.create({ title: "second" }), "ui.create")
        yield* eventually(() => spans.all.some((span) => span.name === "render 2"))
      }))
      const path = [
        "ui.create",
        "rpc.client test.picker.create",
        "rpc.server test.picker.create",
        "rpc.client test.directory.create",
        "rpc.server test.directory.create",
        "coordinator.create"
      ].map(spans.named)
      path.slice(1).forEach((span, index) => expect(parentOf(span)).toBe(path[index]?.spanId))
      expect(new Set(path.map((span) => span.traceId)).size).toBe(1)
      expect(spans.named("render 2").traceId).toBe(path[0]?.traceId)
    }))
}
