import { type SessionInUse, SessionStorage, type StorageError } from "@bezel/core/storage"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Exit, type Scope } from "effect"
import { type ChildProcess, spawn } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"
import { batch, entry } from "./batches.ts"
import { storageConformance } from "./conformance.ts"

const directory = Effect.acquireRelease(
  Effect.sync(() => fs.mkdtempSync(path.join(os.tmpdir(), "bezel-sessions-"))),
  (folder) => Effect.sync(() => fs.rmSync(folder, { recursive: true, force: true }))
)

const use = <A, E>(at: string, body: (files: SessionStorage["Service"]) => Effect.Effect<A, E, Scope.Scope>) =>
  Effect.scoped(Effect.flatMap(SessionStorage, body)).pipe(Effect.provide(SessionStorage.layer({ directory: at })))

/** A test in a data directory of its own. */
const inDirectory = <E>(title: string, body: (at: string) => Effect.Effect<void, E, Scope.Scope>): void => {
  it.effect(title, () => Effect.scoped(Effect.flatMap(directory, body)))
}

interface Other {
  readonly child: ChildProcess
  /** What it printed next. */
  readonly next: Effect.Effect<{ readonly [key: string]: unknown }>
  readonly say: (line: string) => Effect.Effect<void>
  readonly ended: Effect.Effect<void>
}

/** Another process, killed with the scope if it still runs. */
const other = (
  mode: "write" | "stream" | "read",
  at: string,
  sessionID: string
): Effect.Effect<Other, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() =>
        spawn(process.execPath, [fileURLToPath(new URL("./process.ts", import.meta.url)), mode, at, sessionID], {
          stdio: ["pipe", "pipe", "inherit"]
        })
      ),
      (child) => Effect.sync(() => void child.kill("SIGKILL"))
    ),
    (child) => {
      const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
      const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()))
      return {
        child,
        next: Effect.promise(async () => {
          const line = await lines.next()
          return line.done === true ? { ended: true } : JSON.parse(line.value)
        }),
        say: (line) => Effect.sync(() => void child.stdin.write(`${line}\n`)),
        ended: Effect.promise(() => exited)
      }
    }
  )

storageConformance(
  "a session in a data directory",
  Effect.gen(function*() {
    const at = yield* directory
    const files = yield* Effect.orDie(Effect.provide(SessionStorage, SessionStorage.layer({ directory: at })))
    const typed = <A>(effect: Effect.Effect<A, StorageError | SessionInUse, Scope.Scope>) =>
      effect.pipe(Effect.catchTag("SessionInUse", (error) => Effect.die(error)))
    return { write: typed(files.write("ses_1")), read: typed(files.read("ses_1")) }
  })
)

