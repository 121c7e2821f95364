/**
 * The HTTP API beside Node's bare HTTP server and beside `opencode serve`, in one run: requests per second and CPU for each,
 * start and rest, and what streaming costs.
 *
 * All three are processes of their own, asked by this one over kept connections and in turns, in several rounds; lists have
 * the same 50 sessions, and the bare server answers with Bezel's own bytes. Absolute numbers drift on shared machines; the
 * ratios of each round count. `--json` for machines.
 */
import { spawn } from "node:child_process"
import { Agent, request } from "node:http"
import { loadavg } from "node:os"
import { join } from "node:path"
import { cpuMillis, installOpencode, memoryMiB, opencode, recipes, type Server, start } from "./http-servers.ts"

const connections = 16
const sessions = 50
const seconds = Number(process.env.BENCH_SECONDS ?? 2)
const rounds = Number(process.env.BENCH_ROUNDS ?? 7)

interface Load {
  readonly perSecond: number
  readonly cpuMicros: number
}

const agents = new Map<string, Agent>()

const send = (server: Server, method: string, path: string, body?: string): Promise<string> =>
  new Promise((resolve, reject) => {
    const agent = agents.get(server.url) ?? new Agent({ keepAlive: true, maxSockets: connections })
    agents.set(server.url, agent)
    const { hostname, port } = new URL(server.url)
    const headers = body === undefined
      ? server.headers
      : { ...server.headers, "content-type": "application/json", "content-length": `${Buffer.byteLength(body)}` }
    const sent = request({ agent, hostname, port, method, path, headers }, (response) => {
      const chunks: Array<Buffer> = []
      response.on("data", (chunk: Buffer) => chunks.push(chunk)).on("end", () => {
        const text = Buffer.concat(chunks).toString("utf8")
        if ((response.statusCode ?? 500) >= 300) reject(new Error(`${method} ${path}: ${response.statusCode} ${text}`))
        else resolve(text)
      })
    })
    sent.on("error", reject)
    sent.end(body)
  })

const load = async (server: Server, warmUp: number, once: () => Promise<unknown>): Promise<Load> => {
  for (let count = 0; count < warmUp; count++) await once()
  const cpu = cpuMillis(server.pid)
  const began = performance.now()
  const end = began + seconds * 1_000
  let count = 0
  await Promise.all(Array.from({ length: connections }, async () => {
    while (performance.now() < end) {
      await once()
      count++
    }
  }))
  const took = performance.now() - began
  return { perSecond: count / took * 1_000, cpuMicros: (cpuMillis(server.pid) - cpu) * 1_000 / count }
}

const pause = (millis: number) => new Promise((resolve) => setTimeout(resolve, millis))

const median = (values: ReadonlyArray<number>): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0

interface Result {
  readonly name: string
  readonly startMillis: number
  readonly idleMiB: number
  readonly idleCpuPercent: number
  /** One of each round. */
  readonly list: Array<Load>
  readonly create: Array<Load>
}

const body = JSON.stringify({ title: "bench" })

/** Of a server that has just started and that nobody asks anything. */
const measureRest = async (server: Server): Promise<Result> => {
  await pause(1_500)
  const idleMiB = memoryMiB(server.pid)
  const before = cpuMillis(server.pid)
  await pause(4_000)
  const idleCpuPercent = (cpuMillis(server.pid) - before) / 40
  return { name: server.name, startMillis: server.startMillis, idleMiB, idleCpuPercent, list: [], create: [] }
}

/** `answer`: what the bare server is to say; `null` for the others, which have sessions. */
const measureRound = async (
  server: Server,
  result: Result,
  answer: { readonly list: string; readonly create: string } | null
): Promise<void> => {
  if (answer !== null) await send(server, "PUT", "/", answer.list)
  const warmUp = result.list.length === 0 ? 200 : 16
  result.list.push(await load(server, warmUp, () => send(server, "GET", "/session?limit=50")))
  if (answer !== null) await send(server, "PUT", "/", answer.create)
  result.create.push(await load(server, warmUp, () => send(server, "POST", "/session", body)))
}

// ------------------------------------------------------------------------------------------------------------- streaming

