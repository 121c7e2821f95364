/** Events with ids, as one text for every transport. */
import {
  type DurableEvent,
  type DurableOptions,
  MutableDurableEvents,
  RemoteService,
  type ServiceDirectoryShape
} from "@bezel/core/service"
import { expect, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Schema, Scope, Stream } from "effect"
import { TestClock } from "effect/testing"
import { connected, eventually, makeHost, type TransportUnderTest } from "./harness.ts"

const Step = Schema.Struct({ type: Schema.Literal("step"), number: Schema.Int })

class Log extends RemoteService.make("test.log")({ events: { steps: { schema: Step, durable: true } } }) {}

const provideLog = (directory: ServiceDirectoryShape, options: DurableOptions<typeof Step.Type> = {}) =>
  Effect.gen(function*() {
    const steps = yield* MutableDurableEvents.make(Step, options)
    yield* directory.provide(Log, { steps })
    return {
      steps,
      emit: (...numbers: ReadonlyArray<number>) =>
        Effect.forEach(numbers, (number) => steps.emit({ type: "step", number }), { discard: true })
    }
  })

const upTo = (last: number, first = 1) => Array.from({ length: last - first + 1 }, (_, index) => first + index)

const numbers = (events: ReadonlyArray<DurableEvent<typeof Step.Type>>) =>
  events.map((event) => event.type === "gap" ? "gap" : event.value.number)

