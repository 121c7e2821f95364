/** What is followed before the code that shows it is there: a session that opens again, a plugin that comes later. */
import { TaskKind } from "@bezel/core/harness"
import { apply } from "@bezel/core/json"
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Schema, Stream } from "effect"
import { memory, open } from "./fixture.ts"

const begun = Deferred.makeUnsafe<void>()

const worker = TaskKind.make("test.worker", {
  input: Schema.Struct({}),
  checkpoint: Schema.Struct({ phase: Schema.Literal("working") }),
  slot: { schema: Schema.Struct({ step: Schema.mutableKey(Schema.Finite) }), initial: { step: 0 } },
  result: Schema.Null,
  failure: Schema.Null,
  initial: () => Effect.succeed({ next: { phase: "working" as const } }),
  phases: {
    working: (_, api) =>
      api.commit((tx) => {
        tx.slot.step = 7
      }).pipe(Effect.andThen(Deferred.succeed(begun, undefined)), Effect.andThen(Effect.never))
  },
  describe: ({ slot }) => ({ step: slot.step })
})

describe("a view that is followed before the plugins are there", () => {
  it.effect("shows tasks and namespaces once their code is registered, in an envelope each, and the same as a late joiner sees", () =>
    Effect.gen(function*() {
      const session = memory()
      yield* Effect.scoped(Effect.gen(function*() {
        const { harness } = yield* open(session.storage(), [])
        yield* harness.task(worker)
        const counter = yield* harness.namespace("counter", { sticky: { calls: 0 } })
        yield* harness.resume
        yield* counter.update(harness.main.id, (draft) => {
          draft.calls = 3
        })
        yield* harness.main.commit((tx) => tx.createTask(worker, {}, { background: true }))
        yield* Deferred.await(begun)
      }))
      const { harness } = yield* open(session.storage(), [])
      const watch = yield* harness.main.watch
      expect([watch.view.tasks, watch.view.plugins]).toEqual([{}, {}])
      yield* harness.namespace("counter", { sticky: { calls: 0 } }, { view: ({ calls }) => calls ?? 0 })
      yield* harness.namespace("silent", { sticky: { calls: 0 } })
      yield* harness.task(worker)
      const envelopes = yield* watch.envelopes.pipe(Stream.take(2), Stream.runCollect)
      expect(envelopes.map(({ revision }) => revision)).toEqual([watch.revision + 1, watch.revision + 2])
      const seen = envelopes.reduce((view, { operations }) => apply(view, operations), watch.view)
      expect(Object.values(seen.tasks)).toEqual([{ kind: "test.worker", background: true, status: { step: 7 } }])
      expect(seen.plugins).toEqual({ counter: 3 })
      const { revision, view } = yield* harness.main.snapshot
      expect([revision, view]).toEqual([watch.revision + 2, seen])
    }).pipe(Effect.scoped))
})
