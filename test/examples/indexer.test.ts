import { Conversation, conversationKey } from "@bezel/core/host"
import { SessionRuntime } from "@bezel/core/session"
import {
  call,
  scriptedModel,
  temporaryDirectory,
  type TestSessionHost,
  testSessionHost,
  testSessions
} from "@bezel/core/testing"
import { ToolFailure } from "@bezel/core/tool"
import { describe, expect, it } from "@effect/vitest"
import { Context, Deferred, Effect, Exit, Option, Scope, Stream } from "effect"
import * as fs from "node:fs"
import * as path from "node:path"
import indexer, { fileSink, indexerPlugin, indexFile, readIndex, type Sink } from "../../examples/indexer/indexer.ts"
import { makeHome, root } from "../e2e/command.ts"

const files = ["a.txt", "b.txt", "c.txt", "sub/d.txt", "sub/e.txt"]

const folder = Effect.map(temporaryDirectory, (directory) => {
  const place = fs.realpathSync(directory)
  fs.mkdirSync(path.join(place, "sub"))
  for (const file of files) fs.writeFileSync(path.join(place, file), "x")
  return place
})

const host = (directory: string, sink: Sink, sessions?: Effect.Success<typeof testSessions>) =>
  testSessionHost([indexerPlugin(sink)], {
    directory,
    model: scriptedModel([[call("index", {})], "started", "told"]),
    entries: { "example.indexer": { options: { filesPerBatch: 2 } } },
    ...(sessions === undefined ? {} : { sessions })
  })

const viewOf = (of: TestSessionHost, sessionID: string) =>
  Effect.gen(function*() {
    const connection = yield* of.connect(sessionID)
    const conversation = yield* connection.use(Conversation, { key: conversationKey(sessionID, "c1") })
    yield* conversation.ready
    return conversation.view
  })

type View = Effect.Success<ReturnType<typeof viewOf>>

const until = <A>(view: View, look: (now: Stream.Success<View["changes"]>) => A | undefined) =>
  view.changes.pipe(
    Stream.map(look),
    Stream.filter((found) => found !== undefined),
    Stream.runHead,
    Effect.map(Option.getOrThrow)
  )

const indexed = (view: View) => until(view, ({ plugins }) => /\d files indexed/.exec(String(plugins.indexer))?.[0])

describe("the indexer", () => {
  it.live("works in the background of the turn that started it, shows how far it is, and tells the model when it is done", () =>
    Effect.gen(function*() {
      const directory = yield* folder
      const go = yield* Deferred.make<void>()
      const running = yield* host(directory, {
        write: (place, batch) => Effect.andThen(Deferred.await(go), fileSink.write(place, batch))
      })
      const { id } = yield* running.session.create()
      const view = yield* viewOf(running, id)
      expect(yield* running.ask(id, "index it")).toBe("started")
      // It has scanned when it writes, which may be after the turn has ended.
      const shown = yield* until(view, ({ tasks, turn }) => {
        const [task] = Object.values(tasks)
        return turn === null && JSON.stringify(task?.status).includes("writing") ? task : undefined
      })
      expect(shown).toEqual({
        kind: "example.indexer",
        background: true,
        status: { stage: "writing", files: 0, last: null }
      })
      expect(yield* until(view, ({ plugins }) => plugins.indexer)).toBe("being indexed")
      yield* Deferred.succeed(go, undefined)
      expect(yield* indexed(view)).toBe("5 files indexed")
      expect(yield* until(view, ({ tasks }) => Object.keys(tasks).length === 0 ? true : undefined)).toBe(true)
      expect((yield* readIndex(directory)).map((batch) => batch.files)).toEqual([
        files.slice(0, 2),
        files.slice(2, 4),
        files.slice(4)
      ])
      expect(yield* running.ask(id, "and?")).toBe("told")
      expect(JSON.stringify(yield* running.session.context(id))).toContain("The index of 5 files is complete.")
    }).pipe(Effect.scoped))

  it.live("that dies between its effect and its checkpoint writes that batch again, and the index has it once", () =>
    Effect.gen(function*() {
      const directory = yield* folder
      const sessions = yield* testSessions
      const dying = yield* Scope.make()
      const written = yield* Deferred.make<void>()
      let writes = 0
      const first = yield* host(directory, {
        write: (place, batch) =>
          Effect.gen(function*() {
            yield* fileSink.write(place, batch)
            if (++writes === 2) {
              yield* Deferred.succeed(written, undefined)
              return yield* Effect.never
            }
          })
      }, sessions).pipe(Scope.provide(dying))
      const { id } = yield* first.session.create()
      yield* first.ask(id, "index it")
      yield* Deferred.await(written)
      yield* Scope.close(dying, Exit.void)
      // The crash has also cut off what was being written behind it.
      fs.appendFileSync(path.join(directory, indexFile), '\n{"key":"half')
      const repeated: Array<string> = []
      const second = yield* host(directory, {
        write: (place, batch) => {
          repeated.push(batch.files.join())
          return fileSink.write(place, batch)
        }
      }, sessions)
      const view = yield* viewOf(second, id)
      expect(yield* indexed(view)).toBe("5 files indexed")
      expect(repeated).toEqual(["c.txt,sub/d.txt", "sub/e.txt"])
      const lines = fs.readFileSync(path.join(directory, indexFile), "utf8").split("\n").filter((line) =>
        line.endsWith("}")
      )
      expect(lines).toHaveLength(4)
      expect((yield* readIndex(directory)).flatMap((batch) => batch.files)).toEqual(files)
    }).pipe(Effect.scoped))

  it.live("whose effect fails ends as failed and leaves the session as it is", () =>
    Effect.gen(function*() {
      const directory = yield* folder
      const go = yield* Deferred.make<void>()
      const running = yield* host(directory, {
        write: () => Effect.andThen(Deferred.await(go), new ToolFailure({ message: "the disk is full" }))
      })
      const { id } = yield* running.session.create()
      const view = yield* viewOf(running, id)
      expect(yield* running.ask(id, "index it")).toBe("started")
      const task = yield* until(view, ({ tasks }) => Object.keys(tasks)[0])
      yield* Deferred.succeed(go, undefined)
      const { main } = yield* Context.get(running.services, SessionRuntime).open(id)
      expect(yield* main.waitForTask({ id: task, kind: "example.indexer" })).toMatchObject({
        status: "failed",
        failure: { message: "the disk is full" }
      })
      expect(yield* until(view, ({ tasks }) => Object.keys(tasks).length === 0 ? true : undefined)).toBe(true)
      expect(yield* running.ask(id, "and?")).toBe("told")
    }).pipe(Effect.scoped))

  it("is loaded as a file that settings name", async () => {
    const home = makeHome()
    home.settings({ plugins: [path.join(root, "examples/indexer/indexer.ts")] })
    const source = { env: { BEZEL_SOURCE: "1" } }
    expect((await home.run(["plugin", "list"], source)).stdout).toMatch(new RegExp(`${indexer.id} +1\\.0\\.0 +loaded`))
    expect((await home.run(["tool", "list"], source)).stdout).toMatch(/^index\b/m)
  })
})
