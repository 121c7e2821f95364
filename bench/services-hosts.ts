/**
 * What hosts cost: `node bench/services-hosts.ts [--rounds N] [--only plugins|process]`.
 *
 * Plugins: a location with 100 plugins from setup to ready, beside one with none, and the reload of one of them; each has a
 * tool, a service with a state, a hook and a section. Process: a session host in a process of its own from demand to its
 * first answer, beside the same host in this process and beside a bare Node process; and calls through its socket beside
 * calls over loopback. The host is the bundle's (`node scripts/build.ts`).
 */
import { LocationMap, Plugin, PluginKernel, Plugins, SessionPlugins } from "@bezel/core/host"
import type { ConnectionShape } from "@bezel/core/rpc"
import { RemoteService } from "@bezel/core/service"
import { SessionStore } from "@bezel/core/session"
import { Settings } from "@bezel/core/settings"
import { SessionStorage } from "@bezel/core/storage"
import { emptySettings, testSessionHost } from "@bezel/core/testing"
import { tool } from "@bezel/core/tool"
import { builtinSessionPlugins } from "@bezel/plugins"
import { Placement } from "@bezel/server"
import { processPlacement } from "@bezel/server/process"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { spawn } from "node:child_process"
import { mkdirSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { parseArgs } from "node:util"
import { median, spread } from "./measure.ts"

const root = join(import.meta.dirname, "..")
const { values: options } = parseArgs({ options: { rounds: { type: "string" }, only: { type: "string" } } })
const rounds = Math.max(1, Number(options.rounds ?? 5))
const wants = (part: string) => options.only === undefined || options.only === part

const shown = (values: ReadonlyArray<number>, unit = "ms"): string =>
  `${median(values).toPrecision(3)} ${unit} (±${Math.round(spread(values) * 100)} %)`

/** One that takes part in everything. */
const plugin = (number: number): Plugin => {
  const token = RemoteService.make(`bench.service-${number}`)({
    state: { count: Schema.Finite },
    methods: { tell: { success: Schema.Finite } }
  })
  return Plugin.define({
    id: `bench.plugin-${number}`,
    session: (ctx) =>
      Effect.gen(function*() {
        const count = yield* ctx.state(Schema.Finite, 0)
        yield* ctx.provide(token, { count, tell: () => Effect.succeed(number) })
        const namespace = yield* ctx.namespace(`bench-${number}`, { session: { seen: 0 } })
        yield* ctx.hooks(namespace, "tool", { beforeTool: () => Effect.succeed({}) })
        yield* ctx.section({ id: `bench.${number}`, order: number, text: () => Effect.succeed(null) })
        yield* ctx.tool.transform((draft) =>
          draft.set(
            `tool_${number}`,
            tool({ description: "Does nothing.", input: Schema.Struct({}), execute: () => Effect.succeed("") })
          )
        )
      })
  })
}

async function measurePlugins() {
  const hundred = Array.from({ length: 100 }, (_, number) => plugin(number))
  const boots: { readonly [of: string]: Array<number> } = { none: [], hundred: [] }
  const reloads: Array<number> = []
  for (let round = 0; round <= rounds; round++) {
    for (const [name, plugins] of Object.entries({ none: [], hundred })) {
      await Effect.runPromise(Effect.scoped(Effect.gen(function*() {
        const start = performance.now()
        const host = yield* testSessionHost(plugins)
        if (round > 0) boots[name]?.push(performance.now() - start)
        if (plugins.length === 0) return
        const { reload } = Context.get(host.services, PluginKernel)
        for (let time = 0; time < 20; time++) {
          const before = performance.now()
          yield* reload({ plugins: ["bench.plugin-50"] })
          if (round > 0) reloads.push(performance.now() - before)
        }
      })))
    }
  }
  const { hundred: of100 = [], none = [] } = boots
  console.log(`100 plugins, setup to ready   ${shown(of100)}; a host without any ${shown(none)}`)
  console.log(`reload of one of 100          ${shown(reloads)}`)
}

interface Sample {
  /** From the demand for the host to the first answer of it, in milliseconds. */
  readonly wall: number
  /** Calls per second, one after another and 100 at once. */
  readonly one: number
  readonly many: number
}

const bareNode = () =>
  new Promise<void>((resolve) => {
    spawn(process.execPath, ["-e", "0"], { stdio: "ignore" }).once("exit", () => resolve())
  })

/** Calls per second of one client that has `atOnce` in flight. */
const callRate = (connection: ConnectionShape, calls: number, atOnce: number) =>
  Effect.scoped(Effect.gen(function*() {
    const plugins = yield* connection.use(Plugins)
    const loop = Effect.forEach(Array.from({ length: calls / atOnce }), () => plugins.list(), { discard: true })
    yield* loop
    const start = performance.now()
    yield* Effect.forEach(Array.from({ length: atOnce }), () => loop, { concurrency: "unbounded", discard: true })
    return calls / (performance.now() - start) * 1_000
  }))

async function measureProcess() {
  const folder = mkdtempSync(join(tmpdir(), "bezel-bench-"))
  const work = join(folder, "work")
  mkdirSync(work)
  const stored = SessionStore.layer({ directory: join(folder, "data"), version: "bench" }).pipe(
    Layer.provideMerge(SessionStorage.layer({ directory: join(folder, "data") })),
    Layer.merge(Layer.succeed(
      Settings,
      Settings.of({ user: Effect.succeed(emptySettings), forLocation: () => Effect.succeed(emptySettings), keys: [] })
    ))
  )
  const placement = processPlacement({
    command: [join(root, "bin/bezel"), "host-session"],
    state: join(folder, "state"),
    plugins: () => Effect.succeed([]),
    options: { set: ["model=bezel/offline"], trust: false, verbose: false },
    environment: { HOME: folder, PATH: process.env.PATH, LANG: "C.UTF-8" }
  }).pipe(Layer.provideMerge(stored))
  // The same plugins in this process, over the same store.
  const inline = Placement.inline.pipe(
    Layer.provide(LocationMap.layer),
    Layer.provide(SessionPlugins.layer(builtinSessionPlugins("bench"))),
    Layer.provide(stored)
  )
  const measured = (layer: Layer.Layer<Placement, { readonly message: string }>) =>
    Effect.runPromise(Effect.scoped(Effect.gen(function*() {
      const context = yield* Layer.build(layer)
      const start = performance.now()
      const host = yield* Context.get(context, Placement).place(work)
      const connection = yield* host.connect({ label: "bench" })
      yield* Effect.scoped(Effect.flatMap(connection.use(Plugins), (plugins) => plugins.list()))
      const wall = performance.now() - start
      return { wall, one: yield* callRate(connection, 1_000, 1), many: yield* callRate(connection, 5_000, 100) }
    })))
  const inlines: Array<Sample> = []
  const processes: Array<Sample> = []
  const bares: Array<number> = []
  for (let round = 0; round <= rounds; round++) {
    const start = performance.now()
    await bareNode()
    const bare = performance.now() - start
    const [here, there] = [await measured(inline), await measured(placement)]
    // The first round fills caches.
    if (round === 0) continue
    bares.push(bare)
    inlines.push(here)
    processes.push(there)
  }
  rmSync(folder, { recursive: true, force: true })
  const of = (all: ReadonlyArray<Sample>, what: keyof Sample) => all.map((sample) => sample[what])
  const rate = (what: "one" | "many") =>
    `${shown(of(processes, what), "calls/s")}, inline ${shown(of(inlines, what), "calls/s")}: ` +
    `${(median(of(processes, what)) / median(of(inlines, what))).toFixed(2)}×`
  console.log(`host's process, demand to first answer  ${shown(of(processes, "wall"))}`)
  console.log(`  the same host inline                  ${shown(of(inlines, "wall"))}`)
  console.log(`  a bare Node process                   ${shown(bares)}`)
  console.log(`calls one after another                 ${rate("one")}`)
  console.log(`calls 100 at once                       ${rate("many")}`)
}

if (wants("plugins")) await measurePlugins()
if (wants("process")) await measureProcess()