describe("the writer lease of a session", () => {
  inDirectory(
    "is one at a time, also within a process, and names its holder",
    (at) =>
      use(at, (files) =>
        Effect.gen(function*() {
          const storage = yield* files.write("ses_1")
          const error = yield* Effect.flip(Effect.scoped(files.write("ses_1")))
          expect(error).toMatchObject({ _tag: "SessionInUse", sessionID: "ses_1", holder: { pid: process.pid } })
          // Another session is another lease; the holder goes on.
          yield* Effect.scoped(files.write("ses_2"))
          expect(yield* storage.commit(batch({ entries: [entry(1)] }))).toBe(1)
        }))
  )

  inDirectory("is free as soon as its scope ends", (at) =>
    use(at, (files) =>
      Effect.gen(function*() {
        for (let sequence = 1; sequence <= 5; sequence++) {
          expect(yield* Effect.scoped(Effect.flatMap(files.write("ses_1"), (storage) => storage.commit(batch({})))))
            .toBe(sequence)
        }
      })))

  inDirectory(
    "keeps a second process out, and tells it who holds it",
    (at) =>
      use(at, (files) =>
        Effect.gen(function*() {
          yield* files.write("ses_1")
          const second = yield* other("write", at, "ses_1")
          const { error } = yield* second.next
          expect(error).toMatchObject({ _tag: "SessionInUse", holder: { pid: process.pid } })
          expect(error).toHaveProperty("holder.startedAt", expect.stringMatching(/^\d{4}-\d\d-\d\dT/))
          expect(error).toHaveProperty("holder.command", expect.stringMatching(/node/))
        }))
  )

  inDirectory(
    "that another process holds is told here, and is free when that process ends",
    (at) =>
      use(at, (files) =>
        Effect.gen(function*() {
          const holder = yield* other("write", at, "ses_1")
          yield* holder.next
          const error = yield* Effect.flip(Effect.scoped(files.write("ses_1")))
          expect(error).toMatchObject({ _tag: "SessionInUse", holder: { pid: holder.child.pid } })
          yield* holder.say("end")
          yield* holder.ended
          const storage = yield* files.write("ses_1")
          expect(yield* storage.sequence).toBe(0)
        }))
  )

  inDirectory(
    "of a killed process is free at once, and what that process acknowledged is there",
    (at) =>
      use(at, (files) =>
        Effect.gen(function*() {
          const holder = yield* other("write", at, "ses_1")
          yield* holder.next
          for (let sequence = 1; sequence <= 3; sequence++) {
            yield* holder.say("commit")
            expect(yield* holder.next).toEqual({ sequence })
          }
          holder.child.kill("SIGKILL")
          yield* holder.ended
          const start = performance.now()
          const storage = yield* files.write("ses_1")
          expect(performance.now() - start).toBeLessThan(1_000)
          expect((yield* storage.entries({ conversation: "c1" })).map((item) => item.id)).toEqual(["e1", "e2", "e3"])
          expect(yield* storage.commit(batch({ entries: [entry(4)], nextID: 5 }))).toBe(4)
        }))
  )

  inDirectory(
    "of a process that is killed in the middle of its writing leaves whole commits, all that were acknowledged among them",
    (at) =>
      use(at, (files) =>
        Effect.gen(function*() {
          let stored = 0
          for (const acknowledgements of [1, 7, 40, 150]) {
            const holder = yield* other("stream", at, "ses_1")
            expect(yield* holder.next).toEqual({ ready: stored })
            let acknowledged = 0
            for (let index = 0; index < acknowledgements; index++) acknowledged = Number((yield* holder.next).sequence)
            holder.child.kill("SIGKILL")
            yield* holder.ended
            const reader = yield* files.read("ses_1")
            stored = yield* reader.sequence
            expect(stored).toBeGreaterThanOrEqual(acknowledged)
            const expected = Array.from({ length: stored }, (_, index) => `e${index + 1}`)
            expect((yield* reader.entries({ conversation: "c1" })).map((item) => item.id)).toEqual(expected)
            expect(yield* reader.document("d")).toEqual({ entries: expected })
            expect(yield* reader.documentAt("d", 1)).toEqual({ entries: ["e1"] })
            expect(yield* reader.nextID).toBe(stored + 1)
            expect(yield* reader.history(0, 10_000)).toHaveLength(stored)
          }
        }))
  )

  inDirectory("is the same through a symlinked path", (at) =>
    Effect.gen(function*() {
      const link = `${at}-link`
      yield* Effect.acquireRelease(Effect.sync(() => fs.symlinkSync(at, link)), () =>
        Effect.sync(() => fs.unlinkSync(link)))
      yield* use(at, (files) =>
        Effect.gen(function*() {
          yield* files.write("ses_1")
          const second = yield* other("write", link, "ses_1")
          expect((yield* second.next).error).toMatchObject({ _tag: "SessionInUse", holder: { pid: process.pid } })
          const here = yield* Effect.exit(use(link, (again) =>
            again.write("ses_1")))
          expect(Exit.isFailure(here)).toBe(true)
        }))
    }))

  inDirectory("goes to exactly one of four processes that want it at once", (at) =>
    Effect.gen(function*() {
      const all = yield* Effect.all(Array.from({ length: 4 }, () => other("write", at, "ses_1")))
      const said = yield* Effect.all(all.map((one) => one.next), { concurrency: "unbounded" })
      expect(said.filter((line) => "ready" in line)).toHaveLength(1)
      const pid = all[said.findIndex((line) => "ready" in line)]?.child.pid
      for (const line of said.filter((one) => "error" in one)) {
        expect(line.error).toMatchObject({ _tag: "SessionInUse", holder: { pid } })
      }
    }))

  inDirectory(
    "survives that its holder reads and copies the session's files",
    (at) =>
      use(at, (files) =>
        Effect.gen(function*() {
          const storage = yield* files.write("ses_1")
          yield* storage.commit(batch({ entries: [entry(1)] }))
          const folder = path.join(at, "sessions", "ses_1")
          fs.readFileSync(path.join(folder, "lease.json"))
          fs.copyFileSync(path.join(folder, "session.db"), path.join(at, "copy.db"))
          const second = yield* other("write", at, "ses_1")
          expect((yield* second.next).error).toMatchObject({ _tag: "SessionInUse" })
        }))
  )

  inDirectory("does not depend on the file that names the holder", (at) =>
    use(at, (files) =>
      Effect.gen(function*() {
        const named = path.join(at, "sessions", "ses_1", "lease.json")
        yield* Effect.scoped(files.write("ses_1"))
        fs.writeFileSync(named, JSON.stringify({ pid: process.pid, startedAt: "", command: "a stale name" }))
        yield* Effect.scoped(files.write("ses_1"))
        fs.writeFileSync(named, "{ damaged")
        yield* Effect.scoped(files.write("ses_1"))
        yield* files.write("ses_1")
        // A process that is dead does not hold it, whatever the file says.
        const dead = yield* other("read", at, "ses_none")
        yield* dead.ended
        fs.writeFileSync(named, JSON.stringify({ pid: dead.child.pid, startedAt: "", command: "dead" }))
        const error = yield* Effect.flip(Effect.scoped(files.write("ses_1")))
        expect(error).toMatchObject({
          _tag: "SessionInUse",
          holder: { pid: 0, command: expect.stringMatching(/has not said/) }
        })
      })))
})

