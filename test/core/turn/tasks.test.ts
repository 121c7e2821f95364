import { Entry, type Harness, HarnessError, TaskKind } from "@bezel/core/harness"
import type { JsonValue } from "@bezel/core/json"
import { expect, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { call, never } from "../../../packages/core/src/testing/model.ts"
import { memory, open, user } from "./fixture.ts"

const settle = Effect.gen(function*() {
  for (let n = 0; n < 60; n++) yield* Effect.yieldNow
})

/** A sink that takes each batch once, as the far side of a keyed effect does. */
class Sink {
  readonly batches = new Map<string, ReadonlyArray<string>>()
  writes = 0
  write(key: string, files: ReadonlyArray<string>): void {
    this.writes++
    if (!this.batches.has(key)) this.batches.set(key, files)
  }
}

const Checkpoint = Schema.Union([
  Schema.Struct({ phase: Schema.Literal("scanning"), at: Schema.Int }),
  Schema.Struct({ phase: Schema.Literal("writing"), at: Schema.Int, key: Schema.String })
])

/** An indexer: scans in batches of two, writes each batch under a key that was stored before the effect. */
const indexer = (files: ReadonlyArray<string>, sink: Sink, crash: { readonly afterWrite: Effect.Effect<void> }) => {
  const batchAt = (at: number) => ({ key: `batch-${at}`, files: files.slice(at, at + 2) })
  return TaskKind.make("repo.indexer", {
    input: Schema.Struct({ root: Schema.String }),
    checkpoint: Checkpoint,
    slot: { schema: Schema.Struct({ files: Schema.mutableKey(Schema.Int) }), initial: { files: 0 } },
    result: Schema.Struct({ files: Schema.Int }),
    failure: Schema.Struct({ reason: Schema.String }),
    initial: () => Effect.succeed({ next: { phase: "scanning", at: 0 } as const }),
    phases: {
      scanning: (task, api) =>
        Effect.gen(function*() {
          const { at } = task.checkpoint
          if (at >= files.length) {
            return { done: (tx) => ({ status: "completed", result: { files: tx.slot.files } }) } as const
          }
          const batch = batchAt(at)
          yield* api.commit((tx) => tx.checkpoint({ phase: "writing", at, key: batch.key }))
          sink.write(batch.key, batch.files)
          yield* crash.afterWrite
          return {
            next: (tx) => {
              tx.slot.files += batch.files.length
              return { phase: "scanning", at: at + 2 } as const
            }
          }
        }),
      // In flight: entered only after a crash. The same key again; the sink takes it once.
      writing: (task) =>
        Effect.sync(() => {
          const { at, key } = task.checkpoint
          sink.write(key, batchAt(at).files)
          return {
            next: (tx) => {
              tx.slot.files += batchAt(at).files.length
              return { phase: "scanning", at: at + 2 } as const
            }
          }
        })
    },
    describe: (task) => ({ stage: task.checkpoint?.phase ?? "starting", files: task.slot.files })
  })
}

const start = (harness: Harness, kind: ReturnType<typeof indexer>) =>
  harness.main.commit((tx) => tx.createTask(kind, { root: "." }, { background: true }))

it.effect("a custom kind runs through its phases to its result, and shows through describe", () =>
  Effect.gen(function*() {
    const { harness } = yield* open(memory().storage(), [])
    const sink = new Sink()
    const hold = yield* Deferred.make<void>()
    const kind = indexer(["a", "b", "c"], sink, { afterWrite: Deferred.await(hold) })
    yield* harness.task(kind)
    yield* harness.resume
    const watch = yield* harness.main.watch
    const events: Array<string> = []
    yield* Effect.forkChild(
      Stream.runForEach(
        watch.envelopes,
        (envelope) => Effect.sync(() => events.push(...envelope.events.map((event) => event.type)))
      )
    )
    const ref = yield* start(harness, kind)
    yield* settle
    const { view } = yield* harness.main.snapshot
    expect(view.tasks[ref.id]).toEqual({
      kind: "repo.indexer",
      background: true,
      status: { stage: "writing", files: 0 }
    })
    yield* Deferred.succeed(hold, undefined)
    expect(yield* harness.main.waitForTask(ref)).toEqual({ status: "completed", result: { files: 3 }, failure: null })
    expect((yield* harness.main.snapshot).view.tasks).toEqual({})
    yield* settle
    expect(events).toEqual(["task.started", "task.ended"])
    expect([...sink.batches.values()].flat()).toEqual(["a", "b", "c"])
  }))

it.effect("a crash in the in-flight phase re-enters it and repeats the keyed effect, which counts once", () =>
  Effect.gen(function*() {
    const session = memory()
    const sink = new Sink()
    const scope = yield* Scope.make()
    const first = yield* open(session.storage(), []).pipe(Scope.provide(scope))
    const crashing = indexer(["a", "b", "c"], sink, { afterWrite: Effect.never })
    yield* first.harness.task(crashing).pipe(Scope.provide(scope))
    yield* first.harness.resume
    const ref = yield* start(first.harness, crashing)
    yield* settle
    expect(sink.writes).toBe(1)
    yield* Scope.close(scope, Exit.void)
    const second = yield* open(session.storage(), [])
    const kind = indexer(["a", "b", "c"], sink, { afterWrite: Effect.void })
    yield* second.harness.task(kind)
    yield* second.harness.resume
    expect(yield* second.harness.main.waitForTask(ref)).toMatchObject({ status: "completed", result: { files: 3 } })
    expect(sink.writes).toBe(3)
    expect(sink.batches.size).toBe(2)
  }))

it.effect("a kind missing at resume orphans its tasks; one that comes later leaves new tasks pending until it is there", () =>
  Effect.gen(function*() {
    const session = memory()
    const scope = yield* Scope.make()
    const first = yield* open(session.storage(), []).pipe(Scope.provide(scope))
    const kind = indexer(["a"], new Sink(), { afterWrite: Effect.void })
    const registration = yield* first.harness.task(kind).pipe(Scope.provide(scope))
    const lost = yield* start(first.harness, kind)
    yield* Scope.close(scope, Exit.void)
    const second = yield* open(session.storage(), [])
    yield* second.harness.resume
    expect(yield* second.harness.main.waitForTask(lost)).toMatchObject({ status: "orphaned" })
    const again = yield* second.harness.task(kind)
    const unknown = yield* start(second.harness, kind)
    yield* again.unregister
    yield* registration.unregister
    expect((yield* Effect.flip(start(second.harness, kind))).code).toBe("stale_definition")
    yield* second.harness.task(kind)
    expect(yield* second.harness.main.waitForTask(unknown)).toMatchObject({ status: "completed" })
  }))

it.effect("after orders tasks: any end of the earlier one satisfies it", () =>
  Effect.gen(function*() {
    const { harness } = yield* open(memory().storage(), [])
    const sink = new Sink()
    const kind = indexer(["a"], sink, { afterWrite: Effect.never })
    const quick = TaskKind.make("quick", {
      input: Schema.Struct({}),
      checkpoint: Schema.Struct({ phase: Schema.Literal("none") }),
      slot: { schema: Schema.Struct({}), initial: {} },
      result: Schema.Struct({ ok: Schema.Boolean }),
      failure: Schema.Never,
      initial: () => Effect.succeed({ done: () => ({ status: "completed", result: { ok: true } }) } as const),
      phases: { none: () => Effect.succeed("retry" as const) }
    })
    yield* harness.task(kind)
    yield* harness.task(quick)
    yield* harness.resume
    const [first, second] = yield* harness.main.commit((tx) => {
      const one = tx.createTask(kind, { root: "." }, { background: true })
      return [one, tx.createTask(quick, {}, { after: [one] })] as const
    })
    yield* settle
    expect((yield* harness.main.snapshot).view.tasks[second.id]?.status).toEqual({ phase: "starting" })
    expect(yield* harness.main.abortTask(first)).toMatchObject({ status: "aborted" })
    expect(yield* harness.main.waitForTask(second)).toMatchObject({ status: "completed", result: { ok: true } })
  }))

it.effect("a background task survives an abort of the turn", () =>
  Effect.gen(function*() {
    const { harness } = yield* open(memory().storage(), [[never]])
    const hold = yield* Deferred.make<void>()
    const kind = indexer(["a"], new Sink(), { afterWrite: Deferred.await(hold) })
    yield* harness.task(kind)
    yield* harness.resume
    const ref = yield* start(harness, kind)
    const input = yield* harness.main.send(user("go"))
    yield* settle
    yield* harness.main.abort()
    expect(yield* input.wait).toMatchObject({ reason: "aborted" })
    yield* Deferred.succeed(hold, undefined)
    expect(yield* harness.main.waitForTask(ref)).toMatchObject({ status: "completed" })
  }))

it.effect("a commit is stored whole or leaves nothing, and the line goes on behind a failed one", () =>
  Effect.gen(function*() {
    const { harness } = yield* open(memory().storage(), [])
    const ns = yield* harness.namespace("n", { sticky: { count: 0 } })
    const failed = yield* Effect.exit(harness.main.commit((tx) => {
      tx.plugins(ns).count = 1
      tx.write("note", { data: 1 })
      throw new Error("changed my mind")
    }))
    expect(Exit.hasDies(failed)).toBe(true)
    expect(yield* ns.get(harness.main.id)).toEqual({ count: 0 })
    expect((yield* harness.main.snapshot).view.entries).toEqual([])
    yield* harness.main.commit((tx) => {
      tx.plugins(ns).count = 2
    })
    expect(yield* ns.get(harness.main.id)).toEqual({ count: 2 })
  }))

it.effect("a commit inside a commit fails at once instead of waiting for itself", () =>
  Effect.gen(function*() {
    const { harness } = yield* open(memory().storage(), [])
    const fault = yield* Effect.flip(harness.main.commit(() => harness.main.commit(() => 1)))
    expect(fault).toMatchObject({ code: "nested_commit" })
    expect(yield* harness.main.commit(() => 2)).toBe(2)
  }))

it.effect("a read that the commit could change is refused and voids the commit, also when caught", () =>
  Effect.gen(function*() {
    const { harness } = yield* open(memory().storage(), [])
    const ci = Entry.define("ci.result", Schema.Struct({ run: Schema.Int }))
    const fault = yield* Effect.flip(harness.main.commit((tx) => {
      tx.write(ci, { data: { run: 1 } })
      return Effect.ignore(tx.newestEntry(ci))
    }))
    expect(fault).toMatchObject({ code: "read_after_write" })
    expect((yield* harness.main.snapshot).view.entries).toEqual([])
    yield* harness.main.write(ci, { data: { run: 2 } })
    const newest = yield* harness.main.commit((tx) => tx.newestEntry(ci))
    expect(newest !== null && ci.is(newest) && newest.data.run).toBe(2)
  }))

it.effect("a transaction or draft used after its commit is refused and changes nothing", () =>
  Effect.gen(function*() {
    const { harness } = yield* open(memory().storage(), [])
    const ns = yield* harness.namespace("n", { sticky: { a: 0 } })
    let draft: { [key: string]: JsonValue } = {}
    let write = () => ""
    yield* harness.main.commit((tx) => {
      draft = tx.plugins(ns)
      write = () => tx.write("late", {})
    })
    expect(() => {
      draft.a = 1
    }).toThrow(HarnessError)
    expect(write).toThrow(HarnessError)
    expect(yield* ns.get(harness.main.id)).toEqual({ a: 0 })
  }))

it.effect("core names are refused at run time, also behind a cast", () =>
  Effect.gen(function*() {
    const { harness } = yield* open(memory().storage(), [[call("echo", { text: "a" })], "ok"])
    expect(() => Entry.define("bezel.x", Schema.Unknown)).toThrow(HarnessError)
    const cast = { name: "bezel.generation", input: Schema.Struct({}) }
    expect((yield* Effect.flip(harness.main.commit((tx) => tx.createTask(cast, {})))).code).toBe("not_permitted")
    expect(
      (yield* Effect.flip(harness.main.write({ kind: "bezel.user", is: (data): data is never => data !== null }, {})))
        .code
    ).toBe(
      "not_permitted"
    )
    const notice = { model: [{ role: "user" as const, content: [] }], head: { after: null } }
    expect((yield* Effect.flip(harness.main.write("bezel.notice", notice))).code).toBe("not_permitted")
  }))

it.effect("an invocation that was aborted cannot write any more", () =>
  Effect.gen(function*() {
    const { harness } = yield* open(memory().storage(), [])
    const late = yield* Deferred.make<string>()
    const kind = TaskKind.make("stubborn", {
      input: Schema.Struct({}),
      checkpoint: Schema.Struct({ phase: Schema.Literal("none") }),
      slot: { schema: Schema.Struct({}), initial: {} },
      result: Schema.Struct({}),
      failure: Schema.Never,
      initial: (_, api) =>
        Effect.onInterrupt(Effect.never, () =>
          Effect.flatMap(Effect.flip(api.commit(() => {})), (error) =>
            Deferred.succeed(late, error.code)).pipe(Effect.ignore)),
      phases: {
        none: () =>
          Effect.succeed("retry" as const)
      }
    })
    yield* harness.task(kind)
    yield* harness.resume
    const ref = yield* harness.main.commit((tx) =>
      tx.createTask(kind, {})
    )
    yield* settle
    yield* harness.main.abortTask(ref)
    expect(yield* Deferred.await(late)).toBe("stale_invocation")
  }))

it.effect("a kind's settings have defaults, travel with forks, and collide with no other kind's", () =>
  Effect.gen(function*() {
    const { harness } = yield* open(memory().storage(), ["hello"])
    const reading = (name: string) =>
      TaskKind.make(name, {
        input: Schema.Struct({}),
        checkpoint: Schema.Struct({ phase: Schema.Literal("none") }),
        slot: { schema: Schema.Struct({}), initial: {} },
        result: Schema.Json,
        failure: Schema.Never,
        config: { indexIgnore: [] },
        initial: (_, api) =>
          Effect.map(api.config, (config) => ({ done: () => ({ status: "completed", result: config }) } as const)),
        phases: { none: () => Effect.succeed("retry" as const) }
      })
    const kind = reading("indexer")
    yield* harness.task(kind)
    expect((yield* Effect.flip(harness.task(reading("other")))).code).toBe("duplicate")
    yield* harness.resume
    const result = (conversation: Harness["main"]) =>
      Effect.flatMap(conversation.commit((tx) => tx.createTask(kind, {})), conversation.waitForTask)
    expect(yield* result(harness.main)).toMatchObject({ result: { indexIgnore: [] } })
    yield* harness.main.configure({ kinds: { indexIgnore: ["dist"] } })
    expect(yield* result(harness.main)).toMatchObject({ result: { indexIgnore: ["dist"] } })
    expect((yield* Effect.flip(harness.main.configure({ kinds: { nobodys: 1 } }))).code).toBe("not_permitted")
    yield* Effect.flatMap(harness.main.send(user("go")), (input) => input.wait)
    const forked = yield* harness.main.fork((yield* harness.main.snapshot).view.entries.at(-1)?.id ?? "")
    expect(yield* result(forked)).toMatchObject({ result: { indexIgnore: ["dist"] } })
  }))
