/**
 * What keeping track of files costs a tool loop: the same turns with and without it, taking turns in one process.
 *
 * `node bench/snapshots.ts` prints, for loops of edits and of commands, in a repository and outside of one, how much longer
 * the loop takes; the aim is a tenth at most. The model answers at once in the first rows, which is the worst case, and after
 * 300 ms in the others, which is fast for a real one. The share of the loop that is spent waiting says more than the ratio of
 * two runs, which swings on a busy machine. `--only NAME` picks, `--files N,…` sets the sizes of the folder, `--steps N` the
 * length of the loop and `--samples N` how many are measured.
 */
import type { HookKind, HookOptions, Namespace } from "@bezel/core/harness"
import { Plugin } from "@bezel/core/host"
import type { SettingsKey } from "@bezel/core/settings"
import {
  call,
  emptySettings,
  scriptedModel,
  type ScriptedTurn,
  temporaryDirectory,
  testSessionHost
} from "@bezel/core/testing"
import { SnapshotsSetting } from "@bezel/plugins/history"
import { session as history } from "@bezel/plugins/history/session"
import { session as tools } from "@bezel/plugins/tools/session"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { execFileSync } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"
import { parseArgs } from "node:util"
import { median, spread } from "./measure.ts"

const { values: options } = parseArgs({
  options: {
    only: { type: "string", default: "" },
    files: { type: "string", default: "100,5000" },
    steps: { type: "string", default: "20" },
    samples: { type: "string", default: "5" }
  }
})

const git = (directory: string, ...args: ReadonlyArray<string>) =>
  execFileSync("git", ["-c", "user.name=b", "-c", "user.email=b@example.com", ...args], { cwd: directory })

/** A folder of so many source files, 4 KiB each. */
const fill = (directory: string, isRepository: boolean, fileCount: number) => {
  for (let index = 0; index < fileCount; index++) {
    const folder = path.join(directory, `src/part${Math.floor(index / 50)}`)
    fs.mkdirSync(folder, { recursive: true })
    fs.writeFileSync(path.join(folder, `file${index}.ts`), `export const x${index} = ${index}\n`.repeat(130))
  }
  fs.writeFileSync(path.join(directory, "count.txt"), "0\n")
  if (!isRepository) return
  git(directory, "init", "-q")
  git(directory, "add", "-A")
  git(directory, "commit", "-q", "-m", "start")
}

const steps = Number(options.steps)

const edits: ReadonlyArray<ScriptedTurn> = Array.from({ length: steps }, (_, index) => [
  call("edit", { path: "count.txt", oldText: `${index}\n`, newText: `${index + 1}\n` })
])

const commands = (line: (index: number) => string): ReadonlyArray<ScriptedTurn> =>
  Array.from({ length: steps }, (_, index) => [call("bash", { command: line(index) })])

const loops: ReadonlyArray<{ readonly name: string; readonly script: ReadonlyArray<ScriptedTurn> }> = [
  { name: "edits", script: edits },
  { name: "true", script: commands(() => "true # change nothing") },
  { name: "commands of 5 ms", script: commands((index) => `echo ${index} > out.txt`) },
  { name: "commands of 200 ms", script: commands((index) => `sleep 0.2; echo ${index} > out.txt`) }
]

type Context = Parameters<typeof history>[0]

/** The same facet, with the time that calls wait for it. */
const timed = (waited: { millis: number }) => (ctx: Context) => {
  const hooks = (namespace: Namespace, kind: HookKind, handlers: object, hookOptions?: HookOptions) => {
    const wrapped = Object.entries(handlers).map(([point, handler]: [string, unknown]) => [
      point,
      (...input: ReadonlyArray<unknown>) => {
        const start = performance.now()
        const effect: unknown = typeof handler === "function" ? Reflect.apply(handler, handlers, input) : Effect.void
        const settled = Effect.sync(() => (waited.millis += performance.now() - start))
        return Effect.isEffect(effect) ? Effect.ensuring(effect, settled) : Effect.void
      }
    ])
    // Every member has kept its shape.
    return ctx.hooks(namespace, kind, Object.fromEntries(wrapped), hookOptions)
  }
  return history({ ...ctx, hooks: hooks as Context["hooks"] })
}

/** Milliseconds of one loop, and how many of them it waited for the history. */
const run = (directory: string, script: ReadonlyArray<ScriptedTurn>, latency: number, enabled: boolean) =>
  Effect.gen(function*() {
    const scripted = scriptedModel([...script, "done"])
    const waited = { millis: 0 }
    const host = yield* testSessionHost([
      Plugin.define({ id: "bezel.tools", session: tools }),
      Plugin.define({ id: "bezel.history", session: timed(waited) })
    ], {
      directory,
      model: {
        info: scripted.info,
        stream: (request) => Stream.unwrap(Effect.as(Effect.sleep(latency), scripted.stream(request)))
      },
      settings: {
        ...emptySettings,
        get: <A>(key: SettingsKey<A>): A => key.name === SnapshotsSetting.name ? { enabled } as A : key.default
      }
    })
    const { id } = yield* host.session.create()
    const start = performance.now()
    const answer = yield* host.ask(id, "go")
    if (answer !== "done") throw new Error(answer)
    return { took: performance.now() - start, waited: waited.millis }
  }).pipe(Effect.scoped)

const percent = (share: number): string => `${(share * 100).toFixed(1)} %`

const measureLoop = (
  { name, script }: (typeof loops)[number],
  isRepository: boolean,
  latency: number,
  fileCount: number
) =>
  Effect.gen(function*() {
    const directory = fs.realpathSync(yield* temporaryDirectory)
    fill(directory, isRepository, fileCount)
    const reset = () => fs.writeFileSync(path.join(directory, "count.txt"), "0\n")
    const on: Array<number> = []
    const off: Array<number> = []
    const shares: Array<number> = []
    for (let sample = 0; sample <= Number(options.samples); sample++) {
      for (const [enabled, samples] of [[false, off], [true, on]] as const) {
        reset()
        const { took, waited } = yield* run(directory, script, latency, enabled)
        // The first run of each fills caches.
        if (sample === 0) continue
        samples.push(took)
        if (enabled) shares.push(waited / took)
      }
    }
    const ratio = median(on) / median(off)
    const place = isRepository ? "repository" : "folder"
    process.stdout.write(
      `${name}, ${place} of ${fileCount} files, model after ${latency} ms: ${
        median(off).toFixed(0)
      } ms, with snapshots ${median(on).toFixed(0)} ms, ratio ${ratio.toFixed(2)} (spread ${
        spread(on).toFixed(2)
      }); of the loop ${percent(median(shares))} (${percent(Math.min(...shares))} to ${
        percent(Math.max(...shares))
      }) is waiting for them (aim: at most 10 %)\n`
    )
  }).pipe(Effect.scoped)

const all = Effect.gen(function*() {
  for (const latency of [0, 300]) {
    for (const files of options.files.split(",").map(Number)) {
      for (const loop of loops) {
        for (const isRepository of [true, false]) {
          if (`${loop.name} ${isRepository ? "repository" : "folder"} ${files} ${latency}`.includes(options.only)) {
            yield* measureLoop(loop, isRepository, latency, files)
          }
        }
      }
    }
  }
})

await Effect.runPromise(all)
