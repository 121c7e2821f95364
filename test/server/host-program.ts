/**
 * A session host's process for tests: real storage in the folder that the order names, a scripted model, and, by the order's
 * `mode`, a fault of its own.
 */
import { noticeKind, TaskKind } from "@bezel/core/harness"
import { Plugin } from "@bezel/core/host"
import { connectUnix } from "@bezel/core/rpc"
import { SessionStore } from "@bezel/core/session"
import { SessionStorage } from "@bezel/core/storage"
import { call, run, say, scriptedModel, testGlobals, wait } from "@bezel/core/testing"
import { tool } from "@bezel/core/tool"
import { makeFileProcessHost } from "@bezel/core/turn"
import { clientToolsSession } from "@bezel/plugins/client-tools"
import { sessionDirectoryPlugin } from "@bezel/plugins/session-directory"
import { openLifeline, serveSessionHost } from "@bezel/server/process"
import { Effect, Layer, Schema } from "effect"
import { spawn } from "node:child_process"
import { writeFileSync } from "node:fs"
import { whoPlugin } from "./who.ts"

const Options = Schema.Struct({ data: Schema.String, mode: Schema.String })

/** A wrapper that starts something in a group of its own and ends. */
const leaving = Plugin.define({
  id: "test.leaving",
  session: (ctx) =>
    ctx.onActivate(Effect.sync(() => {
      spawn("/bin/sh", ["-c", "sleep 1000 & exec sleep 1000"], { detached: true, stdio: "ignore" }).unref()
    }))
})

/** Starts a durable job. */
const working = (data: string) =>
  Plugin.define({
    id: "test.working",
    session: (ctx) =>
      ctx.onActivate(Effect.gen(function*() {
        const jobs = makeFileProcessHost(`${data}/jobs`)
        yield* jobs.start("job", { command: ["sleep", "1000"], directory: ctx.location.directory, env: {} })
      }))
  })

const later = TaskKind.make("test.later", {
  input: Schema.Struct({ millis: Schema.Int }),
  checkpoint: Schema.Struct({ phase: Schema.Literal("waiting") }),
  slot: { schema: Schema.Struct({}), initial: {} },
  result: Schema.Null,
  failure: Schema.Struct({ message: Schema.String }),
  initial: () => Effect.succeed({ next: { phase: "waiting" as const } }),
  phases: {
    waiting: ({ input }) =>
      Effect.gen(function*() {
        yield* Effect.sleep(input.millis)
        return {
          done: (tx) => {
            tx.write(noticeKind, { model: [{ role: "user", content: [{ type: "text", text: "now" }] }], wake: true })
            return { status: "completed", result: null }
          }
        } as const
      })
  }
})

/** Gives a session work whose end comes long after its turn. */
const waiting = Plugin.define({
  id: "test.waiting",
  session: Effect.fn(function*(ctx) {
    yield* ctx.task(later)
    yield* ctx.tool.transform((draft) =>
      draft.set(
        "later",
        tool({
          description: "Waits",
          input: Schema.Struct({}),
          execute: (_, call) => Effect.as(call.task(later, { millis: 1_500 }, { background: true }), "It waits.")
        })
      )
    )
    yield* ctx.onActivate(Effect.gen(function*() {
      const { id } = yield* Effect.orDie(ctx.session.create({ title: "waits" }))
      yield* Effect.orDie(ctx.session.prompt({ sessionID: id, prompt: { text: "go" } }))
    }))
  })
})

const program = Effect.gen(function*() {
  const lifeline = yield* openLifeline
  const { order } = lifeline
  const { data, mode } = yield* Effect.orDie(Schema.decodeUnknownEffect(Options)(order.options))
  if (mode === "crash") {
    process.stderr.write("first words\nlast words\n")
    process.exit(7)
  }
  if (mode === "tell") {
    const isShown = JSON.stringify([process.argv, process.env]).includes(order.secret)
    writeFileSync(`${data}/told`, JSON.stringify({ isShown, coordinator: order.coordinator, secret: order.secret }))
  }
  if (mode === "spent") {
    // As if the answer with the next secret had been lost.
    const transport = yield* connectUnix(order.coordinator)
    transport.post(JSON.stringify({ _tag: "Admit", secret: order.secret }))
    yield* transport.run(() => transport.close)
  }
  const sessions = yield* Layer.build(
    SessionStore.layer({ directory: data, version: "test" }).pipe(
      Layer.provideMerge(SessionStorage.layer({ directory: data }))
    )
  )
  const plugins = [
    sessionDirectoryPlugin,
    ...(mode === "leaving" ? [leaving] : []),
    ...(mode === "job" ? [working(data)] : []),
    ...(mode === "waiting" ? [waiting] : []),
    ...(mode === "busy" ? [whoPlugin] : []),
    ...(mode === "tools" ? [Plugin.define({ id: "bezel.client-tools", session: clientToolsSession })] : [])
  ]
  const globals = testGlobals(plugins, {
    sessions,
    model: scriptedModel(
      mode === "busy"
        ? Array.from({ length: 100 }, () => [wait("300 millis"), say("hello")])
        : mode === "tools"
        ? [[call("stock", {})], "Three."]
        : mode === "waiting"
        ? [[call("later", {})], "meanwhile", [run(Effect.sync(() => writeFileSync(`${data}/woken`, ""))), say("woken")]]
        : [[wait("300 millis"), say("hello")], "hello again"]
    )
  })
  const serving = Effect.provide(serveSessionHost(lifeline), globals)
  if (mode === "deaf") {
    // From when it serves on, it does nothing any more.
    setTimeout(() => {
      for (;;);
    }, 1_500)
  }
  yield* serving
}).pipe(Effect.scoped)

Effect.runPromise(program).then(() => process.exit(0), (error) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
  process.exit(1)
})
