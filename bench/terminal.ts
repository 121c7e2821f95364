/**
 * The screen: `node bench/terminal.ts [--entries N] [--keys N] [--deltas N] [--full-screen] [--alone] [--runs N] [--json]`.
 *
 * First alone, then, without `--alone`, the whole program beside others (`terminal-peers.ts`). Alone: the real terminal host and the real chat screen over a session that is nothing but its view, on a terminal that only counts:
 * what a key costs until its echo is written, in a session of many entries, in CPU of this process, so that a busy machine
 * does not show; and what an answer costs that streams in many deltas, in CPU and in bytes written per character.
 */
import type { ViewEntry } from "@bezel/core/harness"
import { Plugin } from "@bezel/core/host"
import { runTerminal } from "@bezel/tui"
import { MemoryTerminal, type Screen } from "@bezel/tui/testing"
import * as Effect from "effect/Effect"
import { parseArgs } from "node:util"
import { chatScreen } from "../packages/plugins/src/chat/screen.ts"
import { tui as toolsTui } from "../packages/plugins/src/tools/tui.ts"
import { makeStubSession } from "../test/tui/stub-session.ts"
import { comparePeers, type PeerResult } from "./terminal-peers.ts"

const { values: options } = parseArgs({
  options: {
    entries: { type: "string" },
    keys: { type: "string" },
    deltas: { type: "string" },
    "full-screen": { type: "boolean", default: false },
    alone: { type: "boolean", default: false },
    runs: { type: "string" },
    json: { type: "boolean", default: false }
  }
})
const entryCount = Number(options.entries ?? 10_000)
const keyCount = Number(options.keys ?? 500)
const deltaCount = Number(options.deltas ?? 20_000)
/** Deltas between two pauses of a millisecond, so that frames come in between. */
const deltasAtOnce = 20

/** A terminal that keeps only what was written last and how much in all. */
const countingScreen = () => {
  const seen = { bytes: 0, last: "", frames: 0 }
  const screen: Screen = {
    cols: 80,
    rows: 24,
    write: (data, drawn) => {
      seen.bytes += Buffer.byteLength(data)
      seen.frames += 1
      seen.last = (seen.last + data).slice(-4_000)
      drawn()
    },
    resize: () => {},
    buffer: { active: { length: 0, getLine: () => undefined } }
  }
  return { screen, seen }
}

const entry = (index: number): ViewEntry => {
  const words = `Entry ${index}: some words of **an answer**, with \`code\` in them.\n\n- one\n- two`
  return index % 2 === 0
    ? {
      id: `e${index}`,
      kind: "bezel.user",
      data: null,
      model: [{ role: "user", content: [{ type: "text", text: words }] }],
      head: false,
      createdAt: 0
    }
    : {
      id: `e${index}`,
      kind: "bezel.assistant",
      data: null,
      model: [{ role: "assistant", content: [{ type: "text", text: words }] }],
      head: false,
      createdAt: 0
    }
}

const cpuMillis = (since: NodeJS.CpuUsage): number => {
  const { system, user } = process.cpuUsage(since)
  return (system + user) / 1_000
}

const until = async (holds: () => boolean): Promise<void> => {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 1))
}

