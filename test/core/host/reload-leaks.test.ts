import { Plugin, PluginKernel } from "@bezel/core/host"
import { RemoteService, ServiceDirectory } from "@bezel/core/service"
import { call, scriptedModel, testSessionHost } from "@bezel/core/testing"
import { tool } from "@bezel/core/tool"
import { expect, it } from "@effect/vitest"
import { Context, Effect, Fiber, Schema, Stream } from "effect"
import { EventEmitter } from "node:events"
import * as fs from "node:fs"
import * as v8 from "node:v8"
import { drained } from "../../eventually.ts"

class Clock extends RemoteService.make("test.clock")({
  state: { time: Schema.Struct({ value: Schema.Finite }) },
  methods: { tell: { success: Schema.Finite } }
}) {}

class PerSession extends RemoteService.make("test.per-session")({ methods: { tell: { success: Schema.Finite } } }) {}

class Many extends RemoteService.make("test.many")({ methods: { tell: { success: Schema.Finite } } }) {}

const emitter = new EventEmitter()

/** A plugin that has one of everything: whatever it leaves behind once, it leaves behind a thousand times. */
const everything = Plugin.define({
  id: "test.everything",
  session: (ctx) =>
    Effect.gen(function*() {
      const time = yield* ctx.state(Schema.Struct({ value: Schema.Finite }), { value: 1 })
      yield* ctx.provide(Clock, { time, tell: () => Effect.succeed(time.value.value) })
      yield* ctx.providePerSession(PerSession, () => Effect.succeed({ tell: () => Effect.succeed(1) }))
      const namespace = yield* ctx.namespace("everything", { session: { seen: 0 } })
      yield* ctx.hooks(namespace, "tool", { beforeTool: () => Effect.void }, { gate: true })
      yield* ctx.section({ id: "everything", order: 1, text: () => Effect.succeed("All of it") })
      yield* ctx.onSession(() => Effect.asVoid(Effect.forkScoped(Effect.never)))
      yield* ctx.tool.transform((draft) => {
        draft.set(
          "echo",
          tool({
            description: "Echoes",
            input: Schema.Struct({}),
            execute: () => Effect.succeed("echo")
          })
        )
        draft.wrap("echo", (next) => (input, toolCall) => next(input, toolCall))
      })
      yield* ctx.agent.transform((draft) => draft.set("everything", { description: "All of it" }))
      const spawn = yield* ctx.provideMany(Many)
      yield* spawn("early", { tell: () => Effect.succeed(1) })
      yield* ctx.observe(Many, () => Effect.never)
      yield* ctx.onActivate(Effect.gen(function*() {
        yield* spawn("late", { tell: () => Effect.succeed(2) })
        yield* Effect.forkScoped(Stream.runDrain(ctx.clients.changes))
        yield* Effect.forkScoped(Stream.runDrain(ctx.agent.changes))
        yield* ctx.filesystem
        yield* ctx.use(Clock)
        yield* Effect.forkScoped(Effect.never)
        const listener = () => {}
        yield* Effect.acquireRelease(
          Effect.sync(() => emitter.on("tick", listener)),
          () => Effect.sync(() => emitter.off("tick", listener))
        )
        yield* Effect.acquireRelease(
          Effect.sync(() => fs.openSync("/dev/null", "r")),
          (descriptor) => Effect.sync(() => fs.closeSync(descriptor))
        )
        yield* Effect.acquireRelease(
          Effect.sync(() => setInterval(() => {}, 60_000)),
          (timer) => Effect.sync(() => clearInterval(timer))
        )
      }))
    })
})

const user = Plugin.define({
  id: "test.user",
  session: (ctx) => Effect.flatMap(ctx.use(Clock), (clock) => ctx.onActivate(Effect.asVoid(clock.tell())))
})

/** How many of what there are on the heap and in the process. Counting collects garbage first. */
const census = Effect.gen(function*() {
  const fiber = yield* Effect.forkChild(Effect.void)
  yield* Fiber.await(fiber)
  yield* drained
  const count = (constructor: unknown) =>
    typeof constructor === "function" ? v8.queryObjects(constructor as new() => object, { format: "count" }) : 0
  return {
    fibers: count(fiber.constructor),
    // Scopes are among them, and whatever a registry, a map or a closure could hold on to.
    objects: count(Object.getPrototypeOf({}).constructor),
    listeners: emitter.listenerCount("tick"),
    descriptors: fs.readdirSync("/proc/self/fd").length,
    timers: process.getActiveResourcesInfo().filter((name) => name === "Timeout").length,
    heapMiB: process.memoryUsage().heapUsed / 2 ** 20
  }
})

it.live(
  "leaves no scope, fiber, listener, descriptor or timer after a thousand reloads under an open session",
  () =>
    Effect.gen(function*() {
      const model = scriptedModel([[call("echo", {})], "before", [call("echo", {})], "after"])
      const host = yield* testSessionHost([everything, user], { model })
      const { reload } = Context.get(host.services, PluginKernel)
      const directory = Context.get(host.services, ServiceDirectory)
      const { id } = yield* host.session.create()
      const connection = yield* host.connect(id)
      const clock = yield* connection.use(Clock)
      yield* clock.ready
      expect(yield* host.ask(id, "a")).toBe("before")
      const times = (count: number) => Effect.repeat(reload({ plugins: ["test.everything"] }), { times: count - 1 })
      yield* times(50)
      const before = yield* census
      const start = performance.now()
      yield* times(1_000)
      const took = performance.now() - start
      const after = yield* census
      console.log(`1,000 reloads of a plugin and its user: ${took.toFixed(0)} ms; ${JSON.stringify({ before, after })}`)
      expect(after.fibers - before.fibers).toBeLessThan(20)
      // Less than one in two reloads: what is left over once each time would be a thousand.
      expect(after.objects - before.objects).toBeLessThan(500)
      expect([after.listeners, after.descriptors, after.timers]).toEqual([
        before.listeners,
        before.descriptors,
        before.timers
      ])
      expect(after.heapMiB - before.heapMiB).toBeLessThan(5)
      expect(directory.catalogue()).toContain("test.clock")
      expect(yield* clock.tell()).toBe(1)
      expect(yield* host.ask(id, "b")).toBe("after")
    }).pipe(Effect.scoped),
  // A loaded machine takes some time for a thousand of them.
  { timeout: 180_000 }
)
