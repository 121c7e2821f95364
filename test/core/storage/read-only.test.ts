import { SessionStorage } from "@bezel/core/storage"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { spawn } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"
import { batch, entry } from "./batches.ts"

/** Who may do anything must be somebody else to be refused something. */
const somebody = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {}

const allow = (folder: string, mode: "r" | "rw"): void => {
  for (const file of fs.readdirSync(folder, { recursive: true, withFileTypes: true })) {
    fs.chmodSync(
      path.join(file.parentPath, file.name),
      (file.isDirectory() ? 0o555 : 0o444) | (mode === "rw" ? 0o200 : 0)
    )
  }
  fs.chmodSync(folder, mode === "rw" ? 0o755 : 0o555)
}

/** What a process that may only read is told when it opens the session. */
const opening = (mode: "read" | "write", directory: string) =>
  Effect.promise(async (): Promise<unknown> => {
    const program = fileURLToPath(new URL("./process.ts", import.meta.url))
    const child = spawn(process.execPath, [program, mode, directory, "ses_1"], {
      stdio: ["ignore", "pipe", "inherit"],
      ...somebody
    })
    const ended = new Promise((resolve) => child.once("exit", resolve))
    const line = await createInterface({ input: child.stdout })[Symbol.asyncIterator]().next()
    await ended
    return JSON.parse(line.value ?? "null")
  })

describe("a session whose files may only be read", () => {
  for (
    const [format, read] of [["sqlite", { error: { kind: "read_only" } }], ["jsonl", { entries: ["e1"] }]] as const
  ) {
    it.live(`is refused for writing with kind and path, and stays as it was (${format})`, () =>
      Effect.scoped(Effect.gen(function*() {
        const directory = yield* Effect.acquireRelease(
          Effect.sync(() => fs.mkdtempSync(path.join(os.tmpdir(), "bezel-read-only-"))),
          (folder) =>
            Effect.sync(() => {
              allow(folder, "rw")
              fs.rmSync(folder, { recursive: true })
            })
        )
        const written = (ordinal: number) =>
          Effect.scoped(Effect.gen(function*() {
            const storage = yield* (yield* SessionStorage).write("ses_1")
            yield* storage.commit(batch({ entries: [entry(ordinal)], nextID: ordinal + 1 }))
            return (yield* storage.entries({ conversation: "c1" })).map(({ id }) => id)
          })).pipe(Effect.provide(SessionStorage.layer({ directory, format })))
        yield* written(1)
        allow(directory, "r")
        expect(yield* opening("write", directory)).toMatchObject({
          error: { _tag: "StorageError", kind: "permission", path: expect.stringContaining(directory) }
        })
        // A database cannot even be read where nothing may be written beside it; it says so.
        expect(yield* opening("read", directory)).toMatchObject(read)
        allow(directory, "rw")
        expect(yield* written(2)).toEqual(["e1", "e2"])
      })))
  }
})