export const durable = (transport: TransportUnderTest) => {
  const setup = (options?: DurableOptions<typeof Step.Type>) =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport)
      const log = yield* provideLog(host.directory, options)
      const { connection, frames } = yield* host.connectWith({ retry: { first: "1 second", longest: "1 second" } })
      const { steps } = yield* connection.use(Log)
      const reconnect = Effect.andThen(TestClock.adjust("1 second"), connected(connection))
      return { host, ...log, connection, frames, remote: steps, reconnect }
    })

  it.effect("events go on exactly after the last one that was seen, over any number of disconnects", () =>
    Effect.gen(function*() {
      const { connection, emit, reconnect, remote } = yield* setup()
      const seen: Array<DurableEvent<typeof Step.Type>> = []
      const reading = yield* Effect.forkChild(
        Stream.runForEach(remote.after(null), (event) => Effect.sync(() => seen.push(event)))
      )
      yield* eventually(() => {
        if (seen.length === 0) Effect.runSync(emit(0))
        return seen.length > 0
      })
      yield* Effect.yieldNow
      seen.length = 0
      yield* emit(...upTo(4))
      yield* eventually(() => seen.length > 0 && numbers(seen).at(-1) === 4)
      yield* connection.drop
      yield* eventually(() => connection.state.value.status === "disconnected")
      yield* emit(...upTo(7, 5))
      yield* reconnect
      // Lost again before any event may have come.
      yield* connection.drop
      yield* eventually(() => connection.state.value.status === "disconnected")
      yield* emit(...upTo(10, 8))
      yield* reconnect
      yield* eventually(() => numbers(seen).at(-1) === 10)
      expect(numbers(seen).filter((number) => number !== 0)).toEqual(upTo(10))
      yield* Fiber.interrupt(reading)
    }))

  it.effect("a consumer that has seen none yet misses none that come while it is disconnected", () =>
    Effect.gen(function*() {
      const { connection, emit, frames, reconnect, remote } = yield* setup()
      yield* emit(1, 2)
      const reading = yield* Effect.forkChild(Stream.runCollect(Stream.take(remote.after(null), 2)))
      yield* eventually(() => frames.received.some((frame) => frame.includes(`"type":"from"`)))
      yield* connection.drop
      yield* eventually(() => connection.state.value.status === "disconnected")
      yield* emit(3, 4)
      yield* reconnect
      expect(numbers(yield* Fiber.join(reading))).toEqual([3, 4])
    }))

  it.effect("a consumer that names the last event it saw gets exactly the ones after it", () =>
    Effect.gen(function*() {
      const { emit, host, remote, steps } = yield* setup()
      yield* emit(...upTo(3))
      const all = yield* Effect.forkChild(Stream.runCollect(Stream.take(steps.after(null), 2)), {
        startImmediately: true
      })
      yield* Effect.yieldNow
      yield* emit(...upTo(10, 4))
      const [four] = yield* Fiber.join(all)
      expect(numbers(yield* Stream.runCollect(Stream.take(remote.after(four?.id ?? ""), 6)))).toEqual(upTo(10, 5))
      const other = yield* (yield* host.client).use(Log)
      expect(numbers(yield* Stream.runCollect(Stream.take(other.steps.after(four?.id ?? ""), 6)))).toEqual(upTo(10, 5))
      expect(numbers(yield* Stream.runCollect(Stream.take(steps.after(four?.id ?? ""), 6)))).toEqual(upTo(10, 5))
    }))

  it.effect("what is too old, of another epoch or nonsense is one gap, and events go on from there", () =>
    Effect.gen(function*() {
      const { emit, remote, steps } = yield* setup({ keep: 5 })
      const first = yield* Effect.forkChild(Stream.runHead(steps.after(null)), { startImmediately: true })
      yield* Effect.yieldNow
      yield* emit(1)
      const old = yield* Fiber.join(first)
      yield* emit(...upTo(20, 2))
      const oldest = old._tag === "Some" ? old.value.id : "none"
      for (const id of [oldest, "another-epoch.18", "nonsense", oldest.replace(/\d+$/, "999")]) {
        const reading = yield* Effect.forkChild(Stream.runCollect(Stream.take(remote.after(id), 3)))
        let gaps = 0
        yield* Effect.forkScoped(Stream.runForEach(remote.after(id), () => Effect.sync(() => gaps++)))
        yield* eventually(() => gaps === 1)
        for (let turn = 0; turn < 200 && reading.pollUnsafe() === undefined; turn++) {
          yield* emit(100)
          yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
        }
        expect(numbers(yield* Fiber.join(reading))).toEqual(["gap", 100, 100])
      }
    }))

  it.effect("a provider that comes back with the same epoch continues; a new one is one gap", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport)
      const { connection } = yield* host.connectWith()
      const { steps } = yield* connection.use(Log)
      const seen: Array<DurableEvent<typeof Step.Type>> = []
      yield* host.directory.declare(Log, { perSession: false })
      yield* Effect.forkScoped(
        Stream.runForEach(steps.after("run-1.2"), (event) => Effect.sync(() => seen.push(event)))
      )
      const during = (options: DurableOptions<typeof Step.Type>, ...then: ReadonlyArray<number>) =>
        Effect.gen(function*() {
          const scope = yield* Scope.make()
          const { emit } = yield* Scope.provide(provideLog(host.directory, options), scope)
          yield* emit(...then)
          yield* eventually(() => numbers(seen).at(-1) === then.at(-1))
          yield* Scope.close(scope, Exit.void)
        })
      const event = (number: number) => ({ type: "step" as const, number })
      yield* during({ resume: { epoch: "run-1", sequence: 3, events: [event(2), event(3)] } }, 4)
      yield* during({ resume: { epoch: "run-1", sequence: 4, events: [event(4)] } }, 5)
      expect(numbers(seen)).toEqual([3, 4, 5])
      const scope = yield* Scope.make()
      const { emit } = yield* Scope.provide(provideLog(host.directory), scope)
      yield* eventually(() => numbers(seen).at(-1) === "gap")
      yield* emit(1)
      yield* eventually(() => numbers(seen).at(-1) === 1)
      expect(numbers(seen)).toEqual([3, 4, 5, "gap", 1])
      yield* Scope.close(scope, Exit.void)
    }))

  it.effect("the plain stream of a durable source loses nothing across a disconnect either", () =>
    Effect.gen(function*() {
      const { connection, emit, reconnect, remote } = yield* setup()
      const seen: Array<number> = []
      yield* Effect.forkScoped(Stream.runForEach(remote, ({ number }) => Effect.sync(() => seen.push(number))))
      yield* eventually(() => {
        if (seen.length === 0) Effect.runSync(emit(0))
        return seen.length > 0
      })
      yield* connection.drop
      yield* eventually(() => connection.state.value.status === "disconnected")
      yield* emit(...upTo(3))
      yield* reconnect
      yield* eventually(() => seen.at(-1) === 3)
      expect(seen.filter((number) => number !== 0)).toEqual([1, 2, 3])
    }))

  it.effect("the plain stream of a durable source that has seen nothing yet loses nothing across a disconnect", () =>
    Effect.gen(function*() {
      const { connection, emit, frames, reconnect, remote } = yield* setup()
      const reading = yield* Effect.forkChild(Stream.runCollect(Stream.take(remote, 2)))
      yield* eventually(() => frames.received.some((frame) => frame.includes(`"type":"from"`)))
      yield* connection.drop
      yield* eventually(() => connection.state.value.status === "disconnected")
      yield* emit(1, 2)
      yield* reconnect
      expect((yield* Fiber.join(reading)).map(({ number }) => number)).toEqual([1, 2])
    }))

  it.effect("a consumer that is slow is waited for and misses nothing that the source keeps", () =>
    Effect.gen(function*() {
      const { emit, remote, steps } = yield* setup({ keep: 10_000 })
      const first = yield* Effect.forkChild(Stream.runHead(steps.after(null)), { startImmediately: true })
      yield* Effect.yieldNow
      yield* emit(0)
      const zero = yield* Fiber.join(first)
      yield* emit(...upTo(5_000))
      const seen: Array<number> = []
      yield* Stream.runForEach(
        Stream.take(remote.after(zero._tag === "Some" ? zero.value.id : ""), 5_000),
        (event) =>
          Effect.andThen(
            Effect.sync(() => event.type === "event" && seen.push(event.value.number)),
            seen.length % 500 === 0
              ? Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 5)))
              : Effect.void
          )
      )
      expect(seen).toEqual(upTo(5_000))
    }))
}