interface Streaming {
  /** Milliseconds from sending a prompt to the first byte of its event. */
  readonly promptToEvent: number
  readonly bytesPerCharacter: number
  /** Sessions that streamed at once, and how long until all had ended. */
  readonly atOnce: number
  readonly atOnceSeconds: number
  readonly mibPerSession: number
  /** CPU of the server and its hosts meanwhile, of one core. */
  readonly cpuPercent: number
}

interface Followed {
  readonly bytes: number
  readonly characters: number
  readonly firstMillis: number
}

/** Prompts a session and follows it to the end of its turn. */
const follow = async (server: Server, id: string): Promise<Followed> => {
  const leaving = new AbortController()
  const response = await fetch(`${server.url}/session/${id}/event`, { headers: server.headers, signal: leaving.signal })
  if (response.body === null) throw new Error("no stream")
  let bytes = 0
  let characters = 0
  let text = ""
  let firstMillis = 0
  let prompted = 0
  const decoder = new TextDecoder()
  for await (const chunk of response.body) {
    const piece = decoder.decode(chunk, { stream: true })
    if (prompted === 0) {
      prompted = performance.now()
      void send(server, "POST", `/session/${id}/prompt`, JSON.stringify({ text: "drip 100" }))
      continue
    }
    if (firstMillis === 0) firstMillis = performance.now() - prompted
    text += piece
    const end = text.lastIndexOf("\n\n")
    if (end < 0) continue
    for (const block of text.slice(0, end).split("\n\n")) {
      if (block.startsWith("event: delta")) {
        bytes += Buffer.byteLength(block) + 2
        characters += JSON.parse(block.slice(block.indexOf("data: ") + 6)).text.length
      }
    }
    const isOver = text.includes("event: turn.ended")
    text = text.slice(end + 2)
    if (isOver) break
  }
  leaving.abort()
  return { bytes, characters, firstMillis }
}

/** The model, in a process of its own, so that its work is not counted. */
const startModel = async (): Promise<{ readonly port: number; readonly stop: () => void }> => {
  const child = spawn(process.execPath, [join(import.meta.dirname, "model-server.ts")], {
    stdio: ["ignore", "pipe", "inherit"]
  })
  const port = await new Promise<number>((resolve) => {
    child.stdout.once("data", (text: Buffer) => resolve(Number(text.toString())))
  })
  return { port, stop: () => child.kill() }
}

const measureStreaming = async (atOnce: number): Promise<Streaming> => {
  const model = await startModel()
  const server = await start(
    recipes({
      model: "bench/bench",
      providers: {
        bench: {
          package: "@ai-sdk/openai-compatible",
          options: { baseURL: `http://127.0.0.1:${model.port}`, apiKey: "none" },
          models: { bench: {} }
        }
      }
    }).bezel
  )
  try {
    const create = async () => JSON.parse(await send(server, "POST", "/session", "{}")).id as string
    const alone: Array<Followed> = []
    for (let count = 0; count < 5; count++) alone.push(await follow(server, await create()))
    const ids = await Promise.all(Array.from({ length: atOnce }, create))
    const before = memoryMiB(server.pid)
    const cpu = cpuMillis(server.pid)
    const began = performance.now()
    let most = before
    const watching = setInterval(() => {
      most = Math.max(most, memoryMiB(server.pid))
    }, 500)
    const all = await Promise.all(ids.map((id) => follow(server, id)))
    clearInterval(watching)
    const took = performance.now() - began
    const bytes = all.reduce((sum, one) => sum + one.bytes, 0)
    const characters = all.reduce((sum, one) => sum + one.characters, 0)
    return {
      promptToEvent: median(alone.map(({ firstMillis }) => firstMillis)),
      bytesPerCharacter: bytes / characters,
      atOnce,
      atOnceSeconds: took / 1_000,
      mibPerSession: (most - before) / atOnce,
      cpuPercent: (cpuMillis(server.pid) - cpu) / took * 100
    }
  } finally {
    await server.stop()
    model.stop()
  }
}

// ------------------------------------------------------------------------------------------------------------------ report

