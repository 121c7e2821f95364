/** A coordinator in a process of its own with one host running, to be killed. Argument: its folder. */
import { SessionStore } from "@bezel/core/session"
import { Settings } from "@bezel/core/settings"
import { SessionStorage } from "@bezel/core/storage"
import { emptySettings } from "@bezel/core/testing"
import { Placement } from "@bezel/server"
import { processPlacement } from "@bezel/server/process"
import { Effect, Layer } from "effect"
import { mkdirSync } from "node:fs"
import { join } from "node:path"

const root = process.argv[2] ?? ""
const data = join(root, "data")
const work = join(root, "work")
for (const path of [data, work]) mkdirSync(path, { recursive: true })

const layer = processPlacement({
  command: [process.execPath, join(import.meta.dirname, "host-program.ts")],
  state: join(root, "state"),
  plugins: () => Effect.succeed([]),
  options: { data, mode: "leaving" }
}).pipe(
  Layer.provide(SessionStore.layer({ directory: data, version: "test" })),
  Layer.provide(SessionStorage.layer({ directory: data })),
  Layer.provide(Layer.succeed(
    Settings,
    Settings.of({
      user: Effect.succeed(emptySettings),
      forLocation: () => Effect.succeed(emptySettings),
      keys: []
    })
  ))
)

Effect.runFork(
  Effect.gen(function*() {
    const placement = yield* Placement
    yield* placement.place(work)
    process.stdout.write("placed\n")
    return yield* Effect.never
  }).pipe(Effect.scoped, Effect.provide(layer))
)
setInterval(() => {}, 60_000)
