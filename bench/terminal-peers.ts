/**
 * Bezel on a screen beside pi and opencode: each in a pseudo terminal of its own, with a terminal emulator that draws what
 * they write and answers what they ask, and the same scripted model. They take turns in one run; what counts are ratios.
 *
 * First paint is from the start of the command until its editor is on the screen. CPU is what the system counts for the
 * program and all that it has started. The echo is from a key until the program writes something.
 */
import { spawn } from "node:child_process"
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { PseudoTerminal } from "../test/tui/terminal.ts"
import { cpuMillis, installOpencode } from "./http-servers.ts"
import { median } from "./measure.ts"
import { installPeer } from "./peer.ts"

const root = join(import.meta.dirname, "..")

interface Peer {
  readonly name: string
  readonly command: string
  readonly env: { readonly [name: string]: string }
  /** What its screen shows once it can be typed into. */
  readonly ready: RegExp
  /** It gets through an answer of many thousand deltas in a time that one can wait for. */
  readonly streams: boolean
}

/** One program, and what it took. */
export interface PeerResult {
  readonly name: string
  readonly firstPaintMillis: number
  readonly firstPaintCpu: number
  readonly echoMillis: number
  readonly answers: ReadonlyArray<Answer & { readonly cpu: number; readonly bytesPerCharacter: number }>
}

interface Answer {
  /** Words of a paragraph; 0: the answer is one. */
  readonly paragraph: number
  /** Milliseconds between ten deltas and the next; 0: as fast as they are read. */
  readonly pause: number
}

const cases: ReadonlyArray<Answer> = [
  { paragraph: 60, pause: 5 },
  { paragraph: 0, pause: 5 },
  { paragraph: 60, pause: 0 }
]

const setUp = (home: string, port: number): ReadonlyArray<Peer> => {
  const work = join(home, "work")
  const config = join(home, "config")
  const agentFolder = join(home, "pi")
  for (const folder of [work, config, agentFolder]) mkdirSync(folder, { recursive: true })
  const baseURL = `http://127.0.0.1:${port}/v1`
  const options = { baseURL, apiKey: "none" }
  const provider = { models: { bench: { name: "bench" } }, options }
  writeFileSync(
    join(config, "bezel.jsonc"),
    JSON.stringify({
      model: "bench/bench",
      providers: { bench: { package: "@ai-sdk/openai-compatible", options, models: { bench: {} } } }
    })
  )
  writeFileSync(
    join(agentFolder, "models.json"),
    JSON.stringify({
      providers: { bench: { baseUrl: baseURL, api: "openai-completions", apiKey: "none", models: [{ id: "bench" }] } }
    })
  )
  writeFileSync(
    join(work, "opencode.json"),
    JSON.stringify({
      model: "bench/bench",
      provider: { bench: { npm: "@ai-sdk/openai-compatible", name: "bench", ...provider } }
    })
  )
  const opencode = installOpencode()
  const ready = /^─+\n.*\n─+\n.*work/m
  const bezel = {
    command: join(root, "bin/bezel"),
    env: {
      BEZEL_CONFIG_DIR: config,
      BEZEL_DATA_DIR: join(home, "data"),
      BEZEL_STATE_DIR: join(home, "state"),
      BEZEL_CACHE_DIR: join(home, "cache")
    },
    ready,
    streams: true
  }
  const pi = {
    command: `${process.execPath} ${installPeer(root)} --model bench/bench --offline`,
    env: { PI_CODING_AGENT_DIR: agentFolder, PI_OFFLINE: "1", PI_SKIP_VERSION_CHECK: "1", PI_TELEMETRY: "0" },
    ready,
    streams: true
  }
  // Each in both of its modes: one that writes into the terminal's history, and one that shows what is seen alone.
  return [
    { ...bezel, name: "bezel" },
    { ...pi, name: "pi", command: `${pi.command} --tui-mode regular` },
    { ...bezel, name: "bezel on the full screen", command: `${bezel.command} --full-screen` },
    { ...pi, name: "pi on the full screen", command: `${pi.command} --tui-mode fullscreen` },
    ...(opencode === null
      ? []
      : [{ name: "opencode", command: opencode, env: {}, ready: /Ask anything/, streams: false }])
  ]
}

