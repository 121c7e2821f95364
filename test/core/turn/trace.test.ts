import { tool } from "@bezel/core/tool"
import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as Tracer from "effect/Tracer"
import { call, never, run, say } from "../../../packages/core/src/testing/model.ts"
import { echo, memory, open, user } from "./fixture.ts"

/** An exporter in memory: every span that was begun. */
const exporter = () => {
  const spans: Array<Tracer.Span> = []
  const tracer = Tracer.make({
    span: (options) => {
      const span = new Tracer.NativeSpan(options)
      spans.push(span)
      return span
    }
  })
  return { spans, layer: Layer.succeed(Tracer.Tracer, tracer) }
}

const parentOf = (spans: ReadonlyArray<Tracer.Span>, span: Tracer.Span): string => {
  const { parent } = span
  if (parent._tag === "None") return "nothing"
  const found = spans.find((candidate) => candidate.spanId === parent.value.spanId)
  return found === undefined ? "unknown" : `${found.name} ${found.attributes.get("n") ?? ""}`.trim()
}

/** The tasks' spans in order, each with what it hangs under. */
const tasks = (spans: ReadonlyArray<Tracer.Span>) =>
  spans.filter((span) => span.name.startsWith("task.")).map((span) => [span.name, parentOf(spans, span)])

it.effect("the tasks of a turn hang under the send that caused them, beside each other", () => {
  const { layer, spans } = exporter()
  return Effect.gen(function*() {
    const { harness } = yield* open(memory().storage(), [[call("echo", { text: "a" })], "one", "two"])
    yield* harness.resume
    const prompt = (n: number) =>
      Effect.flatMap(harness.main.send(user("go")), (input) => input.wait).pipe(
        Effect.withSpan("prompt", { attributes: { n } })
      )
    yield* prompt(1)
    yield* prompt(2)
    const sends = spans.filter((span) => span.name === "Conversation.send")
    expect(sends.map((span) => parentOf(spans, span))).toEqual(["prompt 1", "prompt 2"])
    const under = spans.filter((span) => span.name.startsWith("task.")).map((span) => [
      span.name,
      span.parent._tag === "Some" ? sends.findIndex((send) => send.spanId === parentID(span)) : -1
    ])
    expect(under).toEqual([
      ["task.bezel.generation", 0],
      ["task.bezel.tool", 0],
      ["task.bezel.post_tools", 0],
      ["task.bezel.generation", 0],
      ["task.bezel.generation", 1]
    ])
  }).pipe(Effect.scoped, Effect.provide(layer))
})

const parentID = (span: Tracer.Span): string => span.parent._tag === "Some" ? span.parent.value.spanId : ""

it.effect("what a call asks of a conversation of its own hangs under that call", () => {
  const { layer, spans } = exporter()
  return Effect.gen(function*() {
    const delegate = tool({
      description: "asks another",
      input: Schema.Struct({}),
      execute: (_, api) =>
        Effect.gen(function*() {
          const owned = yield* api.conversation("child")
          return (yield* owned.ask("look", "q")).text
        })
    })
    const { harness } = yield* open(memory().storage(), [[call("delegate", {})], "found", "done"], {
      tools: (draft) => draft.set("delegate", delegate)
    })
    yield* harness.resume
    yield* Effect.flatMap(harness.main.send(user("go")), (input) => input.wait)
    const [, inner] = spans.filter((span) => span.name === "Conversation.send")
    const generations = spans.filter((span) => span.name === "task.bezel.generation")
    expect(generations.map((span) => parentID(span) === inner?.spanId)).toEqual([false, true, false])
    const path: Array<string> = []
    for (let span = inner; span !== undefined;) {
      path.unshift(span.name)
      const above = parentID(span)
      span = spans.find((candidate) => candidate.spanId === above)
    }
    expect(path).toEqual(expect.arrayContaining(["Conversation.send", "task.bezel.tool", "tool.settle"]))
    expect(path.at(-1)).toBe("Conversation.send")
  }).pipe(Effect.scoped, Effect.provide(layer))
})

it.effect("what goes on after a reopen hangs under nothing", () => {
  const { layer, spans } = exporter()
  return Effect.gen(function*() {
    const session = memory()
    const scope = yield* Scope.make()
    const started = yield* Latch.make(false)
    const first = yield* open(session.storage(), [[say("half"), run(started.open), never]]).pipe(Scope.provide(scope))
    yield* first.harness.resume
    yield* first.harness.main.send({ ...user("go"), requestID: "r" })
    yield* started.await
    yield* Scope.close(scope, Exit.void)
    expect(tasks(spans)).toEqual([["task.bezel.generation", "Conversation.send"]])
    const second = yield* open(session.storage(), ["whole"], { tools: (draft) => draft.set("echo", echo) })
    yield* second.harness.resume
    const input = yield* second.harness.main.send({ ...user("go"), requestID: "r" })
    expect(yield* input.wait).toMatchObject({ text: "whole" })
    expect(tasks(spans)).toEqual([["task.bezel.generation", "Conversation.send"], ["task.bezel.generation", "nothing"]])
  }).pipe(Effect.scoped, Effect.provide(layer))
})
