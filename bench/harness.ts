/**
 * What a turn costs by itself: no provider, no process, no terminal. `bench/run.ts` has the whole command beside its peers.
 *
 * `node bench/harness.ts` prints what every turn of a long session costs (flat is the aim), what 20,000 deltas cost beside
 * reading them alone, and what opening a long session costs beside a short one, in time and memory. `--only NAME` picks.
 */
import type { Model, ModelSource } from "@bezel/core/model"
import { openSqlite, type Storage } from "@bezel/core/storage"
import { makeToolRegistry, tool } from "@bezel/core/tool"
import { openHarness } from "@bezel/core/turn"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { parseArgs } from "node:util"
import { call, say, scriptedModel, type ScriptedTurn } from "../packages/core/src/testing/model.ts"
import { measure, median, spread } from "./measure.ts"

const { values: options } = parseArgs({ options: { only: { type: "string", default: "" } } })

const folder = fs.mkdtempSync(path.join(os.tmpdir(), "bezel-bench-"))
let files = 0

/** Milliseconds of CPU so far; unlike time by the clock it does not depend on what else the machine does. */
const cpu = (): number => {
  const { system, user } = process.cpuUsage()
  return (user + system) / 1_000
}

const open = (script: ReadonlyArray<ScriptedTurn>) =>
  Effect.gen(function*() {
    const storage: Storage = yield* openSqlite(path.join(folder, `${files++}.db`), { durability: "process" })
    const counter = { commits: 0 }
    const counted: Storage = {
      ...storage,
      commit: (batch) => Effect.suspend(() => (counter.commits++, storage.commit(batch)))
    }
    const registry = yield* makeToolRegistry()
    yield* registry.transform({ plugin: "bench", version: "1", order: 0 }, (draft) =>
      draft.set(
        "echo",
        tool({
          description: "Echoes.",
          input: Schema.Struct({ text: Schema.String }),
          execute: ({ text }) => Effect.succeed(text)
        })
      ))
    const { info, source } = scriptedModel([], { contextWindow: 100_000_000 })
    const turns = script.values()
    // Each part arrives by itself, as from a network. A model for each request, for a scripted one keeps what it was asked.
    const stream: Model["stream"] = (request) =>
      Stream.rechunk(scriptedModel([turns.next().value ?? "done"]).stream(request), 1)
    const models: ModelSource = {
      ...source,
      resolve: () => Effect.succeed({ info, stream })
    }
    const harness = yield* openHarness(counted, {
      sessionID: "ses_bench",
      models,
      tools: registry,
      artifact: () => Effect.die(new Error("none"))
    })
    yield* harness.resume
    return { harness, counter }
  })

const ask = (harness: Effect.Success<ReturnType<typeof open>>["harness"]) =>
  Effect.flatMap(harness.main.send({ content: [{ type: "text", text: "go on with it" }] }), (input) => input.wait)

/** One call, then an answer. */
const turn: ScriptedTurn = (request) =>
  request.messages.at(-1)?.role === "user" ? [say("let me see"), call("echo", { text: "hello there" })] : "done with it"

const row = (name: string, left: string, right: string, ratio: number, aim: string): void =>
  console.log(
    `${name.padEnd(44)}${left.padStart(18)}${right.padStart(18)}${`${ratio.toFixed(2)}×`.padStart(9)}  ${aim}`
  )

const turns = (name: string, count: number, watched: boolean) =>
  Effect.scoped(Effect.gen(function*() {
    const { counter, harness } = yield* open(Array.from({ length: 2 * count }, () => turn))
    if (watched) yield* Effect.forkScoped(Stream.runDrain((yield* harness.main.watch).envelopes))
    const times: Array<number> = []
    for (let n = 0; n < count; n++) {
      const before = cpu()
      yield* ask(harness)
      times.push(cpu() - before)
    }
    const mean = (list: ReadonlyArray<number>) => list.reduce((sum, time) => sum + time, 0) / list.length
    const [first, last] = [mean(times.slice(0, 100)), mean(times.slice(-100))]
    if (name !== "") {
      row(
        name,
        `${last.toFixed(2)} ms CPU`,
        `${first.toFixed(2)} ms CPU`,
        last / first,
        `aim 1.20×, ${(counter.commits / count).toFixed(1)} commits each`
      )
    }
  }))

