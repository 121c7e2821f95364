import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { closeSync, mkdtempSync, openSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { startProcess } from "../../packages/server/src/process/host-process.ts"
import type { Ledger } from "../../packages/server/src/process/ledger.ts"
import { isSameProcess, type ProcessName } from "../../packages/server/src/process/process-table.ts"
import { eventually } from "../eventually.ts"

const full = () => {
  throw new Error("ENOSPC: no space left on device")
}

const start = (folder: string, ledger: Ledger) =>
  Effect.flip(startProcess({
    order: {
      host: "test",
      location: { directory: folder, workspaceID: null },
      sessionID: null,
      socket: join(folder, "s"),
      coordinator: join(folder, "c"),
      idleMillis: 1_000,
      options: null
    },
    issue: () => "secret",
    command: ["sleep", "1000"],
    environment: process.env,
    log: join(folder, "log"),
    ledger,
    times: { bootMillis: 1_000, stopMillis: 1_000, pingMillis: 1_000, silenceMillis: 1_000 }
  }))

const temporary = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "bezel-host-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
)

/** The lowest number that is free: what stays open moves it. */
const nextDescriptor = () => {
  const descriptor = openSync("/dev/null", "r")
  closeSync(descriptor)
  return descriptor
}

describe("a session host that cannot be written down because the disk is full", () => {
  it.live("is not left running", () =>
    Effect.gen(function*() {
      const started: Array<ProcessName> = []
      let closed = 0
      const error = yield* start(yield* temporary, {
        open: () => ({
          started: (name) => {
            started.push(name)
            full()
          },
          close: () => {
            closed++
          }
        })
      })
      expect(error.message).toContain("The session host could not be started: ENOSPC")
      expect(closed).toBe(1)
      expect(started).toHaveLength(1)
      yield* eventually(() => !started.some(isSameProcess))
    }).pipe(Effect.scoped))

  it.live("holds no file open, however often it is tried", () =>
    Effect.gen(function*() {
      const folder = yield* temporary
      const before = nextDescriptor()
      for (let time = 0; time < 20; time++) yield* start(folder, { open: full })
      expect(nextDescriptor()).toBeLessThan(before + 10)
    }).pipe(Effect.scoped))
})
