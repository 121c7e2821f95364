/** How a client comes back: by itself, after delays that grow, for as long as it is wanted. */
import { Connection, Endpoint, loopback, type Transport } from "@bezel/core/rpc"
import { InteractionBroker, RemoteService, ServiceDirectory, ServiceError } from "@bezel/core/service"
import { makeServiceHost, type ServiceHost } from "@bezel/core/testing"
import { describe, expect, it } from "@effect/vitest"
import { Clock, Effect, Fiber, Schema } from "effect"
import { TestClock } from "effect/testing"
import { connected, eventually, until } from "../../matrix/harness.ts"

const nobody = new ServiceError({ code: "disconnected", message: "Nobody is there." })

/** A client of a host that is there or not, and when it was looked for, in milliseconds. */
const scene = Effect.gen(function*() {
  const directory = yield* ServiceDirectory.make
  const broker = yield* InteractionBroker.make
  const endpoint = yield* Endpoint.make().pipe(
    Effect.provideService(ServiceDirectory, directory),
    Effect.provideService(InteractionBroker, broker)
  )
  const attempts: Array<number> = []
  const host = { isThere: false }
  const connection = yield* Connection.make({
    label: "test",
    connect: Effect.gen(function*() {
      attempts.push(yield* Clock.currentTimeMillis)
      return host.isThere ? yield* loopback(endpoint) : yield* nobody
    })
  })
  return { attempts, connection, host }
})

describe("a client whose host is not there", () => {
  it.effect("looks for it again after a tenth of a second, then twice as long each time, and every five seconds in the end", () =>
    Effect.gen(function*() {
      const { attempts } = yield* scene
      yield* TestClock.adjust("22 seconds")
      expect(attempts).toEqual([0, 100, 300, 700, 1_500, 3_100, 6_300, 11_300, 16_300, 21_300])
    }))

  it.effect("is told why, is connected when the host comes, and begins with short delays when that is lost again", () =>
    Effect.gen(function*() {
      const { attempts, connection, host } = yield* scene
      yield* TestClock.adjust("10 seconds")
      expect(connection.state.value).toEqual({
        status: "disconnected",
        reason: { code: "disconnected", message: nobody.message }
      })
      host.isThere = true
      yield* TestClock.adjust("5 seconds")
      yield* until(connection.state, ({ status }) => status === "connected")
      expect(connection.state.value).toEqual({ status: "connected" })
      host.isThere = false
      const before = attempts.length
      yield* connection.drop
      yield* until(connection.state, ({ status }) => status === "disconnected")
      const lost = yield* Clock.currentTimeMillis
      yield* TestClock.adjust("1 second")
      expect(attempts.slice(before).map((time) => time - lost)).toEqual([100, 300, 700])
    }))
})

describe("a client of whose host nothing comes any more, though the connection is open", () => {
  class Watch extends RemoteService.make("test.watch")({ methods: { now: { success: Schema.Int }, wait: {} } }) {}

  it.effect("gives the connection up after a minute, says so, and makes another one", () =>
    Effect.gen(function*() {
      const host = yield* makeServiceHost()
      yield* host.directory.provide(Watch, { now: () => Effect.succeed(1), wait: () => Effect.never })
      let isSwallowed = false
      const swallowing = Effect.map(loopback(host.endpoint), (transport): Transport => ({
        ...transport,
        run: (onFrame) => transport.run((frame) => isSwallowed ? null : onFrame(frame))
      }))
      const client = yield* host.connect({ connect: swallowing, retry: { first: "1 second", longest: "1 second" } })
      yield* connected(client)
      const watch = yield* client.use(Watch)
      const waiting = yield* Effect.forkChild(Effect.flip(watch.wait()))
      for (let minute = 0; minute < 5; minute++) {
        yield* TestClock.adjust("1 minute")
        expect(yield* watch.now()).toBe(1)
      }
      isSwallowed = true
      yield* TestClock.adjust("60 seconds")
      expect(client.state.value.status).toBe("connected")
      yield* TestClock.adjust("10 seconds")
      expect((yield* Fiber.join(waiting)).code).toBe("disconnected")
      const { reason } = yield* until(client.state, ({ status }) => status === "disconnected")
      expect(reason).toMatchObject({ code: "disconnected", message: expect.stringContaining("Nothing has come") })
      isSwallowed = false
      yield* TestClock.adjust("1 second")
      yield* connected(client)
      expect(yield* watch.now()).toBe(1)
    }))
})

describe("a client that comes back to a host that has started anew", () => {
  class Job extends RemoteService.make("test.job")({ methods: { host: { success: Schema.String } } }) {}

  it.effect("takes nothing of it for what was there before, although it counts from the beginning", () =>
    Effect.gen(function*() {
      const [before, after] = [yield* makeServiceHost(), yield* makeServiceHost()]
      const provide = ({ directory }: ServiceHost, name: string) =>
        directory.provide(Job, { host: () => Effect.succeed(name) }, { key: "one" })
      const old = yield* provide(before, "before")
      const fresh = yield* provide(after, "after")
      expect(fresh.generation).toBe(old.generation)
      const host = { now: before }
      const client = yield* before.connect({
        connect: Effect.suspend(() => loopback(host.now.endpoint)),
        retry: { first: 0, longest: 0 }
      })
      const seen: Array<string> = []
      yield* client.observe(Job, (job) =>
        Effect.gen(function*() {
          const name = yield* job.host()
          seen.push(name)
          yield* Effect.onInterrupt(Effect.never, () => Effect.sync(() => seen.push(`${name} is over`)))
        }))
      yield* eventually(() => seen.length === 1)
      host.now = after
      yield* client.drop
      yield* eventually(() => seen.length === 3)
      expect(seen).toEqual(["before", "before is over", "after"])
    }))
})
