/** Hook points that a custom kind of task declares. */
import { HookPoint, TaskKind } from "@bezel/core/harness"
import type { JsonValue } from "@bezel/core/json"
import { expect, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/testing/TestClock"
import { memory, open, settle } from "./fixture.ts"

/** Publishes a text: asks who has a title for it, lets others change it, and whoever must agree. */
const publisher = TaskKind.make("repo.publisher", {
  input: Schema.Struct({ text: Schema.String }),
  checkpoint: Schema.Struct({ phase: Schema.Literal("none") }),
  slot: { schema: Schema.Struct({}), initial: {} },
  result: Schema.String,
  failure: Schema.Struct({ message: Schema.String }),
  hooks: {
    title: HookPoint.first<string, string>(),
    rewrite: HookPoint.chain<string>(),
    agree: HookPoint.collect<string, boolean>({ onFailure: "block" }),
    published: HookPoint.collect<string>()
  },
  initial: ({ input }, api) =>
    Effect.gen(function*() {
      const title = yield* api.hook("title", input.text)
      const text = yield* api.hook("rewrite", input.text)
      const votes = yield* api.hook("agree", text)
      yield* api.hook("published", text)
      const result = `${title ?? "untitled"}: ${text} (${votes.join()})`
      return { done: () => ({ status: "completed", result } as const) }
    }),
  phases: { none: () => Effect.succeed("retry" as const) }
})

const opened = Effect.gen(function*() {
  const fixture = yield* open(memory().storage(), [])
  const one = yield* fixture.harness.namespace("one", {})
  const two = yield* fixture.harness.namespace("two", {})
  yield* fixture.harness.task(publisher)
  yield* fixture.harness.resume
  const publish = (text: string) =>
    Effect.flatMap(
      fixture.harness.main.commit((tx) => tx.createTask(publisher, { text })),
      fixture.harness.main.waitForTask
    )
  return { ...fixture, one, two, publish }
})

it.effect("a kind's own points collect, take the first, or chain, over handlers in their order", () =>
  Effect.gen(function*() {
    const { harness, one, publish, two } = yield* opened
    expect(yield* publish("a")).toMatchObject({ result: "untitled: a ()" })
    const seen: Array<string> = []
    yield* harness.hooks(one, publisher, {
      title: () => Effect.void,
      rewrite: (text) => Effect.succeed(`${text}1`),
      agree: () => Effect.succeed(true),
      published: (text) => Effect.asVoid(Effect.sync(() => seen.push(text)))
    }, { order: 2 })
    yield* harness.hooks(two, publisher, {
      title: (text) => Effect.succeed(`On ${text}`),
      rewrite: (text) => Effect.succeed(`${text}2`),
      agree: (text) => Effect.succeed(text.length > 9)
    }, { order: 1 })
    yield* harness.hooks(two, publisher, {
      title: () => Effect.succeed("too late"),
      rewrite: () => Effect.succeed("a gate rewrites nothing")
    }, { gate: true })
    expect(yield* publish("a")).toMatchObject({ result: "On a: a21 (false,true)" })
    expect(seen).toEqual(["a21"])
  }))

it.effect("a failure at a kind's point skips the handler with a warning, or blocks, as the point says", () =>
  Effect.gen(function*() {
    const { harness, one, publish, reports, two } = yield* opened
    const broken = () => Effect.fail({ message: "this handler is broken" })
    yield* harness.hooks(one, publisher, { title: broken, rewrite: () => Effect.die(new Error("a bug")) })
    yield* harness.hooks(two, publisher, { rewrite: (text) => Effect.succeed(`${text}!`) })
    expect(yield* publish("a")).toMatchObject({ status: "completed", result: "untitled: a! ()" })
    expect(reports.map(({ level, message }) => [level, message])).toEqual([
      ["warning", 'The title hook of "one" was skipped: this handler is broken'],
      ["warning", 'The rewrite hook of "one" was skipped: a bug']
    ])
    yield* harness.hooks(two, publisher, { agree: broken })
    expect(yield* publish("a")).toMatchObject({
      status: "failed",
      failure: { message: 'The agree hook of "two" failed: this handler is broken' }
    })
  }))

it.effect("a handler at a kind's point has its time, and one that is unregistered is not run", () =>
  Effect.gen(function*() {
    const { harness, one, publish, reports } = yield* opened
    const registration = yield* harness.hooks(one, publisher, { title: () => Effect.never }, { limit: "3 seconds" })
    const publishing = yield* Effect.forkChild(publish("a"))
    yield* settle
    yield* TestClock.adjust("3 seconds")
    yield* settle
    expect(publishing.pollUnsafe()).toMatchObject({ value: { result: "untitled: a ()" } })
    expect(reports[0]?.message).toContain("did not answer within 3s")
    yield* registration.unregister
    expect(yield* publish("b")).toMatchObject({ result: "untitled: b ()" })
    expect(reports.length).toBe(1)
  }))

it.effect("a point that the kind does not have is refused, and so is an old token of a namespace", () =>
  Effect.gen(function*() {
    const { harness, one } = yield* opened
    const handlers = { titel: () => Effect.void } as { readonly title?: never }
    expect(yield* Effect.flip(harness.hooks(one, publisher, handlers))).toMatchObject({
      code: "invalid",
      message: 'The task kind "repo.publisher" has no hook point "titel"; it has title, rewrite, agree, published.'
    })
    yield* one.unregister
    expect((yield* Effect.flip(harness.hooks(one, publisher, {}))).code).toBe("stale_definition")
  }))

it.effect("a handler's memo is its namespace's, in the task: a crash behind it finds it again, and it ends with the task", () =>
  Effect.gen(function*() {
    const session = memory()
    const asked: Array<string> = []
    const seen: Array<JsonValue | undefined> = []
    const life = (answer: string, hang: boolean) =>
      Effect.gen(function*() {
        const { harness } = yield* open(session.storage(), [])
        const ns = yield* harness.namespace("asker", {})
        const other = yield* harness.namespace("other", {})
        yield* harness.task(publisher)
        yield* harness.hooks(other, publisher, {
          title: (_, api) => Effect.asVoid(Effect.map(api.memo("title"), (found) => seen.push(found)))
        })
        yield* harness.hooks(ns, publisher, {
          title: (_, api) =>
            Effect.gen(function*() {
              if ((yield* api.memo("title")) === undefined) asked.push(answer)
              const title = yield* api.memo("title", answer)
              return hang ? yield* Effect.never : title
            })
        })
        yield* harness.resume
        return harness
      })
    const scope = yield* Scope.make()
    const first = yield* Scope.provide(life("first", true), scope)
    const ref = yield* first.main.commit((tx) => tx.createTask(publisher, { text: "a" }))
    yield* settle
    yield* Scope.close(scope, Exit.void)
    const second = yield* life("second", false)
    expect(yield* second.main.waitForTask(ref)).toMatchObject({ result: "first: a ()" })
    expect([asked, seen]).toEqual([["first"], [undefined, undefined]])
    expect(yield* session.storage().document("sticky:c1")).toMatchObject({ slots: {} })
  }))

it.effect("a chain at a kind's point does not begin while the session is held", () =>
  Effect.gen(function*() {
    const { harness, one, publish } = yield* opened
    const gate = yield* Deferred.make<void>()
    const ran: Array<string> = []
    yield* harness.hooks(one, publisher, {
      title: () => Effect.as(Effect.andThen(Effect.sync(() => ran.push("title")), Deferred.await(gate)), "T"),
      rewrite: () => Effect.asVoid(Effect.sync(() => ran.push("rewrite")))
    })
    const publishing = yield* Effect.forkChild(publish("a"))
    yield* settle
    const held = yield* Scope.make()
    yield* Scope.provide(harness.hold, held)
    yield* Deferred.succeed(gate, undefined)
    yield* settle
    expect(ran).toEqual(["title"])
    yield* Scope.close(held, Exit.void)
    yield* settle
    expect(ran).toEqual(["title", "rewrite"])
    expect(publishing.pollUnsafe()).toMatchObject({ value: { result: "T: a ()" } })
  }))
