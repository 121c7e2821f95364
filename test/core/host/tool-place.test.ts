/** The files and processes of a running call: those of the place of its host, and no longer than the call. */
import { Plugin } from "@bezel/core/host"
import { call, scriptedModel, temporaryDirectory, testSessionHost } from "@bezel/core/testing"
import { tool, type ToolCall } from "@bezel/core/tool"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as ChildProcess from "effect/process/ChildProcess"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { memory, open, user } from "../turn/fixture.ts"

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    // A process that nobody has waited for is dead all the same.
    return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, "utf8"))
  } catch {
    return false
  }
}

const work = (execute: (call: ToolCall) => Effect.Effect<string | void, { readonly message: string }>) =>
  tool({ description: "Works.", input: Schema.Struct({}), execute: (_, api) => execute(api) })

/** Has the model call the tool once; gives its directory and what the model was told. */
const calling = Effect.fnUntraced(function*(
  execute: (call: ToolCall) => Effect.Effect<string | void, { readonly message: string }>,
  files: { readonly [name: string]: string } = {}
) {
  const directory = yield* temporaryDirectory
  for (const [name, text] of Object.entries(files)) writeFileSync(join(directory, name), text)
  const model = scriptedModel([[call("work", {})], "Done."])
  const host = yield* testSessionHost([
    Plugin.define({
      id: "test.work",
      session: (ctx) => Effect.asVoid(ctx.tool.transform((draft) => draft.set("work", work(execute))))
    })
  ], { directory, model })
  const { id } = yield* host.session.create()
  return { directory, host, id, told: () => JSON.stringify(model.requests.at(-1)?.messages.at(-1)) }
})

/** A shell that starts a long sleep and waits for it; the sleep's id is in `child.pid` once it runs. */
const sleeper = ChildProcess.make("sh", ["-c", "sleep 300 & echo $! > part; mv part child.pid; echo up; wait"])

const childOf = (directory: string): number => Number(readFileSync(join(directory, "child.pid"), "utf8"))

const started = (api: ToolCall) =>
  Effect.flatMap(
    api.process.spawn(sleeper),
    ({ stdout }) => stdout.pipe(Stream.decodeText, Stream.splitLines, Stream.take(1), Stream.runHead)
  )

describe("the files of a call", () => {
  it.live("are seen from the location's folder, whatever the process's working directory is", () =>
    Effect.gen(function*() {
      const { directory, host, id, told } = yield* calling((api) =>
        Effect.gen(function*() {
          const files = yield* api.fs
          const text = yield* files.readFileString("note.txt")
          yield* files.writeFileString("copy.txt", text.toUpperCase())
          return `read ${text}`
        }), { "note.txt": "here" })
      expect(yield* host.ask(id, "work")).toBe("Done.")
      expect(told()).toContain("read here")
      expect(readFileSync(join(directory, "copy.txt"), "utf8")).toBe("HERE")
    }).pipe(Effect.scoped))

  it.live("answer a fault of theirs with a result that the model can act on", () =>
    Effect.gen(function*() {
      const { host, id, told } = yield* calling((api) =>
        Effect.flatMap(api.fs, (files) => files.readFileString("missing.txt"))
      )
      expect(yield* host.ask(id, "work")).toBe("Done.")
      expect(told()).toContain("missing.txt")
      expect(told()).not.toContain("because of a fault in it")
    }).pipe(Effect.scoped))
})

describe("the processes of a call", () => {
  it.live("start in the location's folder", () =>
    Effect.gen(function*() {
      const { directory, host, id, told } = yield* calling((api) =>
        Effect.flatMap(api.process.spawn(ChildProcess.make("pwd")), ({ stdout }) =>
          Stream.mkString(Stream.decodeText(stdout)))
      )
      yield* host.ask(id, "work")
      expect(told()).toContain(directory)
    }).pipe(Effect.scoped))

  it.live("end with the call, and with them what they have started", () =>
    Effect.gen(function*() {
      let alive = false
      const { directory, host, id } = yield* calling((api) =>
        Effect.gen(function*() {
          yield* started(api)
          alive = isAlive(childOf(directory))
        })
      )
      expect(yield* host.ask(id, "work")).toBe("Done.")
      expect(alive).toBe(true)
      expect(isAlive(childOf(directory))).toBe(false)
    }).pipe(Effect.scoped))

  it.live("end when the call fails", () =>
    Effect.gen(function*() {
      const { directory, host, id, told } = yield* calling((api) =>
        Effect.andThen(started(api), Effect.fail({ message: "no good" }))
      )
      yield* host.ask(id, "work")
      expect(told()).toContain("no good")
      expect(isAlive(childOf(directory))).toBe(false)
    }).pipe(Effect.scoped))

  it.live("end when the call is interrupted", () =>
    Effect.gen(function*() {
      const running = Promise.withResolvers<void>()
      const { directory, host, id } = yield* calling((api) =>
        Effect.andThen(started(api), Effect.andThen(Effect.sync(running.resolve), Effect.never))
      )
      const { inputID } = yield* host.session.prompt({ sessionID: id, prompt: { text: "work" } })
      yield* Effect.promise(() => running.promise)
      expect(isAlive(childOf(directory))).toBe(true)
      yield* host.session.interrupt(id)
      expect(yield* host.session.wait(id, inputID)).toMatchObject({ status: "unanswered", reason: "aborted" })
      expect(isAlive(childOf(directory))).toBe(false)
    }).pipe(Effect.scoped))

  it.live("are none after the call", () =>
    Effect.gen(function*() {
      const kept: Array<ToolCall> = []
      const { directory, host, id } = yield* calling((api) =>
        Effect.sync(() => {
          kept.push(api)
        })
      )
      yield* host.ask(id, "work")
      for (const late of kept) yield* Effect.exit(late.process.spawn(sleeper))
      expect(kept).toHaveLength(1)
      expect(existsSync(join(directory, "child.pid")) && isAlive(childOf(directory))).toBe(false)
    }).pipe(Effect.scoped))
})

describe("a harness that was opened without a place", () => {
  it.effect("says so to a tool that asks for files or processes", () =>
    Effect.gen(function*() {
      const { harness, model } = yield* open(memory().storage(), [[call("files", {}), call("spawn", {})], "Done."], {
        tools: (draft) => {
          draft.set("files", work((api) => Effect.asVoid(api.fs)))
          draft.set("spawn", work((api) => Effect.asVoid(api.process.spawn(ChildProcess.make("true")))))
        }
      })
      yield* harness.resume
      const input = yield* harness.main.send(user("go"))
      expect(yield* input.wait).toMatchObject({ status: "done" })
      const told = JSON.stringify(model.requests.at(-1)?.messages)
      expect(told.split("the harness was opened without a place")).toHaveLength(3)
    }).pipe(Effect.scoped))
})
