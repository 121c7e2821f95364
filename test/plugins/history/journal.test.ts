import { temporaryDirectory } from "@bezel/core/testing"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import { blobID } from "../../../packages/plugins/src/history/file-state.ts"
import { Journal, type Line } from "../../../packages/plugins/src/history/journal.ts"
import { KeptContent } from "../../../packages/plugins/src/history/kept-content.ts"
import { sweepSnapshots } from "../../../packages/plugins/src/history/sweep.ts"
import { collect } from "../../../packages/plugins/src/history/tracker.ts"

const change = (path: string, content: string, mark: number): Line => ({
  type: "change",
  path,
  before: { type: "file", id: blobID(Buffer.from(content)), mode: 0o644, size: content.length },
  after: { type: "absent" },
  marks: { ses_1: mark }
})

describe("the journal of a session", () => {
  it.live("knows what stands, what was taken back, and what had begun when it ended", () =>
    Effect.gen(function*() {
      const path = `${yield* temporaryDirectory}/journal.jsonl`
      const journal = new Journal(path)
      journal.append(change("/a", "a", 1), change("/b", "b", 5))
      journal.append({ type: "reverted", id: "r", session: "ses_1", from: 5 })
      journal.append(change("/c", "c", 7))
      journal.append({ type: "began", id: "t1", at: 1, marks: {} }, { type: "began", id: "t2", at: 2, marks: {} })
      journal.append({ type: "ended", id: "t1", at: 3 }, { type: "settled", open: ["t2"] })
      fs.appendFileSync(path, '{"type":"cha')
      const again = new Journal(path)
      expect(again.damaged).toBe(0)
      expect(again.changes.map(({ path }) => path)).toEqual(["/a", "/c"])
      expect(again.unfinished.map(({ id }) => id)).toEqual(["t2"])
      again.append({ type: "restored", id: "r" })
      expect(new Journal(path).changes.map(({ path }) => path)).toEqual(["/a", "/b", "/c"])
    }).pipe(Effect.scoped))

  it.live("and its contents take in what another process has written there", () =>
    Effect.gen(function*() {
      const folder = yield* temporaryDirectory
      const [one, other] = [new Journal(`${folder}/journal.jsonl`), new Journal(`${folder}/journal.jsonl`)]
      one.append(change("/a", "a", 1))
      other.append({ type: "reverted", id: "r", session: "ses_1", from: 1 })
      expect(one.changes).toHaveLength(1)
      one.refresh()
      expect(one.changes).toEqual([])
      const [mine, others] = [1, 2].map(() => new KeptContent(`${folder}/content`, 1_000))
      const content = (name: string) => Buffer.from(`content of ${name}`)
      const idOf = (name: string) => blobID(content(name))
      for (const name of ["a", "b"]) yield* Effect.promise(async () => mine?.put(idOf(name), content(name)))
      // The other one moves what is there.
      yield* Effect.promise(async () => others?.collect(new Set([idOf("b")])))
      yield* Effect.promise(async () => others?.put(idOf("c"), content("c")))
      const read = (name: string) => Effect.promise(async () => (await mine?.get(idOf(name)))?.toString() ?? null)
      expect([yield* read("a"), yield* read("b"), yield* read("c")]).toEqual([null, "content of b", "content of c"])
    }).pipe(Effect.scoped))

  it.live("gives only whole contents of a file that is torn or damaged, and goes on behind the damage", () =>
    Effect.gen(function*() {
      const path = `${yield* temporaryDirectory}/content`
      const contents = ["first", "second", "third"].map((text) => Buffer.from(text))
      const kept = new KeptContent(path, 1_000_000)
      for (const content of contents) yield* Effect.promise(() => kept.put(blobID(content), content))
      const bytes = fs.readFileSync(path)
      // The length of the second, and a record that a crash has cut off.
      bytes.writeUInt32BE(0xffffffff, bytes.indexOf("second") - 8)
      fs.writeFileSync(path, Buffer.concat([bytes, Buffer.from("BZC1 and no more")]))
      const again = new KeptContent(path, 1_000_000)
      const large = Buffer.from("large ".repeat(40_000))
      yield* Effect.promise(() => again.put(blobID(large), large))
      const read = (from: KeptContent, content: Buffer) => Effect.promise(() => from.get(blobID(content)))
      const later = new KeptContent(path, 1_000_000)
      for (const from of [again, later]) {
        expect((yield* read(from, Buffer.from("first")))?.toString()).toBe("first")
        expect(yield* read(from, Buffer.from("second"))).toBeNull()
        expect((yield* read(from, Buffer.from("third")))?.toString()).toBe("third")
        expect((yield* read(from, large))?.equals(large)).toBe(true)
      }
      expect(fs.statSync(path).size).toBeLessThan(large.length / 2)
    }).pipe(Effect.scoped))

  it.live("stays small: what is accounted for is forgotten, and the changes are not", () =>
    Effect.gen(function*() {
      const path = `${yield* temporaryDirectory}/journal.jsonl`
      const journal = new Journal(path)
      for (let index = 0; index < 1_000; index++) {
        journal.append(
          { type: "ran", marks: { ses_1: index } },
          { type: "began", id: `t${index}`, at: index, marks: {} },
          { type: "ended", id: `t${index}`, at: index },
          { type: "settled", open: [] }
        )
      }
      journal.append(change("/a", "a", 1), { type: "began", id: "open", at: 1, marks: {} })
      journal.tidy()
      const again = new Journal(path)
      expect(again.lines).toHaveLength(3)
      expect([again.hasRun("ses_1", 999), again.hasRun("ses_1", 1_000)]).toEqual([true, false])
      expect(again.unfinished.map(({ id }) => id)).toEqual(["open"])
    }).pipe(Effect.scoped))

  it.live("gives up its oldest changes when their contents take more than they may, and says how far it reaches", () =>
    Effect.gen(function*() {
      const folder = yield* temporaryDirectory
      const journal = new Journal(`${folder}/journal.jsonl`)
      const kept = new KeptContent(`${folder}/content`, 1_000_000)
      const contents = Array.from({ length: 10 }, (_, index) => Buffer.from(`${index}`.repeat(10) + Math.random()))
      for (const [index, content] of contents.entries()) {
        yield* Effect.promise(() => kept.put(blobID(content), content))
        journal.append(change(`/${index}`, content.toString(), index))
      }
      const one = kept.list()[0]?.bytes ?? 0
      yield* Effect.promise(() => collect({ journal, kept }, one * 4.5, new Set()))
      const left = journal.changes.map(({ path }) => path)
      expect(left.at(-1)).toBe("/9")
      expect(left.length).toBeLessThan(7)
      expect(left.length).toBeGreaterThan(2)
      expect(kept.list().length).toBe(left.length)
      expect(journal.reachesBack("ses_1", 9)).toBe(true)
      expect(journal.reachesBack("ses_1", 0)).toBe(false)
    }).pipe(Effect.scoped))
})

