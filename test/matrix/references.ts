/** Objects that methods return, as one text for every transport: the service that indexes, and its jobs. */
import {
  type Capability,
  MutableRemoteEvents,
  MutableRemoteState,
  RemoteReference,
  RemoteService,
  type ServiceDirectoryShape
} from "@bezel/core/service"
import { expect, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Logger, Schema, Scope, Stream } from "effect"
import { TestClock } from "effect/testing"
import { connected, eventually, makeHost, type TransportUnderTest, until, untilStatus } from "./harness.ts"

const Progress = Schema.Struct({ done: Schema.Int, state: Schema.Literals(["running", "done", "cancelled"]) })

class IndexJob extends RemoteService.make("test.index.job")({
  state: { progress: Progress },
  events: { file: Schema.Struct({ type: Schema.Literal("file"), path: Schema.String }) },
  methods: { wait: { success: Schema.Int }, cancel: {} }
}) {}

class Index extends RemoteService.make("test.index")({
  methods: {
    start: { payload: Schema.Struct({ path: Schema.String }), success: RemoteReference.of(IndexJob) },
    /** Data that looks like a reference. */
    lookalike: { payload: Schema.Json, success: Schema.Json },
    lie: { success: RemoteReference.of(IndexJob) },
    wait: { success: RemoteReference.of(IndexJob) }
  }
}) {}

const provideIndex = (directory: ServiceDirectoryShape, placement: { readonly session?: string } = {}) =>
  Effect.gen(function*() {
    const jobs: Array<{
      readonly advance: Effect.Effect<void>
      readonly finish: Effect.Effect<void>
      readonly file: (path: string) => Effect.Effect<void>
      readonly progress: () => typeof Progress.Type
      readonly waiting: () => number
      readonly released: () => number
      readonly holders: () => number
    }> = []
    const entered = yield* Deferred.make<void>()
    const makeJob = Effect.gen(function*() {
      const progress = yield* MutableRemoteState.make(Progress, { done: 0, state: "running" })
      const file = yield* MutableRemoteEvents.make(IndexJob.contract.events.file)
      const over = yield* Deferred.make<number>()
      let waiting = 0
      let released = 0
      const end = (state: "done" | "cancelled"): Effect.Effect<void> =>
        Effect.gen(function*() {
          yield* progress.update((draft) => {
            draft.state = state
          })
          yield* Deferred.succeed(over, progress.value.done)
          yield* RemoteReference.complete(job)
        })
      const job: Capability<typeof IndexJob> = yield* RemoteReference.make(IndexJob, {
        progress,
        file,
        wait: () =>
          Effect.suspend(() => {
            waiting++
            return Deferred.await(over)
          }).pipe(Effect.ensuring(Effect.sync(() => {
            waiting--
          }))),
        cancel: () => end("cancelled")
      }, {
        grace: "5 seconds",
        released: Effect.sync(() => {
          released++
        })
      })
      jobs.push({
        advance: progress.update((draft) => {
          draft.done++
        }),
        finish: end("done"),
        file: (path) => file.emit({ type: "file", path }),
        progress: () => progress.value,
        waiting: () => waiting,
        released: () => released,
        holders: () => RemoteReference.holders(job)
      })
      return job
    })
    yield* directory.provide(Index, {
      start: () => makeJob,
      lookalike: (value) => Effect.succeed(value),
      // @ts-expect-error: a provider that breaks its contract at run time.
      lie: () => Effect.succeed({ reference: 1 }),
      wait: () => Effect.andThen(Deferred.succeed(entered, undefined), Effect.never)
    }, placement)
    const job = (number = 0) => {
      const found = jobs[number]
      if (found === undefined) throw new Error(`there is no job ${number}`)
      return found
    }
    return { job, jobs, entered: Deferred.await(entered) }
  })

const started = (transport: TransportUnderTest) =>
  Effect.gen(function*() {
    const host = yield* makeHost(transport)
    const provider = yield* provideIndex(host.directory)
    const { connection, frames } = yield* host.connectWith({ retry: { first: "1 second", longest: "1 second" } })
    const index = yield* connection.use(Index)
    const job = yield* index.start({ path: "/src" })
    return { host, provider, connection, frames, index, job }
  })

