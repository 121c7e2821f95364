/** Whatever is begun, given up and cut off in between: in the end both sides have the same, and nothing is left over. */
import { MutableRemoteState, RemoteReference, RemoteService } from "@bezel/core/service"
import { makeServiceHost } from "@bezel/core/testing"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Schema, Scope } from "effect"
import * as fc from "fast-check"
import { drained, eventually } from "../../eventually.ts"
import { connected } from "../../matrix/harness.ts"

class Job extends RemoteService.make("test.job")({ state: { done: Schema.Int }, methods: { wait: {} } }) {}
class Jobs extends RemoteService.make("test.jobs")({
  state: { count: Schema.Int },
  methods: { start: { success: RemoteReference.of(Job) } }
}) {}

const step = fc.record({
  what: fc.constantFrom("select", "attach", "leave", "start", "release", "wait", "use", "drop", "complete"),
  session: fc.constantFrom("a", "b", "c"),
  /** Turns until it is given up. */
  turns: fc.nat(12)
})

const yields = (count: number) =>
  Effect.forEach(Array.from({ length: count }), () => Effect.yieldNow, { discard: true })

describe("a client that gives up what it has begun, at any moment and over any losses of the connection", () => {
  it("ends where its host is, and leaves nothing behind", async () => {
    expect.hasAssertions()
    const run = (steps: ReadonlyArray<typeof step extends fc.Arbitrary<infer A> ? A : never>) =>
      Effect.gen(function*() {
        const attached = new Map<string, number>()
        const count = (session: string, by: number) =>
          Effect.andThen(
            yields(2),
            Effect.sync(() => {
              attached.set(session, (attached.get(session) ?? 0) + by)
            })
          )
        const host = yield* makeServiceHost({
          attach: (session) => count(session, 1),
          detach: (session) => count(session, -1)
        })
        const jobs: Array<object> = []
        const state = yield* MutableRemoteState.make(Schema.Int, 0)
        yield* host.directory.provide(Jobs, {
          count: state,
          start: () =>
            Effect.gen(function*() {
              yield* yields(3)
              const done = yield* MutableRemoteState.make(Schema.Int, 0)
              const job = yield* RemoteReference.make(Job, { done, wait: () => Effect.never }, { grace: 0 })
              jobs.push(job)
              return job
            })
        })
        const scope = yield* Scope.make()
        const client = yield* Scope.provide(host.connect({ retry: { first: 0, longest: 0 }, idle: 0 }), scope)
        yield* connected(client)
        const facade = yield* Scope.provide(client.use(Jobs), scope)
        const held: Array<
          { readonly release: Effect.Effect<void>; readonly wait: () => Effect.Effect<void, unknown> }
        > = []
        const beside: Array<Scope.Closeable> = []
        for (const { session, turns, what } of steps) {
          const own = yield* Scope.make()
          const work: Effect.Effect<unknown, unknown> = Effect.suspend((): Effect.Effect<unknown, unknown> => {
            switch (what) {
              case "select":
                return client.select(session)
              case "attach":
                beside.push(own)
                return Scope.provide(client.attach(session), own)
              case "leave": {
                const one = beside.shift()
                return one === undefined ? Effect.void : Scope.close(one, Exit.void)
              }
              case "start":
                return Effect.map(facade.start(), (job) => held.push(job))
              case "release":
                return held.shift()?.release ?? Effect.void
              case "wait":
                return held[0]?.wait() ?? Effect.void
              case "use":
                return Effect.scoped(Effect.andThen(Scope.provide(client.use(Jobs), own), facade.ready))
              case "drop":
                return client.drop
              case "complete":
                return Effect.forEach(jobs, RemoteReference.complete)
            }
          })
          const fiber = yield* Effect.forkChild(work)
          yield* yields(turns)
          yield* Fiber.interrupt(fiber)
          if (what === "use") yield* Scope.close(own, Exit.void)
        }
        yield* Effect.forEach(beside, (one) => Scope.close(one, Exit.void))
        yield* Effect.forEach(held, (job) => job.release)
        yield* connected(client)
        yield* drained
        yield* connected(client)
        yield* state.set(7)
        yield* eventually(() => facade.count.value === 7)
        const { value: shown } = client.session
        yield* drained
        expect(Object.fromEntries([...attached].filter(([, times]) => times !== 0))).toEqual(
          shown === null ? {} : { [shown]: 1 }
        )
        expect(jobs.filter((job) => RemoteReference.holders(job) > 0)).toEqual([])
        yield* Scope.close(scope, Exit.void)
        yield* drained
        expect([...attached.values()].every((times) => times === 0)).toBe(true)
        expect(Effect.runSync(host.endpoint.clients)).toEqual([])
      }).pipe(Effect.scoped)
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 25 }), (steps) => Effect.runPromise(run(steps))),
      { numRuns: 60 }
    )
  })
})