const run = Effect.scoped(Effect.gen(function*() {
  const session = yield* makeStubSession(() => Effect.void)
  const { screen, seen } = countingScreen()
  const terminal = new MemoryTerminal(screen)
  const chat = Plugin.define({
    id: "bezel.chat",
    tui: (ctx) =>
      Effect.gen(function*() {
        const changed = yield* chatScreen(ctx, {
          conversation: () => session.conversation,
          location: () => "/project",
          home: null
        })
        yield* ctx.onActivate(
          Effect.asVoid(Effect.forkScoped(session.conversation.view.forEach(() => Effect.sync(changed))))
        )
      })
  })
  yield* Effect.forkScoped(runTerminal({
    presentation: session.presentation,
    plugins: Plugin.sources("tui", [chat, Plugin.define({ id: "bezel.tools", tui: toolsTui })]),
    terminal,
    fullScreen: options["full-screen"] ? { mouse: false } : null
  }))
  yield* Effect.promise(() => until(() => seen.last.includes("offline")))

  const entries = Array.from({ length: entryCount }, (_, index) => entry(index))
  const opening = process.cpuUsage()
  yield* session.update((view) => ({ ...view, entries }))
  yield* Effect.promise(() => until(() => seen.last.includes(`Entry ${entryCount - 1}`)))
  const firstPaint = cpuMillis(opening)

  const costs: Array<number> = []
  for (let index = 0; index < keyCount; index++) {
    const key = String.fromCharCode(97 + index % 26)
    const frames = seen.frames
    const before = process.cpuUsage()
    terminal.type(index % 60 === 59 ? "\x15" : key)
    yield* Effect.promise(() => until(() => seen.frames > frames))
    costs.push(cpuMillis(before))
  }
  costs.sort((a, b) => a - b)
  const quantile = (share: number) => costs[Math.min(costs.length - 1, Math.floor(costs.length * share))] ?? 0

  // Back through all of it by pages, each of them laid out for the first time; only the full screen scrolls by itself.
  const pages: Array<number> = []
  for (let index = 0; options["full-screen"] && index < keyCount; index++) {
    const frames = seen.frames
    const before = process.cpuUsage()
    terminal.type("\x1b[5~")
    yield* Effect.promise(() => until(() => seen.frames > frames))
    pages.push(cpuMillis(before))
  }
  pages.sort((a, b) => a - b)

  // An answer of a session that begins.
  yield* session.update((view) => ({ ...view, entries: [] }))
  yield* Effect.sleep(500)
  const framesBefore = seen.frames
  const bytesBefore = seen.bytes
  const streaming = process.cpuUsage()
  let words = ""
  for (let index = 0; index < deltaCount; index++) {
    words += index % 12 === 11 ? "\n\n" : `word${index % 10} `
    if (index % deltasAtOnce === 0) yield* Effect.sleep(1)
    const text = words
    yield* session.update((view) => ({
      ...view,
      turn: {
        inputs: ["i"],
        generation: { task: "t", stage: "streaming", attempt: 1, model: null, retryAt: null, error: null },
        message: { parts: [{ type: "text", text }] },
        tools: []
      }
    }))
  }
  yield* Effect.sleep(100)
  return {
    entries: entryCount,
    firstPaintMillis: Math.round(firstPaint),
    keyMedianMillis: Number(quantile(0.5).toFixed(2)),
    key99Millis: Number(quantile(0.99).toFixed(2)),
    page99Millis: Number((pages[Math.floor(pages.length * 0.99)] ?? 0).toFixed(2)),
    deltas: deltaCount,
    frames: seen.frames - framesBefore,
    characters: words.length,
    streamMillis: Math.round(cpuMillis(streaming)),
    bytesPerCharacter: Number(((seen.bytes - bytesBefore) / words.length).toFixed(2))
  }
}))

const ratio = (ours: number, theirs: number): string => `${(ours / theirs).toFixed(2)}x`

/** Each program's figures, and Bezel's as ratios of those of what it is compared with. */
const printPeers = (peers: ReadonlyArray<PeerResult>): void => {
  for (const { echoMillis, firstPaintCpu, firstPaintMillis, name } of peers) {
    console.log(
      `${name}: first paint ${Math.round(firstPaintMillis)} ms, ${Math.round(firstPaintCpu)} ms of CPU; ` +
        `a key to what it changes ${echoMillis.toFixed(1)} ms`
    )
  }
  const named = (name: string) => peers.find((peer) => peer.name === name)
  for (
    const [ours, theirs] of [
      [named("bezel"), named("pi")],
      [named("bezel on the full screen"), named("pi on the full screen")],
      [named("bezel"), named("opencode")]
    ]
  ) {
    if (ours === undefined || theirs === undefined) continue
    console.log(
      `${ours.name} / ${theirs.name}: first paint ${ratio(ours.firstPaintMillis, theirs.firstPaintMillis)}, ` +
        `its CPU ${ratio(ours.firstPaintCpu, theirs.firstPaintCpu)}, key ${ratio(ours.echoMillis, theirs.echoMillis)}`
    )
    for (const [index, own] of ours.answers.entries()) {
      const other = theirs.answers[index]
      if (other === undefined) continue
      const what = `${own.paragraph === 0 ? "one paragraph" : `paragraphs of ${own.paragraph} words`}, ${
        own.pause === 0 ? "at once" : `${own.pause} ms after every ten`
      }`
      console.log(
        `  ${deltaCount} deltas in ${what}: ${own.cpu} ms of CPU beside ${other.cpu} (${ratio(own.cpu, other.cpu)}); ` +
          `${own.bytesPerCharacter.toFixed(2)} bytes written per character beside ${
            other.bytesPerCharacter.toFixed(2)
          } ` +
          `(${ratio(own.bytesPerCharacter, other.bytesPerCharacter)})`
      )
    }
  }
  if (named("opencode") === undefined) console.log("opencode could not be had from npm")
}

const result = await Effect.runPromise(run)
const peers = options.alone ? [] : await comparePeers(Number(options.runs ?? 3), deltaCount)
if (options.json) console.log(JSON.stringify({ ...result, peers }))
else {
  console.log(`${result.entries} entries: first paint ${result.firstPaintMillis} ms of CPU`)
  console.log(
    `a key to its echo: ${result.keyMedianMillis} ms of CPU, 99 % under ${result.key99Millis} ms (aim: 16 ms)`
  )
  if (options["full-screen"]) console.log(`a page back: 99 % under ${result.page99Millis} ms of CPU (aim: 16 ms)`)
  console.log(
    `an answer of ${result.deltas} deltas: ${result.streamMillis} ms of CPU in ${result.frames} frames, ` +
      `${result.bytesPerCharacter} bytes written per character`
  )
  printPeers(peers)
}
process.exit(0)