export const references = (transport: TransportUnderTest) => {
  it.effect("a method returns an object with states, events and methods of its own", () =>
    Effect.gen(function*() {
      const { job, provider } = yield* started(transport)
      yield* until(job.progress, ({ done }) => done === 0)
      yield* provider.job().advance
      yield* until(job.progress, ({ done }) => done === 1)
      const files: Array<string> = []
      yield* Effect.forkScoped(Stream.runForEach(job.file, ({ path }) => Effect.sync(() => files.push(path))))
      yield* eventually(() => {
        if (files.length === 0) Effect.runSync(provider.job().file("a.ts"))
        return files.length > 0
      })
      const waiting = yield* Effect.forkChild(job.wait())
      yield* provider.job().finish
      expect(yield* Fiber.join(waiting)).toBe(1)
      yield* until(job.progress, ({ state }) => state === "done")
    }))

  it.effect("in the providing process the object itself is returned, with the same members", () =>
    Effect.gen(function*() {
      const { host, provider } = yield* started(transport)
      const job = yield* (yield* host.directory.use(Index)).start({ path: "/here" })
      expect(job.progress.value).toBe(provider.job(1).progress())
      yield* job.cancel()
      expect(job.progress.value.state).toBe("cancelled")
      yield* job.release
      expect(provider.job(1).holders()).toBe(0)
    }))

  it.effect("interrupting a wait ends that wait and cancels no job; cancel ends it for everyone", () =>
    Effect.gen(function*() {
      const { job, provider } = yield* started(transport)
      const [one, two] = yield* Effect.all([Effect.forkChild(job.wait()), Effect.forkChild(job.wait())])
      yield* eventually(() => provider.job().waiting() === 2)
      yield* Fiber.interrupt(one)
      yield* eventually(() => provider.job().waiting() === 1)
      expect(provider.job().progress().state).toBe("running")
      yield* job.cancel()
      expect(provider.job().progress().state).toBe("cancelled")
      expect(yield* Fiber.join(two)).toBe(0)
    }))

  it.effect("a reference that is given back is stale here and there, and what it is of goes on", () =>
    Effect.gen(function*() {
      const { job, provider } = yield* started(transport)
      yield* job.ready
      expect(provider.job().holders()).toBe(1)
      yield* job.release
      yield* eventually(() => provider.job().released() === 1)
      yield* job.release
      expect([provider.job().holders(), provider.job().released()]).toEqual([0, 1])
      expect(yield* Effect.flip(job.wait())).toMatchObject({ code: "stale_reference" })
      yield* untilStatus(job.progress, "stale")
      expect(provider.job().progress().state).toBe("running")
    }))

  it.effect("a disconnect gives back what the client holds; open calls are disconnected, later ones stale", () =>
    Effect.gen(function*() {
      const { connection, index, job, provider } = yield* started(transport)
      yield* job.ready
      const waiting = yield* Effect.forkChild(Effect.flip(job.wait()))
      yield* eventually(() => provider.job().waiting() === 1)
      yield* connection.drop
      expect(yield* Fiber.join(waiting)).toMatchObject({ code: "disconnected" })
      yield* eventually(() => provider.job().released() === 1)
      expect(yield* Effect.flip(job.cancel())).toMatchObject({ code: "stale_reference" })
      yield* TestClock.adjust("1 second")
      yield* connected(connection)
      // The next connection counts anew; the old object must not reach what has its number now.
      const next = yield* index.start({ path: "/again" })
      expect(yield* Effect.flip(job.cancel())).toMatchObject({ code: "stale_reference" })
      expect(provider.job(1).progress().state).toBe("running")
      yield* next.cancel()
      expect(provider.job(1).progress().state).toBe("cancelled")
      expect([job.progress.value?.state, job.progress.status]).toEqual(["running", "stale"])
    }))

  it.effect("a completed object can be used for its grace time and is stale then", () =>
    Effect.gen(function*() {
      const { job, provider } = yield* started(transport)
      yield* job.ready
      yield* provider.job().finish
      yield* TestClock.adjust("4 seconds")
      expect(yield* job.wait()).toBe(0)
      yield* until(job.progress, ({ state }) => state === "done")
      yield* TestClock.adjust("1 second")
      yield* eventually(() => provider.job().released() === 1)
      expect(yield* Effect.flip(job.wait())).toMatchObject({ code: "stale_reference" })
      yield* untilStatus(job.progress, "stale")
      expect(job.progress.value?.state).toBe("done")
    }))

  it.effect("it ends with the provider of the service that returned it", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport)
      const scope = yield* Scope.make()
      const provider = yield* Scope.provide(provideIndex(host.directory), scope)
      const client = yield* host.client
      const job = yield* (yield* client.use(Index)).start({ path: "/" })
      const waiting = yield* Effect.forkChild(Effect.flip(job.wait()))
      yield* eventually(() => provider.job().waiting() === 1)
      yield* Scope.close(scope, Exit.void)
      expect((yield* Fiber.join(waiting)).code).toBe("unavailable")
      yield* eventually(() => provider.job().released() === 1)
      expect(yield* Effect.flip(job.wait())).toMatchObject({ code: "stale_reference" })
    }))

  it.effect("it is of the connection that received it and of no other", () =>
    Effect.gen(function*() {
      const { host, provider } = yield* started(transport)
      const answers: Array<string> = []
      const raw = yield* host.raw
      yield* Effect.forkScoped(raw.run((frame) => Effect.sync(() => answers.push(frame))))
      const send = (id: number, tag: string, payload: object) =>
        raw.send(JSON.stringify({ _tag: "Request", id, tag, payload, headers: [] }))
      for (let reference = 0; reference < 3; reference++) {
        yield* send(reference, "call", { service: "test.index.job", reference, member: "cancel", payload: null })
      }
      yield* send(3, "watch", { type: "states", service: "test.index.job", reference: 1 })
      yield* send(4, "call", { service: "test.index.job", member: "cancel", payload: null })
      yield* eventually(() => answers.length === 5)
      const [one, two, three, four, five] = [0, 1, 2, 3, 4].map((id) =>
        answers.find((answer) => answer.includes(`"requestId":${id}`))
      )
      for (const answer of [one, two, three, four]) expect(answer).toContain("stale_reference")
      expect(five).toContain("unknown_service")
      expect(provider.job().progress().state).toBe("running")
    }))

  it.effect("it reaches only the members of its own contract", () =>
    Effect.gen(function*() {
      const { host } = yield* started(transport)
      const answers: Array<string> = []
      const raw = yield* host.raw
      yield* Effect.forkScoped(raw.run((frame) => Effect.sync(() => answers.push(frame))))
      const call = (id: number, payload: object) =>
        raw.send(JSON.stringify({ _tag: "Request", id, tag: "call", payload, headers: [] }))
      yield* call(1, { service: "test.index", member: "start", payload: { path: "/" }, hold: 7 })
      yield* eventually(() => answers.length === 1)
      expect(answers[0]).toContain(`{"reference":7}`)
      yield* call(2, { service: "test.index.job", reference: 7, member: "release", payload: null })
      yield* call(3, { service: "test.index", reference: 7, member: "start", payload: { path: "/" }, hold: 8 })
      yield* call(4, { service: "test.index", member: "start", payload: { path: "/" }, hold: 7 })
      yield* call(5, { service: "test.index", member: "start", payload: { path: "/" } })
      yield* eventually(() => answers.length === 5)
      const codes = answers.slice(1).map((answer) => /"code":"(\w+)"/.exec(answer)?.[1])
      expect(codes).toEqual(["unknown_member", "stale_reference", "invalid_arguments", "invalid_arguments"])
    }))

  it.effect("what merely looks like a reference stays data", () =>
    Effect.gen(function*() {
      const { index } = yield* started(transport)
      for (
        const value of [{ reference: 1 }, { "~reference": 1 }, ["append", ["a"], "b"], { _tag: "Exit", requestId: 1 }]
      ) {
        expect(yield* index.lookalike(value)).toEqual(value)
      }
      const error = yield* Effect.flip(index.lie())
      expect(error).toMatchObject({ code: "invalid_result" })
    }).pipe(Effect.provide(Logger.layer([]))))

  it.effect("a caller that is interrupted leaves nothing held", () =>
    Effect.gen(function*() {
      const { connection, index, provider } = yield* started(transport)
      const call = yield* Effect.forkChild(index.wait())
      yield* provider.entered
      yield* Fiber.interrupt(call)
      for (let turn = 0; turn < 20; turn++) {
        const start = yield* Effect.forkChild(index.start({ path: "/" }))
        for (let step = 0; step < turn; step++) yield* Effect.yieldNow
        yield* Fiber.interrupt(start)
        const exit = yield* Fiber.await(start)
        // In time after all: then it is the caller's to give back.
        if (Exit.isSuccess(exit)) yield* exit.value.release
      }
      // In order behind everything that was given back.
      yield* connection.catalogue
      const kept = provider.jobs.map((job) => job.holders())
      expect(kept[0]).toBe(1)
      yield* eventually(() => provider.jobs.slice(1).every((job) => job.holders() === 0))
    }))

  it.effect("a client that holds too many is told overloaded before anything starts", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport, { referenceLimit: 2 })
      const provider = yield* provideIndex(host.directory)
      const index = yield* (yield* host.client).use(Index)
      const [first] = yield* Effect.all([index.start({ path: "1" }), index.start({ path: "2" })])
      expect(yield* Effect.flip(index.start({ path: "3" }))).toMatchObject({ code: "overloaded" })
      expect(provider.jobs).toHaveLength(2)
      yield* first.release
      yield* index.start({ path: "4" })
      expect(provider.jobs).toHaveLength(3)
    }))

  it.effect("one that belongs to a session is out of reach when another session is selected", () =>
    Effect.gen(function*() {
      const host = yield* makeHost(transport)
      const provider = yield* provideIndex(host.directory, { session: "one" })
      const client = yield* host.client
      yield* client.select("one")
      const job = yield* (yield* client.use(Index)).start({ path: "/" })
      yield* client.select("two")
      expect(yield* Effect.flip(job.cancel())).toMatchObject({ code: "unauthorized" })
      expect(provider.job().progress().state).toBe("running")
    }))
}
