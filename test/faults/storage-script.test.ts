import { type Storage, StorageError } from "@bezel/core/storage"
import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { faultsOf } from "./session-checks.ts"
import { type LifeEnd, runLife, worldOf } from "./session-script.ts"

const limit = 300_000

/** Two lives of one session in this process: the first over what `wrap` makes of its storage, the second over the storage. */
const twoLives = (root: string, name: string, wrap: (storage: Storage) => Storage) =>
  Effect.gen(function*() {
    const life = { backend: "sqlite" as const, folder: path.join(root, name) }
    fs.mkdirSync(life.folder)
    const earlier: Array<string> = []
    const first = yield* Effect.exit(
      Effect.timeout(runLife({ ...life, say: (line) => earlier.push(line), wrap }), "30 seconds")
    )
    const askedBefore = worldOf(life.folder).lines("asked.log").length
    const last: Array<string> = []
    const end: LifeEnd = yield* Effect.timeout(runLife({ ...life, say: (line) => last.push(line) }), "30 seconds")
    const faults = yield* faultsOf({ life, told: [...earlier, ...last], askedBefore, last, end })
    fs.rmSync(life.folder, { recursive: true, force: true })
    return { failed: Exit.isFailure(first), faults: faults.map((fault) => `${name}: ${fault}`) }
  }).pipe(Effect.catchCause((cause) => Effect.succeed({ failed: true, faults: [`${name}: ${String(cause)}`] })))

const temporary = Effect.acquireRelease(
  Effect.sync(() => fs.mkdtempSync(path.join(os.tmpdir(), "bezel-faults-"))),
  (root) => Effect.sync(() => fs.rmSync(root, { recursive: true, force: true }))
)

it.live(
  "the whole script survives a storage that fails at write N, for every N, whether the write was stored or not",
  () =>
    Effect.scoped(Effect.gen(function*() {
      const root = yield* temporary
      const counter = { count: 0 }
      const counting = (storage: Storage): Storage => ({
        ...storage,
        commit: (batch) => Effect.suspend(() => (counter.count++, storage.commit(batch)))
      })
      expect(yield* twoLives(root, "whole", counting)).toEqual({ failed: false, faults: [] })
      expect(counter.count).toBeGreaterThan(40)
      const writes = Array.from({ length: counter.count - 2 }, (_, index) => index + 1)
      const lives = yield* Effect.forEach(
        writes.flatMap((write) => [{ write, stored: true }, { write, stored: false }]),
        ({ stored, write }) => {
          let commits = 0
          return twoLives(root, `write-${write}-${stored ? "stored" : "lost"}`, (storage) => ({
            ...storage,
            commit: (batch) =>
              Effect.suspend(() => {
                if (++commits !== write) return storage.commit(batch)
                const failure = Effect.fail(
                  new StorageError({ kind: stored ? "io" : "disk_full", message: "the disk went away", path: null })
                )
                return stored ? Effect.andThen(storage.commit(batch), failure) : failure
              })
          }))
        },
        { concurrency: 4 }
      )
      expect(lives.flatMap(({ faults }) => faults)).toEqual([])
      expect(lives.filter(({ failed }) => failed).length).toBeGreaterThan(2 * (writes.length - 4))
      yield* Effect.logInfo(
        `${counter.count} writes; ${lives.length} sessions over a storage that failed at one, every one whole`
      )
    })),
  limit
)

it.live(
  "the whole script runs over a storage that takes its time, and loses nothing of it",
  () =>
    Effect.scoped(Effect.gen(function*() {
      const root = yield* temporary
      const slow = (waits: ReadonlyArray<number>) => (storage: Storage): Storage => {
        let commits = 0
        const wait = Effect.suspend(() => Effect.sleep(waits[commits++ % waits.length] ?? 0))
        return { ...storage, commit: (batch) => Effect.andThen(wait, Effect.tap(storage.commit(batch), () => wait)) }
      }
      const lives = yield* Effect.forEach(
        [[1], [0, 5], [7, 0, 0, 1], [0, 0, 20]],
        (waits) => twoLives(root, `waits-${waits.join("-")}`, slow(waits)),
        { concurrency: 4 }
      )
      expect(lives).toEqual(lives.map(() => ({ failed: false, faults: [] })))
    })),
  limit
)
