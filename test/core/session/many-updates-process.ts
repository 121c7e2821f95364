/**
 * A process that works on a session whose work has told of its progress very often. Arguments: what to do, the data
 * directory, how many updates. `make` makes the session and leaves its task in the middle of its work;
 * `look` lists sessions and opens it, and prints one JSON line: what it found and how long that took.
 */
import { TaskKind } from "@bezel/core/harness"
import { Plugin } from "@bezel/core/host"
import { SessionRuntime, SessionStore } from "@bezel/core/session"
import { SessionStorage } from "@bezel/core/storage"
import { call, scriptedModel, testSessionHost } from "@bezel/core/testing"
import { tool } from "@bezel/core/tool"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"

const [, , mode = "", directory = "", count = "0"] = process.argv

const told = Deferred.makeUnsafe<void>()

const worker = TaskKind.make("test.worker", {
  input: Schema.Struct({}),
  checkpoint: Schema.Struct({ phase: Schema.Literal("working") }),
  slot: { schema: Schema.Struct({ step: Schema.mutableKey(Schema.Finite) }), initial: { step: 0 } },
  result: Schema.Null,
  failure: Schema.Null,
  initial: () => Effect.succeed({ next: { phase: "working" as const } }),
  phases: {
    working: (_, api) =>
      Effect.gen(function*() {
        for (let step = 1; step <= Number(count); step++) {
          yield* api.commit((tx) => {
            tx.slot.step = step
          })
        }
        yield* Deferred.succeed(told, undefined)
        return yield* Effect.never
      })
  },
  describe: ({ slot }) => ({ step: slot.step })
})

const plugin = Plugin.define({
  id: "test.worker",
  session: (ctx) =>
    Effect.gen(function*() {
      yield* ctx.task(worker)
      const start = tool({
        description: "Starts long work.",
        input: Schema.Struct({}),
        execute: (_, running) => Effect.as(running.task(worker, {}, { background: true }), "It has begun.")
      })
      yield* ctx.tool.transform((draft) => draft.set("start", start))
    })
})

const since = (start: number): number => Math.round(performance.now() - start)

await Effect.runPromise(Effect.scoped(Effect.gen(function*() {
  const sessions = yield* Layer.build(
    SessionStore.layer({ directory, version: "test" }).pipe(
      Layer.provideMerge(SessionStorage.layer({ directory }))
    )
  )
  const model = scriptedModel([[call("start", {})], "Done."])
  if (mode === "make") {
    const host = yield* testSessionHost([plugin], { directory, sessions, model })
    const { id } = yield* host.session.create()
    yield* Context.get(host.services, SessionRuntime).open(id)
    yield* host.ask(id, "go")
    yield* Deferred.await(told)
    return process.stdout.write(`${JSON.stringify({ id })}\n`)
  }
  const listing = performance.now()
  const page = yield* Context.get(sessions, SessionStore).list()
  const listed = since(listing)
  const host = yield* testSessionHost([plugin], { directory, sessions, model })
  const [first] = page.sessions
  if (first === undefined) throw new Error("there is no session")
  const opening = performance.now()
  const open = yield* Context.get(host.services, SessionRuntime).open(first.id, { resume: false })
  const { view } = yield* open.main.snapshot
  const opened = since(opening)
  return process.stdout.write(
    `${JSON.stringify({ ids: page.sessions.map(({ id }) => id), listed, opened, tasks: view.tasks })}\n`
  )
})))