const deltas = (count: number) =>
  Effect.scoped(Effect.gen(function*() {
    const answer = () => [say(...Array.from({ length: count }, (_, n) => `word${n % 10} `))]
    const cpuOf = <E>(effect: Effect.Effect<unknown, E>) =>
      Effect.suspend(() => {
        const before = cpu()
        return Effect.map(effect, () => cpu() - before)
      })
    const [alone, whole]: [Array<number>, Array<number>] = [[], []]
    for (let run = 0; run < 8; run++) {
      const model = scriptedModel([answer()])
      alone.push(
        yield* cpuOf(
          Stream.runForEach(
            Stream.rechunk(
              model.stream({ messages: [], tools: [], thinking: "off", maxOutput: null, sessionID: "s" }),
              1
            ),
            () => Effect.void
          )
        )
      )
      const { harness } = yield* open([answer()])
      yield* Effect.forkScoped(Stream.runDrain((yield* harness.main.watch).envelopes))
      whole.push(yield* cpuOf(ask(harness)))
    }
    // The first runs warm up.
    const [left, right] = [median(whole.slice(3)), median(alone.slice(3))]
    row(
      `${count.toLocaleString("en")} deltas, beside reading them alone`,
      `${left.toFixed(0)} ms CPU`,
      `${right.toFixed(0)} ms CPU`,
      left / right,
      ""
    )
  }))

/** Fills a file with `count` entries, with a summary as head before the newest hundred, as a long session has. */
const fill = (file: string, count: number, headed: boolean) =>
  Effect.scoped(Effect.gen(function*() {
    const storage = yield* openSqlite(file, { durability: "process" })
    const conversation = "c1"
    yield* storage.commit({
      conversations: [{ id: conversation, parent: null, owner: null, createdAt: 0 }],
      entries: [],
      tasks: [],
      inputs: [],
      documents: [],
      events: [],
      nextID: 2,
      at: 0
    })
    const entry = (n: number) => ({
      id: `e${n}`,
      ordinal: n,
      conversation,
      kind: "bezel.user",
      data: null,
      model: [{ role: "user" as const, content: [{ type: "text" as const, text: `entry ${n} `.repeat(20) }] }],
      head: headed && n === count - 100 ? { after: null } : null,
      edits: null,
      createdAt: 0
    })
    for (let from = 2; from < count + 2; from += 1_000) {
      const entries = Array.from({ length: Math.min(1_000, count + 2 - from) }, (_, index) => entry(from + index))
      yield* storage.commit({
        conversations: [],
        entries,
        tasks: [],
        inputs: [],
        documents: [],
        events: [],
        nextID: from + entries.length,
        at: 0
      })
    }
  }))

const openings = Effect.gen(function*() {
  const sessions = [["100 entries", 100, false], ["100,000 entries, the newest 100 active", 100_000, true], [
    "100,000 entries, all active",
    100_000,
    false
  ]] as const
  const samples = new Map<string, Array<{ readonly milliseconds: number; readonly heap: number }>>()
  for (const [name, count, headed] of sessions) {
    yield* fill(path.join(folder, `${name}.db`), count, headed)
    samples.set(name, [])
  }
  for (let run = 0; run < 7; run++) {
    for (const [name] of sessions) {
      const { stdout } = yield* Effect.promise(() =>
        measure({
          command: process.execPath,
          argv: ["--expose-gc", path.join(import.meta.dirname, "harness-open.ts"), path.join(folder, `${name}.db`)],
          env: { PATH: process.env.PATH ?? "" },
          cwd: folder
        })
      )
      samples.get(name)?.push(JSON.parse(stdout))
    }
  }
  const of = (name: string, what: "milliseconds" | "heap") => samples.get(name)?.map((sample) => sample[what]) ?? []
  const [short, ...long] = sessions
  for (const [name] of long) {
    const [time, base] = [of(name, "milliseconds"), of(short[0], "milliseconds")]
    const [heap, baseHeap] = [median(of(name, "heap")), median(of(short[0], "heap"))]
    const aims = name.endsWith("all active")
      ? ["", ""]
      : [`aim 1.50× (±${Math.round(Math.max(spread(time), spread(base)) * 100)} %)`, "aim 1.30×"]
    row(
      `opening ${name}`,
      `${median(time).toFixed(1)} ms`,
      `${median(base).toFixed(1)} ms for 100`,
      median(time) / median(base),
      aims[0] ?? ""
    )
    row("  heap then", `${heap.toFixed(1)} MiB`, `${baseHeap.toFixed(1)} MiB`, heap / baseHeap, aims[1] ?? "")
  }
})

await Effect.runPromise(Effect.gen(function*() {
  if ("turns".includes(options.only)) {
    yield* turns("", 200, true)
    yield* turns("turns 901 to 1,000 beside 1 to 100, unwatched", 1_000, false)
    yield* turns("turns 901 to 1,000 beside 1 to 100, watched", 1_000, true)
  }
  if ("deltas".includes(options.only)) yield* deltas(20_000)
  if ("openings".includes(options.only)) yield* openings
}))
fs.rmSync(folder, { recursive: true })