const loadAverage = () => loadavg().map((one) => one.toFixed(1)).join(", ")
const loadBefore = loadAverage()
const { bezel, raw } = recipes()
const program = installOpencode()
const servers: Array<Server> = []
const results: Array<Result> = []
// One after the other, so that none starts or rests beside the work of another.
for (const recipe of [bezel, raw, ...(program === null ? [] : [opencode(program)])]) {
  const server = await start(recipe)
  servers.push(server)
  results.push(await measureRest(server))
}
const [own, bare] = servers
if (own === undefined || bare === undefined) throw new Error("no server")
for (const server of servers) {
  if (server !== bare) { for (let count = 0; count < sessions; count++) await send(server, "POST", "/session", body) }
}
const answers = { list: await send(own, "GET", "/session?limit=50"), create: await send(own, "POST", "/session", body) }
for (let round = 0; round < rounds; round++) {
  for (const [index, server] of servers.entries()) {
    const result = results[index]
    if (result !== undefined) await measureRound(server, result, server === bare ? answers : null)
  }
}
for (const agent of agents.values()) agent.destroy()
agents.clear()
for (const server of servers) await server.stop()
const streaming = await measureStreaming(Number(process.env.BENCH_SESSIONS ?? 200))
for (const agent of agents.values()) agent.destroy()

/** Of the ratios of each round: the median, the smallest and the largest. */
const ratios = (ours: ReadonlyArray<Load>, theirs: ReadonlyArray<Load>, of: keyof Load): string => {
  const all = ours.map((load, round) => load[of] / (theirs[round]?.[of] ?? 0))
  const shown = (value: number) => value.toFixed(value < 2 ? 2 : 1)
  return `${shown(median(all))} (${shown(Math.min(...all))} to ${shown(Math.max(...all))})`
}

const perSecond = (loads: ReadonlyArray<Load>) => median(loads.map((load) => load.perSecond)).toFixed(0)
const micros = (loads: ReadonlyArray<Load>) => median(loads.map((load) => load.cpuMicros)).toFixed(0)

if (process.argv.includes("--json")) {
  console.log(JSON.stringify({ loadBefore, loadAfter: loadAverage(), results, streaming }))
} else {
  for (const { create, idleCpuPercent, idleMiB, list, name, startMillis } of results) {
    console.log(
      `${name.padEnd(18)} list ${perSecond(list)}/s, ${micros(list)} µs CPU · create ${perSecond(create)}/s, ` +
        `${micros(create)} µs CPU · start ${startMillis.toFixed(0)} ms · idle ${idleMiB.toFixed(0)} MiB, ` +
        `${idleCpuPercent.toFixed(1)} % CPU`
    )
  }
  const [us, node, them] = results
  if (us !== undefined && node !== undefined) {
    console.log(
      `\nbeside node:http: list ${ratios(us.list, node.list, "perSecond")} (aim: at least 0.4), ` +
        `create ${ratios(us.create, node.create, "perSecond")}`
    )
  }
  if (us !== undefined && them !== undefined) {
    console.log(
      `beside opencode: list ${ratios(us.list, them.list, "perSecond")} and create ` +
        `${ratios(us.create, them.create, "perSecond")} (aim: at least 5); CPU of a list ` +
        `${ratios(us.list, them.list, "cpuMicros")}, of a create ${
          ratios(us.create, them.create, "cpuMicros")
        }; start ` +
        `${(us.startMillis / them.startMillis).toFixed(2)} (aim: at most 0.3), idle memory ` +
        `${(us.idleMiB / them.idleMiB).toFixed(2)} (aim: at most 0.35)`
    )
  }
  const { atOnce, atOnceSeconds, bytesPerCharacter, cpuPercent, mibPerSession, promptToEvent } = streaming
  console.log(
    `streaming: first byte of an event ${promptToEvent.toFixed(0)} ms after the prompt was sent, ` +
      `${
        bytesPerCharacter.toFixed(1)
      } bytes for each character (aim: at most a quarter of 50 to 70); ${atOnce} sessions ` +
      `at once ended after ${atOnceSeconds.toFixed(1)} s (each alone 2.0), ${
        mibPerSession.toFixed(2)
      } MiB for each open ` +
      `session, ${cpuPercent.toFixed(0)} % of a core`
  )
  console.log(`load average before: ${loadBefore}; after: ${loadAverage()}`)
}
