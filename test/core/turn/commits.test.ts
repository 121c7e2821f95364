import type { Batch } from "@bezel/core/storage"
import { StorageError } from "@bezel/core/storage"
import { expect, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import { memory, open, settle, simpleKind, user, watched } from "./fixture.ts"

it.effect("nobody sees what a commit writes before storage has it, and then all of it at once", () =>
  Effect.gen(function*() {
    const stored = yield* Deferred.make<void>()
    let slow = false
    const storage = watched(memory().storage(), () => slow ? Deferred.await(stored) : Effect.void)
    const { harness } = yield* open(storage, [])
    const ns = yield* harness.namespace("n", { sticky: { count: 0 } }, { view: ({ count }) => count ?? null })
    const before = (yield* harness.main.snapshot).view
    const watch = yield* harness.main.watch
    const seen: Array<number> = []
    yield* Effect.forkChild(
      Stream.runForEach(watch.envelopes, ({ events }) => Effect.sync(() => seen.push(events.length)))
    )
    slow = true
    const commit = yield* Effect.forkChild(harness.main.commit((tx) => {
      tx.write("note", { data: 1 })
      tx.plugins(ns).count = 1
      tx.emit(ns, "counted", { count: 1 })
    }))
    const reading = yield* Effect.forkChild(harness.main.snapshot)
    yield* settle
    expect(seen).toEqual([])
    expect(watch.view).toEqual(before)
    expect(reading.pollUnsafe()).toBeUndefined()
    yield* Deferred.succeed(stored, undefined)
    yield* Fiber.join(commit)
    yield* settle
    expect(seen).toEqual([2])
    expect((yield* Fiber.join(reading)).view).toMatchObject({ entries: [{ kind: "note" }], plugins: { n: 1 } })
  }))

it.effect("commits are stored one at a time, in the order in which they arrived", () =>
  Effect.gen(function*() {
    const batches: Array<Batch> = []
    let busy = 0
    let most = 0
    const storage = watched(memory().storage(), (batch) =>
      Effect.gen(function*() {
        busy++
        most = Math.max(most, busy)
        yield* Effect.yieldNow
        batches.push(batch)
        busy--
      }))
    const { harness } = yield* open(storage, [])
    yield* Effect.forEach([1, 2, 3, 4, 5], (n) => harness.main.write("note", { data: n }), { concurrency: 5 })
    expect(batches.flatMap((batch) => batch.entries.map((entry) => entry.data))).toEqual([1, 2, 3, 4, 5])
    expect(most).toBe(1)
  }))

it.effect("a commit that takes longer than five seconds to build is discarded, and the line goes on", () =>
  Effect.gen(function*() {
    const { harness } = yield* open(memory().storage(), [])
    const long = yield* Effect.forkChild(Effect.flip(harness.main.commit((tx) => {
      tx.write("note", { data: "long" })
      return Effect.sleep("1 minute")
    })))
    const next = yield* Effect.forkChild(harness.main.write("note", { data: "next" }))
    yield* TestClock.adjust("4999 millis")
    expect(next.pollUnsafe()).toBeUndefined()
    yield* TestClock.adjust("1 millis")
    expect(yield* Fiber.join(long)).toMatchObject({ code: "invalid", message: expect.stringContaining("5 seconds") })
    yield* Fiber.join(next)
    expect((yield* harness.main.snapshot).view.entries.map((entry) => entry.data)).toEqual(["next"])
  }))

it.effect("a caller interrupted before its commit is admitted discards it; afterwards the commit is whole", () =>
  Effect.gen(function*() {
    const stored = yield* Deferred.make<void>()
    let slow = false
    const storage = watched(memory().storage(), () => slow ? Deferred.await(stored) : Effect.void)
    const { harness } = yield* open(storage, [])
    slow = true
    const admitted = yield* Effect.forkChild(harness.main.write("note", { data: "admitted" }))
    const waiting = yield* Effect.forkChild(harness.main.write("note", { data: "waiting" }))
    yield* settle
    yield* Fiber.interrupt(waiting)
    const interrupting = yield* Effect.forkChild(Fiber.interrupt(admitted))
    yield* settle
    yield* Deferred.succeed(stored, undefined)
    yield* Fiber.join(interrupting)
    expect((yield* harness.main.snapshot).view.entries.map((entry) => entry.data)).toEqual(["admitted"])
    expect((yield* storage.entries({ conversation: "c1" })).map((entry) => entry.data)).toEqual(["admitted"])
  }))

it.effect("ids of a commit that came to nothing are not handed out again", () =>
  Effect.gen(function*() {
    const session = memory()
    const { harness } = yield* open(session.storage(), [])
    const ids: Array<string> = []
    yield* Effect.exit(harness.main.commit((tx) => {
      ids.push(tx.write("note", {}), tx.write("note", {}))
      throw new Error("changed my mind")
    }))
    ids.push(yield* harness.main.write("note", {}))
    expect(new Set(ids).size).toBe(3)
    const again = yield* open(session.storage(), [])
    ids.push(yield* again.harness.main.write("note", {}))
    expect(new Set(ids).size).toBe(4)
  }))

it.effect("a document is stored as the operations on it, not whole", () =>
  Effect.gen(function*() {
    const batches: Array<Batch> = []
    const storage = watched(memory().storage(), (batch) => Effect.sync(() => batches.push(batch)))
    const { harness } = yield* open(storage, [])
    const ns = yield* harness.namespace("n", { sticky: { rows: [], other: "x".repeat(10_000) } })
    const append = (row: number) =>
      ns.update(harness.main.id, (draft) => {
        if (Array.isArray(draft.rows)) draft.rows.push(row)
        expect(draft.rows).toHaveLength(row)
      })
    yield* append(1)
    yield* ns.update(harness.main.id, (draft) => {
      draft.other = "y".repeat(10_000)
    })
    yield* append(2)
    const [change] = batches.at(-1)?.documents ?? []
    expect(change).toMatchObject({ document: "sticky:c1", retained: false })
    expect(change?.base).toBeUndefined()
    expect(JSON.stringify(change?.operations).length).toBeLessThan(100)
    expect(yield* ns.get(harness.main.id)).toMatchObject({ rows: [1, 2] })
  }))

it.effect("a storage that fails stops the session: work, watchers and waits end, and reopening goes on", () =>
  Effect.gen(function*() {
    const session = memory()
    let broken = false
    const failing = session.storage()
    const storage = {
      ...failing,
      commit: (batch: Batch) =>
        broken
          ? Effect.fail(new StorageError({ kind: "io", message: "the disk went away.", path: null }))
          : failing.commit(batch)
    }
    const { harness, reports } = yield* open(storage, ["never given"])
    const watch = yield* harness.main.watch
    const watching = yield* Effect.forkChild(Effect.flip(Stream.runDrain(watch.envelopes)))
    const input = yield* harness.main.send({ ...user("go"), requestID: "r" })
    const waiting = yield* Effect.forkChild(Effect.flip(input.wait))
    yield* settle
    broken = true
    const fault = yield* Effect.flip(harness.main.write("note", {}))
    expect(fault).toMatchObject({ code: "faulted", message: expect.stringContaining("the disk went away. Reopen it") })
    expect((yield* Fiber.join(watching)).code).toBe("faulted")
    expect((yield* Fiber.join(waiting)).code).toBe("faulted")
    expect((yield* harness.faulted).code).toBe("faulted")
    broken = false
    expect((yield* Effect.flip(harness.main.write("note", {}))).code).toBe("faulted")
    expect(reports).toMatchObject([{ level: "error" }])
    const again = yield* open(session.storage(), ["given"])
    yield* again.harness.resume
    const found = yield* again.harness.main.send({ ...user("go"), requestID: "r" })
    expect(found.id).toBe(input.id)
    expect(yield* found.wait).toMatchObject({ text: "given" })
  }))

it.effect("a task may come after one that the same commit creates", () =>
  Effect.gen(function*() {
    const { harness } = yield* open(memory().storage(), [])
    const order: Array<string> = []
    const kind = simpleKind("k", ({ taskID }) => Effect.sync(() => `${order.push(taskID)}`))
    yield* harness.task(kind)
    yield* harness.resume
    const [first, second] = yield* harness.main.commit((tx) => {
      const first = tx.createTask(kind, {})
      return [first, tx.createTask(kind, {}, { after: [first] })]
    })
    expect(second === undefined ? null : yield* harness.main.waitForTask(second)).toMatchObject({ result: "2" })
    expect(order).toEqual([first?.id, second?.id])
  }))

it.effect("a commit whose builder fails gives that failure, and an empty one is no commit", () =>
  Effect.gen(function*() {
    const batches: Array<Batch> = []
    const storage = watched(memory().storage(), (batch) => Effect.sync(() => batches.push(batch)))
    const { harness } = yield* open(storage, [])
    const opened = batches.length
    const exit = yield* Effect.exit(harness.main.commit((tx) => {
      tx.write("note", {})
      return Effect.fail("my own reason" as const)
    }))
    expect(exit).toEqual(Exit.fail("my own reason"))
    expect(yield* harness.main.commit(() => "nothing")).toBe("nothing")
    expect(batches.length).toBe(opened)
  }))