describe("snapshots of sessions of the past", () => {
  it.live("lose after two days what can be made anew, and are gone after thirty", () =>
    Effect.gen(function*() {
      const sessions = yield* temporaryDirectory
      const day = 24 * 60 * 60 * 1_000
      const now = Date.now()
      const make = (id: string, age: number) => {
        const folder = `${sessions}/${id}/snapshots`
        fs.mkdirSync(`${folder}/tree`, { recursive: true })
        fs.writeFileSync(`${folder}/journal.jsonl`, "")
        fs.utimesSync(`${folder}/journal.jsonl`, (now - age) / 1_000, (now - age) / 1_000)
        return folder
      }
      const mine = make("mine", 90 * day)
      const young = make("young", day)
      const old = make("old", 3 * day)
      const ancient = make("ancient", 31 * day)
      fs.mkdirSync(`${sessions}/none`)
      yield* Effect.promise(() => sweepSnapshots(mine, now))
      const has = (path: string) => fs.existsSync(path)
      expect([mine, young].map((folder) => has(`${folder}/tree`))).toEqual([true, true])
      expect([has(old), has(`${old}/tree`), has(ancient), has(`${sessions}/ancient`)]).toEqual([
        true,
        false,
        false,
        true
      ])
    }).pipe(Effect.scoped))

  it.live("stay when all seem to be old at once, or one seems to be of the future: the clock may be wrong", () =>
    Effect.gen(function*() {
      const day = 24 * 60 * 60 * 1_000
      const now = Date.now()
      for (const ages of [[40, 3_650], [40, -3_650]]) {
        const sessions = yield* temporaryDirectory
        for (const [index, age] of ages.entries()) {
          fs.mkdirSync(`${sessions}/${index}/snapshots/tree`, { recursive: true })
          const journal = `${sessions}/${index}/snapshots/journal.jsonl`
          fs.writeFileSync(journal, "")
          fs.utimesSync(journal, (now - age * day) / 1_000, (now - age * day) / 1_000)
        }
        yield* Effect.promise(() => sweepSnapshots(`${sessions}/mine/snapshots`, now))
        expect(ages.map((_, index) => fs.existsSync(`${sessions}/${index}/snapshots/tree`))).toEqual([true, true])
      }
    }).pipe(Effect.scoped))
})
