/**
 * What a durable commit costs: `node bench/storage.ts`. Commits per second of one entry of about 200 characters through the
 * whole harness and through the storage alone, beside the engine below it in the same run: a bare `node:sqlite` transaction
 * of one insert, and a bare append to a file. Rounds take turns; medians are compared.
 */
import { type Batch, openJsonl, openSqlite, type Storage } from "@bezel/core/storage"
import { makeToolRegistry } from "@bezel/core/tool"
import { openHarness } from "@bezel/core/turn"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { DatabaseSync } from "node:sqlite"
import { scriptedModel } from "../packages/core/src/testing/model.ts"
import { median, spread } from "./measure.ts"

const rounds = 9
const perRound = 2_000

const folder = fs.mkdtempSync(path.join(os.tmpdir(), "bezel-bench-"))
const payload = { text: "x".repeat(60) }

interface Side {
  readonly name: string
  readonly round: Effect.Effect<void, unknown>
}

const sqlite = (name: string) => openSqlite(path.join(folder, name), { durability: "process" })

const bareSqlite = (): Side => {
  const database = new DatabaseSync(path.join(folder, "bare.db"))
  database.exec(
    "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; CREATE TABLE entries (id INTEGER PRIMARY KEY, record TEXT NOT NULL)"
  )
  const [begin, insert, commit] = [
    database.prepare("BEGIN IMMEDIATE"),
    database.prepare("INSERT INTO entries VALUES (?, ?)"),
    database.prepare("COMMIT")
  ]
  let id = 0
  return {
    name: "bare node:sqlite",
    round: Effect.sync(() => {
      for (let n = 0; n < perRound; n++) {
        begin.run()
        insert.run(++id, JSON.stringify(recordOf(id)))
        commit.run()
      }
    })
  }
}

const bareFile = (): Side => {
  const file = fs.openSync(path.join(folder, "bare.jsonl"), "a")
  let id = 0
  return {
    name: "bare file append",
    round: Effect.sync(() => {
      for (let n = 0; n < perRound; n++) fs.writeSync(file, `${JSON.stringify(recordOf(++id))}\n`)
    })
  }
}

const recordOf = (ordinal: number) => ({
  id: `e${ordinal}`,
  ordinal,
  conversation: "c1",
  kind: "bench.note",
  data: payload,
  model: null,
  head: null,
  edits: null,
  createdAt: 1_700_000_000_000
})

const storageSide = (name: string, storage: Storage): Side => {
  let id = 0
  return {
    name,
    round: Effect.gen(function*() {
      for (let n = 0; n < perRound; n++) {
        const entry = recordOf(++id)
        const batch: Batch = {
          conversations: [],
          entries: [entry],
          tasks: [],
          inputs: [],
          documents: [],
          events: [{ conversation: "c1", type: "entry.added", id: entry.id, kind: entry.kind }],
          nextID: id + 1,
          at: entry.createdAt
        }
        yield* storage.commit(batch)
      }
    })
  }
}

const harnessSide = (name: string, storage: Storage, watched: boolean) =>
  Effect.gen(function*() {
    const harness = yield* openHarness(storage, {
      sessionID: "ses_bench",
      models: scriptedModel([]).source,
      tools: yield* makeToolRegistry(),
      artifact: () => Effect.die(new Error("none"))
    })
    yield* harness.resume
    if (watched) yield* Effect.forkScoped(Stream.runDrain((yield* harness.main.watch).envelopes))
    return {
      name,
      round: Effect.gen(function*() {
        for (let n = 0; n < perRound; n++) yield* harness.main.write("bench.note", { data: payload })
      })
    } satisfies Side
  })

await Effect.runPromise(Effect.scoped(Effect.gen(function*() {
  const sides: ReadonlyArray<Side> = [
    bareSqlite(),
    bareFile(),
    storageSide("SQLite storage", yield* sqlite("storage.db")),
    yield* harnessSide("harness over SQLite", yield* sqlite("harness.db"), false),
    yield* harnessSide("the same, watched", yield* sqlite("watched.db"), true),
    storageSide("JSON lines storage", yield* openJsonl(path.join(folder, "journal"))),
    yield* harnessSide("harness over JSON lines", yield* openJsonl(path.join(folder, "harness")), false)
  ]
  const times = new Map(sides.map((side) => [side.name, { wall: new Array<number>(), cpu: new Array<number>() }]))
  for (let round = -1; round < rounds; round++) {
    for (const side of sides) {
      const [started, before] = [performance.now(), process.cpuUsage()]
      yield* side.round
      const [wall, used] = [performance.now() - started, process.cpuUsage(before)]
      // The first round warms up.
      if (round < 0) continue
      times.get(side.name)?.wall.push(wall)
      times.get(side.name)?.cpu.push((used.user + used.system) / 1_000)
    }
  }
  const bare = times.get("bare node:sqlite")
  if (bare === undefined) return
  console.log(
    `${perRound} commits a round, ${rounds} rounds; shares are of bare node:sqlite in this run; the aim is 40 %\n`
  )
  for (const [name, { cpu, wall }] of times) {
    const perSecond = Math.round(perRound / median(wall) * 1_000).toLocaleString("en")
    const share = `${Math.round(median(bare.wall) / median(wall) * 100)} % (±${Math.round(spread(wall) * 100)} %)`
    const cpuShare = `${(median(cpu) / perRound * 1_000).toFixed(1)} µs CPU each, ${
      Math.round(median(bare.cpu) / median(cpu) * 100)
    } %`
    console.log(`${name.padEnd(30)}${perSecond.padStart(9)} per second ${share.padStart(14)}   ${cpuShare}`)
  }
})))
fs.rmSync(folder, { recursive: true })