describe("reading beside the writer", () => {
  inDirectory(
    "works from another process, which sees whole commits and needs no lease",
    (at) =>
      use(at, (files) =>
        Effect.gen(function*() {
          const storage = yield* files.write("ses_1")
          yield* storage.commit(batch({ entries: [entry(1), entry(2)] }))
          expect(yield* (yield* other("read", at, "ses_1")).next).toEqual({ ready: 1, entries: ["e1", "e2"] })
          yield* storage.commit(batch({ entries: [entry(3)] }))
          expect(yield* (yield* other("read", at, "ses_1")).next).toEqual({ ready: 2, entries: ["e1", "e2", "e3"] })
        }))
  )

  inDirectory(
    "works here while another process writes, and goes on after that process was killed",
    (at) =>
      use(at, (files) =>
        Effect.gen(function*() {
          const holder = yield* other("write", at, "ses_1")
          yield* holder.next
          yield* holder.say("commit")
          yield* holder.next
          const reader = yield* files.read("ses_1")
          expect(yield* reader.sequence).toBe(1)
          yield* holder.say("commit")
          yield* holder.next
          expect(yield* reader.sequence).toBe(2)
          holder.child.kill("SIGKILL")
          yield* holder.ended
          expect(yield* reader.sequence).toBe(2)
          const again = yield* files.read("ses_1")
          expect((yield* again.entries({ conversation: "c1" })).map((item) => item.id)).toEqual(["e1", "e2"])
        }))
  )
})

describe("a session whose files cannot grow any more", () => {
  inDirectory(
    "fails with a typed error, and what it acknowledged stays readable",
    (at) =>
      use(at, (files) =>
        Effect.gen(function*() {
          const script = fileURLToPath(new URL("./process.ts", import.meta.url))
          const limited = yield* Effect.acquireRelease(
            Effect.sync(() =>
              spawn("sh", ["-c", `ulimit -f 400; exec "$0" "$@"`, process.execPath, script, "stream", at, "ses_1"], {
                stdio: ["ignore", "pipe", "inherit"]
              })
            ),
            (child) => Effect.sync(() => void child.kill("SIGKILL"))
          )
          const lines: Array<{ readonly sequence?: number; readonly error?: unknown }> = []
          yield* Effect.promise(async () => {
            for await (const line of createInterface({ input: limited.stdout })) lines.push(JSON.parse(line))
          })
          expect(lines.at(-1)?.error).toMatchObject({
            _tag: "StorageError",
            kind: expect.stringMatching(/^(io|disk_full)$/)
          })
          const acknowledged = lines.filter((line) => line.sequence !== undefined).length
          expect(acknowledged).toBeGreaterThan(0)
          const storage = yield* files.write("ses_1")
          expect(yield* storage.sequence).toBe(acknowledged)
          expect(yield* storage.entries({ conversation: "c1" })).toHaveLength(acknowledged)
          expect(yield* storage.commit(batch({ entries: [entry(acknowledged + 1)] }))).toBe(acknowledged + 1)
        }))
  )
})

