/**
 * `npm run bench`: Bezel beside pi, in one run, on the same scripted model. Prints ratios (Bezel / pi; below 1 is better).
 * `--runs N` sets the samples per case, `--only NAME` picks cases, `--json` prints everything as JSON. See `README.md` here.
 */
import { spawn } from "node:child_process"
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { parseArgs } from "node:util"
import { measure, median, type Program, type Sample, spread } from "./measure.ts"
import { installPeer, peerVersion } from "./peer.ts"

const root = join(import.meta.dirname, "..")

interface Case {
  readonly name: string
  /** `null`: `--version`. */
  readonly prompt: string | null
  readonly runs: number
}

const cases: ReadonlyArray<Case> = [
  { name: "--version", prompt: null, runs: 9 },
  { name: "one answer", prompt: "answer", runs: 7 },
  { name: "20 tool turns", prompt: "tools 20", runs: 5 },
  { name: "200 tool turns", prompt: "tools 200", runs: 3 },
  { name: "20,000 deltas", prompt: "deltas 20000", runs: 3 }
]

const { values: options } = parseArgs({
  options: { runs: { type: "string" }, only: { type: "string" }, json: { type: "boolean", default: false } }
})

/** The two programs, set up in a home of their own with the same work folder's contents. */
function programs(home: string, port: number, peer: string) {
  const work = join(home, "work")
  const agentFolder = join(home, "pi")
  const config = join(home, "config")
  for (const folder of [work, agentFolder, config]) mkdirSync(folder, { recursive: true })
  writeFileSync(join(work, "note.txt"), "a line of the note\n".repeat(40))
  const baseURL = `http://127.0.0.1:${port}/v1`
  writeFileSync(
    join(agentFolder, "models.json"),
    JSON.stringify({
      providers: { bench: { baseUrl: baseURL, api: "openai-completions", apiKey: "none", models: [{ id: "bench" }] } }
    })
  )
  writeFileSync(
    join(config, "bezel.jsonc"),
    JSON.stringify({
      model: "bench/bench",
      providers: {
        bench: { package: "@ai-sdk/openai-compatible", options: { baseURL, apiKey: "none" }, models: { bench: {} } }
      }
    })
  )
  const common = { HOME: home, PATH: process.env.PATH ?? "", LANG: "C.UTF-8" }
  const bezel = (prompt: string | null): Program => ({
    command: join(root, "bin/bezel"),
    argv: prompt === null ? ["--version"] : ["run", prompt],
    env: {
      ...common,
      BEZEL_CONFIG_DIR: config,
      BEZEL_DATA_DIR: join(home, "data"),
      BEZEL_STATE_DIR: join(home, "state")
    },
    cwd: work
  })
  const pi = (prompt: string | null): Program => ({
    command: process.execPath,
    argv: [peer, ...(prompt === null ? ["--version"] : ["--print", "--model", "bench/bench", "--offline", prompt])],
    env: {
      ...common,
      PI_CODING_AGENT_DIR: agentFolder,
      PI_OFFLINE: "1",
      PI_SKIP_VERSION_CHECK: "1",
      PI_TELEMETRY: "0"
    },
    cwd: work
  })
  return { bezel, pi }
}

async function startModel(): Promise<{ readonly port: number; readonly stop: () => void }> {
  const child = spawn(process.execPath, [join(import.meta.dirname, "model-server.ts")], {
    stdio: ["ignore", "pipe", "inherit"]
  })
  const port = await new Promise<number>((resolve, reject) => {
    child.stdout.once("data", (text: Buffer) => resolve(Number(text.toString())))
    child.once("exit", () => reject(new Error("the model server did not start")))
  })
  return { port, stop: () => child.kill() }
}

const metrics = ["wall", "cpu", "memory"] as const

async function compare(item: Case, sides: ReturnType<typeof programs>) {
  const runs = Math.max(1, Number(options.runs ?? item.runs))
  const samples: { readonly bezel: Array<Sample>; readonly pi: Array<Sample> } = { bezel: [], pi: [] }
  // The first of each fills caches; the rest take turns, so that a drift of the machine meets both.
  await measure(sides.bezel(item.prompt))
  await measure(sides.pi(item.prompt))
  for (let run = 0; run < runs; run++) {
    samples.bezel.push(await measure(sides.bezel(item.prompt)))
    samples.pi.push(await measure(sides.pi(item.prompt)))
  }
  const [ours, theirs] = [samples.bezel[0]?.stdout.trim(), samples.pi[0]?.stdout.trim()]
  if (item.prompt !== null && ours !== theirs) {
    throw new Error(
      `the answers differ, so the comparison is void: ${JSON.stringify([ours?.slice(0, 200), theirs?.slice(0, 200)])}`
    )
  }
  return Object.fromEntries(metrics.map((metric) => {
    const [bezel, pi] = [samples.bezel.map((sample) => sample[metric]), samples.pi.map((sample) => sample[metric])]
    return [metric, {
      bezel: median(bezel),
      pi: median(pi),
      ratio: median(bezel) / median(pi),
      spread: Math.max(spread(bezel), spread(pi))
    }] as const
  }))
}

const units = { wall: "ms", cpu: "ms CPU", memory: "MiB" }
const home = mkdtempSync(join(tmpdir(), "bezel-bench-home-"))
const model = await startModel()
try {
  const sides = programs(home, model.port, installPeer(root))
  const results: { [name: string]: Awaited<ReturnType<typeof compare>> } = {}
  if (!options.json) console.log(`Bezel beside pi ${peerVersion}: median Bezel / median pi = ratio (spread)\n`)
  for (const item of cases.filter(({ name }) => options.only === undefined || name.includes(options.only))) {
    const result = await compare(item, sides)
    results[item.name] = result
    if (options.json) continue
    const columns = metrics.map((metric) => {
      const value = result[metric]
      if (value === undefined) return ""
      const share = `${value.ratio.toFixed(2)}× (±${Math.round(value.spread * 100)} %)`
      return `${value.bezel.toFixed(0)} / ${value.pi.toFixed(0)} ${units[metric]} = ${share}`.padEnd(40)
    })
    console.log(`${item.name.padEnd(16)}${columns.join("")}`.trimEnd())
  }
  if (options.json) console.log(JSON.stringify(results, null, 2))
} finally {
  model.stop()
  rmSync(home, { recursive: true, force: true })
}