const pause = (millis: number) => new Promise((resolve) => setTimeout(resolve, millis))

/** Waits without the pauses of a test. */
const soon = async (terminal: PseudoTerminal, holds: () => boolean, millis = 120_000): Promise<void> => {
  const deadline = performance.now() + millis
  while (!holds()) {
    if (performance.now() > deadline) throw new Error(`bench: not seen:\n${terminal.screen().join("\n")}`)
    await pause(2)
  }
}

const open = async (peer: Peer, home: string, opened: Array<PseudoTerminal>) => {
  const began = performance.now()
  const terminal = PseudoTerminal.open({
    command: peer.command,
    columns: 80,
    rows: 24,
    cwd: join(home, "work"),
    env: { HOME: home, ...peer.env }
  })
  opened.push(terminal)
  await soon(terminal, () => peer.ready.test(terminal.screen().join("\n")))
  return { terminal, firstPaint: performance.now() - began, cpu: cpuMillis(terminal.pid()) }
}

const echoes = async (terminal: PseudoTerminal): Promise<number> => {
  await terminal.settled(500)
  const times: Array<number> = []
  for (let key = 0; key < 40; key++) {
    const seen = terminal.raw.length
    const began = performance.now()
    terminal.write(String.fromCharCode(97 + key % 26))
    await soon(terminal, () => terminal.raw.length > seen)
    times.push(performance.now() - began)
    await pause(60)
  }
  return median(times)
}

/** What an answer of so many deltas costs on the screen. */
const answer = async (terminal: PseudoTerminal, deltas: number, { paragraph, pause }: Answer) => {
  await terminal.settled(500)
  const end = `The end of ${paragraph}, ${pause}.`
  terminal.write(`prose ${deltas} ${paragraph} ${pause}`)
  await terminal.settled(300)
  const cpu = cpuMillis(terminal.pid())
  const seen = terminal.raw.length
  terminal.write("\r")
  await soon(terminal, () => terminal.screen().join("\n").includes(end))
  await terminal.settled(500)
  return {
    paragraph,
    pause,
    cpu: cpuMillis(terminal.pid()) - cpu,
    // Each delta is "word1 ".
    bytesPerCharacter: Buffer.byteLength(terminal.raw.slice(seen)) / (deltas * 6)
  }
}

/** Measures every program that can be had, in turns. */
export const comparePeers = async (runs: number, deltas: number): Promise<ReadonlyArray<PeerResult>> => {
  const home = mkdtempSync(join(tmpdir(), "bench-terminal-"))
  const opened: Array<PseudoTerminal> = []
  const server = spawn(process.execPath, [join(root, "bench/model-server.ts")], {
    stdio: ["ignore", "pipe", "inherit"]
  })
  try {
    const port = await new Promise<string>((resolve) => server.stdout.once("data", (data) => resolve(String(data))))
    const samples: Array<PeerResult> = []
    const peers = setUp(home, Number(port))
    for (let run = 0; run <= runs; run++) {
      for (const peer of peers) {
        const { cpu, firstPaint, terminal } = await open(peer, home, opened)
        const echoMillis = await echoes(terminal)
        terminal.write("\x15")
        const answers = []
        // Once is enough of what takes seconds; the first run fills caches.
        for (const one of run === runs && peer.streams ? cases : []) answers.push(await answer(terminal, deltas, one))
        terminal.close()
        if (run > 0) {
          samples.push({ name: peer.name, firstPaintMillis: firstPaint, firstPaintCpu: cpu, echoMillis, answers })
        }
      }
    }
    return peers.map(({ name }) => {
      const own = samples.filter((sample) => sample.name === name)
      return {
        name,
        firstPaintMillis: median(own.map((sample) => sample.firstPaintMillis)),
        firstPaintCpu: median(own.map((sample) => sample.firstPaintCpu)),
        echoMillis: median(own.map((sample) => sample.echoMillis)),
        answers: own.flatMap((sample) => sample.answers)
      }
    })
  } finally {
    for (const terminal of opened) terminal.close()
    server.kill()
    rmSync(home, { recursive: true, force: true })
  }
}
