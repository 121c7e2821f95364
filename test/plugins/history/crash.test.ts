import type { ScriptedTurn } from "@bezel/core/testing"
import { temporaryDirectory, testSessions } from "@bezel/core/testing"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import { edit, type World, world, write } from "./fixture.ts"

interface Staged {
  readonly phase: string
  readonly steps: ReadonlyArray<{ readonly path: string }>
}

/** Runs `leave` in one host, which is gone afterwards, and `find` in another one over what it has left. */
const acrossHosts = (
  script: ReadonlyArray<ScriptedTurn>,
  leave: (world: World, folder: string) => Effect.Effect<void, unknown>,
  find: (world: World, folder: string) => Effect.Effect<void, unknown>
) =>
  Effect.gen(function*() {
    const sessions = yield* testSessions
    const directory = fs.realpathSync(yield* temporaryDirectory)
    fs.writeFileSync(`${directory}/a.txt`, "one\n")
    const { folder, sessionID } = yield* Effect.scoped(Effect.gen(function*() {
      const first = yield* world(script, { directory, sessions })
      yield* first.ask("go")
      const folder = `${yield* first.host.session.folder(first.sessionID)}-snapshots`
      yield* leave(first, folder)
      return { folder, sessionID: first.sessionID }
    }))
    yield* find(yield* world([], { directory, sessions, sessionID }), folder)
  }).pipe(Effect.scoped)

const turn: ReadonlyArray<ScriptedTurn> = [edit("a.txt", "one", "two"), write("b.txt", "made\n"), "done"]

const stagedIn = (folder: string): ReadonlyArray<Staged> => JSON.parse(fs.readFileSync(`${folder}/staged.json`, "utf8"))

const leaveStaged = (folder: string, stagings: ReadonlyArray<object>) =>
  Effect.sync(() => fs.writeFileSync(`${folder}/staged.json`, JSON.stringify(stagings)))

describe("after a crash", () => {
  it.live("files that were being put back are as the session left them, and nothing is taken back", () =>
    acrossHosts(turn, ({ clear, file, stage }, folder) =>
      Effect.gen(function*() {
        yield* stage()
        const [staged] = stagedIn(folder)
        yield* clear
        yield* leaveStaged(folder, [{ ...staged, phase: "applying", rewind: null }])
        // The first of two files had been put back.
        fs.rmSync(file("b.txt"))
      }), ({ context, read, stage }, folder) =>
      Effect.gen(function*() {
        expect(yield* stage("last", { dryRun: true })).toMatchObject({ conflicts: [], prompt: "go" })
        expect([read("a.txt"), read("b.txt")]).toEqual(["two\n", "made\n"])
        expect(fs.existsSync(`${folder}/staged.json`)).toBe(false)
        expect(yield* context).toContain("go")
      })))

  it.live("between the conversation and the record, what was taken back is taken back and can be brought back", () =>
    acrossHosts(turn, ({ stage }, folder) =>
      Effect.gen(function*() {
        yield* stage()
        const journal = fs.readFileSync(`${folder}/journal.jsonl`, "utf8").split("\n").filter((line) =>
          !line.includes('"reverted"')
        )
        fs.writeFileSync(`${folder}/journal.jsonl`, journal.join("\n"))
        yield* leaveStaged(folder, [{ ...stagedIn(folder)[0], phase: "applying", rewind: null }])
      }), ({ clear, context, read, stage }) =>
      Effect.gen(function*() {
        expect(String(yield* Effect.flip(stage()))).toContain("nothing in this conversation yet")
        expect(yield* clear).toMatchObject({ status: "cleared" })
        expect([read("a.txt"), read("b.txt")]).toEqual(["two\n", "made\n"])
        expect(yield* context).toContain("go")
        expect(yield* stage("last", { dryRun: true })).toMatchObject({ conflicts: [], prompt: "go" })
      })))

  it.live("what was being brought back is taken back again, and can be brought back", () =>
    acrossHosts(turn, ({ file, stage }, folder) =>
      Effect.gen(function*() {
        yield* stage()
        const [staged] = stagedIn(folder)
        const clearing = (staged?.steps ?? []).map((step) => ({
          path: step.path,
          from: Reflect.get(step, "to"),
          to: Reflect.get(step, "from")
        }))
        yield* leaveStaged(folder, [{ ...staged, phase: "clearing", clearing }])
        fs.writeFileSync(file("b.txt"), "made\n")
      }), ({ clear, context, read }) =>
      Effect.gen(function*() {
        expect(yield* context).toBe("[]")
        expect(yield* clear).toMatchObject({ status: "cleared", conflicts: [] })
        expect([read("a.txt"), read("b.txt")]).toEqual(["two\n", "made\n"])
        expect(yield* context).toContain("go")
      })))

  it.live("in the middle of a call, what that may have changed is not taken for the session's", () =>
    acrossHosts(turn, ({ file }, folder) =>
      Effect.sync(() => {
        const began = { type: "began", id: "t99", at: Date.now() - 1_000, marks: {} }
        const lines = fs.readFileSync(`${folder}/journal.jsonl`, "utf8")
        const marks = JSON.parse(lines.split("\n").find((line) => line.includes('"marks"')) ?? "{}").marks
        fs.writeFileSync(
          `${folder}/journal.jsonl`,
          `${lines}${
            JSON.stringify({
              ...began,
              marks,
              path: file("c.txt"),
              before: { type: "absent", below: file("") }
            })
          }\n{"type":"chan`
        )
        fs.writeFileSync(file("c.txt"), "whose?\n")
      }), ({ read, stage }) =>
      Effect.gen(function*() {
        const planned = yield* stage()
        expect(planned.status).toBe("conflict")
        expect(planned.conflicts).toEqual([{
          path: expect.stringMatching(/c\.txt$/),
          reason: expect.stringContaining("cut off")
        }])
        expect(read("c.txt")).toBe("whose?\n")
        expect(yield* stage("last", { conflicts: "keep" })).toMatchObject({ status: "staged" })
        expect([read("a.txt"), read("b.txt"), read("c.txt")]).toEqual(["one\n", null, "whose?\n"])
      })))

  it.live("a record with a damaged line is told of, and the rest of it holds", () =>
    acrossHosts(turn, (_, folder) =>
      Effect.sync(() => {
        const lines = fs.readFileSync(`${folder}/journal.jsonl`, "utf8").split("\n")
        const index = lines.findIndex((line) => line.includes('"change"') && line.includes("b.txt"))
        lines[index] = "\0\0\0"
        fs.writeFileSync(`${folder}/journal.jsonl`, lines.join("\n"))
      }), ({ read, stage }) =>
      Effect.gen(function*() {
        const staged = yield* stage()
        expect(staged.notes.join()).toContain("Records of changes are damaged (1)")
        expect(read("a.txt")).toBe("one\n")
      })))
})