describe("the folder of a session", () => {
  inDirectory("is its user's alone, and so are the files in it", (at) =>
    use(at, (files) =>
      Effect.gen(function*() {
        yield* files.write("ses_1")
        const artifacts = yield* files.folder("ses_1")
        const folder = path.join(fs.realpathSync(at), "sessions", "ses_1")
        expect(artifacts).toBe(path.join(folder, "files"))
        for (const name of [folder, artifacts]) expect(fs.statSync(name).mode & 0o777).toBe(0o700)
        for (const name of ["session.db", "lease.db", "lease.json"]) {
          expect(fs.statSync(path.join(folder, name)).mode & 0o777).toBe(0o600)
        }
      })))

  inDirectory("goes whole when the session is removed", (at) =>
    use(at, (files) =>
      Effect.gen(function*() {
        yield* Effect.scoped(
          Effect.flatMap(files.write("ses_1"), (storage) => storage.commit(batch({ entries: [entry(1)] })))
        )
        fs.writeFileSync(path.join(yield* files.folder("ses_1"), "artifact"), "text")
        yield* files.remove("ses_1")
        expect(fs.readdirSync(path.join(at, "sessions"))).toEqual([])
        expect(yield* Effect.flip(files.remove("ses_1"))).toMatchObject({ kind: "not_found" })
        const storage = yield* files.write("ses_1")
        expect(yield* storage.sequence).toBe(0)
      })))

  inDirectory("is not removed while the session is in use", (at) =>
    use(at, (files) =>
      Effect.gen(function*() {
        const holder = yield* other("write", at, "ses_1")
        yield* holder.next
        expect(yield* Effect.flip(files.remove("ses_1"))).toMatchObject({
          _tag: "SessionInUse",
          holder: { pid: holder.child.pid }
        })
        yield* holder.say("commit")
        expect(yield* holder.next).toEqual({ sequence: 1 })
      })))

  inDirectory(
    "never lies outside the data directory, whatever the id",
    (at) =>
      use(at, (files) =>
        Effect.gen(function*() {
          for (const id of ["../x", "..", ".", "a/b", "/etc", "", "a\0b", "x".repeat(500), ".removed"]) {
            expect(yield* Effect.flip(Effect.scoped(files.write(id)))).toMatchObject({ kind: "not_found" })
            expect(yield* Effect.flip(Effect.scoped(files.read(id)))).toMatchObject({ kind: "not_found" })
            expect(yield* Effect.flip(files.remove(id))).toMatchObject({ kind: "not_found" })
            expect(yield* Effect.flip(files.folder(id))).toMatchObject({ kind: "not_found" })
          }
          expect(fs.readdirSync(at)).toEqual(["sessions"])
        }))
  )

  inDirectory(
    "that is not there is `not_found` to a reader, by the session's name",
    (at) =>
      use(at, (files) =>
        Effect.gen(function*() {
          const error = yield* Effect.flip(Effect.scoped(files.read("ses_none")))
          expect(error).toMatchObject({ kind: "not_found", message: expect.stringContaining("ses_none") })
          expect(fs.readdirSync(path.join(at, "sessions"))).toEqual([])
        }))
  )

  inDirectory("cannot be made where the data directory is a file, and says where", (at) =>
    Effect.gen(function*() {
      const blocked = path.join(at, "file")
      fs.writeFileSync(blocked, "")
      const error = yield* Effect.flip(use(blocked, () => Effect.void))
      expect(error.message).toContain(blocked)
    }))
})

describe("sessions in memory", () => {
  it.effect("have one writer, readers beside it, and last as long as the layer", () =>
    Effect.scoped(Effect.gen(function*() {
      const files = yield* SessionStorage
      yield* Effect.scoped(Effect.gen(function*() {
        const storage = yield* files.write("ses_1")
        yield* storage.commit(batch({ entries: [entry(1)] }))
        const reader = yield* files.read("ses_1")
        expect(yield* reader.sequence).toBe(1)
        expect(yield* Effect.flip(Effect.scoped(files.write("ses_1")))).toMatchObject({ _tag: "SessionInUse" })
        expect(yield* Effect.flip(files.remove("ses_1"))).toMatchObject({ _tag: "SessionInUse" })
      }))
      const storage = yield* Effect.scoped(files.write("ses_1"))
      expect(yield* storage.sequence).toBe(1)
      expect(fs.statSync(yield* files.folder("ses_1")).isDirectory()).toBe(true)
      yield* files.remove("ses_1")
      expect(yield* Effect.flip(Effect.scoped(files.read("ses_1")))).toMatchObject({ kind: "not_found" })
    })).pipe(Effect.provide(SessionStorage.layerMemory)))
})
