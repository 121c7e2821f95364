import { makePresentation, Plugin } from "@bezel/core/host"
import { call, scriptedModel, startModelServer, testSessionHost } from "@bezel/core/testing"
import { builtinTerminalPlugins } from "@bezel/plugins"
import { describe, expect, it, onTestFinished } from "@effect/vitest"
import { Effect, Fiber, Option, Queue, Stream } from "effect"
import * as fs from "node:fs"
import * as path from "node:path"
import { countOf, deployment, deployWith } from "../../examples/authors/checks.ts"
import count, { Count } from "../../examples/authors/count.ts"
import guard from "../../examples/authors/guard.ts"
import { posted, postedOverBadWire } from "../../examples/authors/hosts.ts"
import lines from "../../examples/authors/lines.ts"
import notes, { Notes } from "../../examples/authors/notes.ts"
import parrot from "../../examples/authors/parrot.ts"
import reminder from "../../examples/authors/reminder.ts"
import tickets from "../../examples/authors/tickets.ts"
import watch, { Watched, Watching } from "../../examples/authors/watch.ts"
import { makeHome, root } from "../e2e/command.ts"
import { eventually } from "../matrix/harness.ts"
import { testTerminal } from "../tui/memory-terminal.ts"

describe("the examples for authors", () => {
  it.live("guard: deploys after a yes, and blocks after a no or where nobody is", () =>
    Effect.gen(function*() {
      expect(yield* deployWith(true)).toMatchObject({ answer: "Done.", targets: ["production"] })
      const refused = yield* deployWith(false)
      expect(refused.targets).toEqual([])
      expect(refused.told).toContain("The user has not agreed to this deployment.")
      const { plugin, targets } = deployment()
      const host = yield* testSessionHost([plugin, guard], {
        model: scriptedModel([[call("deploy", { target: "production" })], "No."])
      })
      const { id } = yield* host.session.create()
      expect(yield* host.ask(id, "deploy it")).toBe("No.")
      expect(targets).toEqual([])
    }).pipe(Effect.scoped))

  it.live("tickets: are attached where a person has named them, and nowhere else", () =>
    Effect.gen(function*() {
      const model = scriptedModel(["One.", "Two."])
      const host = yield* testSessionHost([tickets], { model })
      const { id } = yield* host.session.create()
      for (const written of [true, false]) {
        yield* host.session.prompt({ sessionID: id, prompt: { text: "what is #12?", written } })
        yield* host.session.wait(id)
      }
      const sent = model.requests.map(({ messages }) => JSON.stringify(messages))
      const file = Buffer.from("Ticket 12").toString("base64")
      expect(sent.map((text) => text.split(file).length - 1)).toEqual([1, 1])
      expect(sent[0]).toContain(`"fileName":"#12"`)
    }).pipe(Effect.scoped))

  it.live("counter: is in the view of a client", () =>
    Effect.gen(function*() {
      expect(Option.getOrNull(yield* countOf)).toBe(1)
    }).pipe(Effect.scoped))

  it.live("notes: what the terminal notes is shown there and read by the model", () =>
    Effect.gen(function*() {
      const model = scriptedModel(["Hm."])
      const host = yield* testSessionHost([notes], { model })
      const { id } = yield* host.session.create()
      const connection = yield* host.connect(id)
      const presentation = yield* makePresentation({ connection, location: host.location })
      const screen = yield* testTerminal({
        presentation,
        plugins: [...builtinTerminalPlugins("test"), ...Plugin.sources("tui", [notes])]
      })
      yield* screen.until("0 notes")
      yield* screen.type("/note buy milk\r")
      yield* screen.until("1 notes")
      expect((yield* connection.use(Notes)).notes.value).toEqual(["buy milk"])
      yield* host.ask(id, "what now?")
      expect(JSON.stringify(model.requests[0]?.messages)).toContain("Notes of the user:\\n- buy milk")
    }).pipe(Effect.scoped))

  it.live("reminder: tells the model when the time has come", () =>
    Effect.gen(function*() {
      const model = scriptedModel([[call("remind", { text: "Tea is ready.", seconds: 0 })], "Later.", "Yes."])
      const host = yield* testSessionHost([reminder], { model })
      const { id } = yield* host.session.create()
      yield* host.session.prompt({ sessionID: id, prompt: { text: "remind me" } })
      // Nobody asks a second time: the reminder comes within the turn or begins one.
      yield* eventually(() => model.requests.some(({ messages }) => JSON.stringify(messages.at(-1)).includes("Tea is")))
      yield* host.session.wait(id)
      expect(["Later.", "Yes."]).toContain(yield* host.session.finalText(id))
      expect(JSON.stringify(yield* host.session.context(id)).split("Tea is ready.")).toHaveLength(3)
    }).pipe(Effect.scoped))

  it.live("parrot: answers what was said, as the default model", () =>
    Effect.gen(function*() {
      const host = yield* testSessionHost([parrot])
      const { id } = yield* host.session.create()
      expect(yield* host.ask(id, "hello, hello")).toBe("hello, hello")
    }).pipe(Effect.scoped))

  it.live("board: what one folder posts is read in the other, and no folder of it crosses", () =>
    Effect.gen(function*() {
      const { directory, frames, seen } = yield* posted
      expect(Option.getOrNull(seen)).toEqual(["tests are red"])
      expect(frames).toContain("tests are red")
      expect(frames).not.toContain(directory)
      expect(Option.getOrNull(yield* postedOverBadWire)).toEqual(["tests are green"])
    }).pipe(Effect.scoped))

  it.live("watch: each watched file is an instance, whose changes are counted and told, until it is stopped", () =>
    Effect.gen(function*() {
      const model = scriptedModel([[call("watch_file", { file: "note.txt" })], "Watching."])
      const host = yield* testSessionHost([watch], { model })
      const note = path.join(host.location.directory, "note.txt")
      fs.writeFileSync(note, "")
      const { id } = yield* host.session.create()
      const client = yield* host.connect(id)
      const counts = yield* Queue.unbounded<number | string>()
      yield* client.observe(Watched, (watched, file) =>
        Effect.gen(function*() {
          yield* Effect.addFinalizer(() => Queue.offer(counts, `${file} is let go`))
          yield* Stream.runForEach(watched.changes.changes, (value) =>
            Effect.andThen(Queue.offer(counts, value), value === 0 ? Effect.void : Effect.ignore(watched.stop())))
        }))
      const changes = yield* (yield* client.use(Watching)).changed.after(null).pipe(
        Stream.take(1),
        Stream.runCollect,
        Effect.forkScoped
      )
      expect(yield* host.ask(id, "watch it")).toBe("Watching.")
      expect(yield* Queue.take(counts)).toBe(0)
      // A watch of the system begins a moment after it was asked for.
      let writes = 0
      yield* eventually(() => {
        fs.writeFileSync(note, String(++writes))
        return Queue.sizeUnsafe(counts) > 0
      })
      expect(yield* Queue.take(counts)).toBeGreaterThan(0)
      expect(yield* Fiber.join(changes)).toMatchObject([{ type: "event", value: { file: "note.txt", kind: "Update" } }])
      yield* Queue.take(counts).pipe(Effect.repeat({ until: (last) => last === "note.txt is let go" }))
    }).pipe(Effect.scoped))

  it.live("lines: a call reads files and starts a process in the session's folder", () =>
    Effect.gen(function*() {
      const model = scriptedModel([
        [call("count_lines", { file: "note.txt" }), call("count_lines", { file: "none.txt" })],
        "Two."
      ])
      const host = yield* testSessionHost([lines], { model })
      fs.writeFileSync(path.join(host.location.directory, "note.txt"), "one\ntwo\n")
      const { id } = yield* host.session.create()
      expect(yield* host.ask(id, "count")).toBe("Two.")
      const told = JSON.stringify(model.requests.at(-1)?.messages)
      expect(told).toContain("2 note.txt")
      expect(told).toContain("There is no file none.txt.")
    }).pipe(Effect.scoped))

  it.live("count: whoever starts a job gets it, and may wait for it or end it", () =>
    Effect.gen(function*() {
      const host = yield* testSessionHost([count])
      const { directory } = host.location
      fs.mkdirSync(path.join(directory, "texts"))
      fs.writeFileSync(path.join(directory, "texts", "a.txt"), "one\ntwo\n")
      fs.writeFileSync(path.join(directory, "texts", "b.txt"), "three\n")
      const counting = yield* (yield* host.connect()).use(Count)
      const job = yield* counting.start({ folder: "texts" })
      expect(yield* job.wait()).toEqual({ files: 2, lines: 3 })
      yield* job.release
      expect(yield* Effect.flip(job.wait())).toMatchObject({ code: "stale_reference" })
      const other = yield* counting.start({ folder: "texts" })
      yield* other.cancel()
    }).pipe(Effect.scoped))

  it("release: its agent and its command are there, and can be run", async () => {
    const server = await startModelServer({ text: "Prepared." })
    onTestFinished(() => server.close())
    const home = makeHome()
    home.useServer(server, { plugins: [path.join(root, "examples/authors/release.ts")] })
    const ended = await home.run(["run", "/release 1.2.0"], { env: { BEZEL_SOURCE: "1" } })
    expect(ended).toMatchObject({ code: 0, stdout: "Prepared.\n" })
    const sent = JSON.stringify(server.requests[0])
    expect(sent).toContain("Prepare the release 1.2.0: update the changelog")
    expect(sent).toContain("You prepare releases. Never push.")
  })

  it.each([["the bundle", {}], ["the source", { BEZEL_SOURCE: "1" }]])(
    "load as files that settings name, with %s",
    async (_, env) => {
      const home = makeHome()
      const files = ["guard", "notes", "counter", "reminder", "parrot", "board", "watch", "lines", "count", "release"]
      home.settings({ plugins: files.map((name) => path.join(root, `examples/authors/${name}.ts`)) })
      const ended = await home.run(["plugin", "doctor"], { env })
      expect(ended).toMatchObject({ code: 0, stderr: "" })
      for (const name of files) expect(ended.stdout).toMatch(new RegExp(`^✓ example\\.${name}: `, "m"))
    }
  )
})
