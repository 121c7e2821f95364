import type { Message } from "@bezel/core/model"
import { exportSession, importSession, SessionStore } from "@bezel/core/session"
import { SessionStorage } from "@bezel/core/storage"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer, type Scope } from "effect"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { batch, entry } from "../storage/batches.ts"

const layer = (at: string) =>
  SessionStore.layer({ directory: at, version: "1.2.3" }).pipe(
    Layer.provideMerge(SessionStorage.layer({ directory: at }))
  )

const inDirectory = <E>(title: string, body: (at: string) => Effect.Effect<void, E, Scope.Scope>): void => {
  it.effect(title, () =>
    Effect.scoped(Effect.flatMap(
      Effect.acquireRelease(
        Effect.sync(() => fs.mkdtempSync(path.join(os.tmpdir(), "bezel-export-"))),
        (folder) => Effect.sync(() => fs.rmSync(folder, { recursive: true, force: true }))
      ),
      body
    )))
}

const here = { directory: "/work/here", workspaceID: null }
const there = { directory: "/work/there", workspaceID: null }

const say = (text: string): ReadonlyArray<Message> => [{ role: "user", content: [{ type: "text", text }] }]

describe("a session as one document", () => {
  const provided = (at: string) => Effect.provide(layer(at))

  const fill = (files: SessionStorage["Service"], id: string) =>
    Effect.scoped(
      Effect.flatMap(files.write(id), (storage) =>
        storage.commit(batch({
          conversations: [
            { id: "c1", parent: null, owner: null, createdAt: 0 },
            { id: "c5", parent: { conversation: "c1", at: "e2" }, owner: "t9", createdAt: 7 }
          ],
          entries: [
            entry(2, { model: say("lone \ud800, \u2028, \r\n"), data: { a: [1, null] } }),
            entry(3, {
              kind: "assistant",
              model: [
                {
                  role: "assistant",
                  content: [{ type: "tool-call", id: "call", name: "read", params: { path: "x" } }],
                  options: { p: { s: 1 } }
                },
                {
                  role: "tool",
                  content: [{ type: "tool-result", id: "call", name: "read", isFailure: false, result: "text" }]
                }
              ]
            }),
            entry(6, {
              conversation: "c5",
              head: { after: "e2" },
              edits: [{ entry: "e2", model: null }],
              model: say("summary")
            })
          ],
          nextID: 20
        })))
    )

  inDirectory(
    "comes back whole in another place, at rest, byte-exact, and goes on from there",
    (at) =>
      Effect.gen(function*() {
        const elsewhere = path.join(at, "elsewhere")
        const { original, text } = yield* Effect.gen(function*() {
          const store = yield* SessionStore
          const files = yield* SessionStorage
          const { id } = yield* store.create({
            location: here,
            title: "T",
            agent: "a",
            model: { provider: "p", model: "m" }
          })
          yield* fill(files, id)
          yield* store.report(id, {
            status: "active",
            usage: { input: 1, output: 2, cacheRead: 3, cacheWrite: 4 },
            cost: 0.5
          })
          return { original: yield* store.get(id), text: JSON.stringify(yield* exportSession(id)) }
        }).pipe(provided(at))
        yield* Effect.gen(function*() {
          const store = yield* SessionStore
          const record = yield* importSession(JSON.parse(text), { location: there })
          const { agent, cost, model, title, usage } = original
          expect(record).toMatchObject({
            agent,
            cost,
            model,
            title,
            usage,
            location: there,
            status: "idle",
            parentID: null
          })
          expect(record.id).not.toBe(original.id)
          const again = yield* exportSession(record.id)
          const { conversations, entries } = JSON.parse(text)
          expect(JSON.parse(JSON.stringify(again))).toMatchObject({ conversations, entries })
          expect(yield* store.context(record.id)).toHaveLength(3)
          expect(yield* store.context(record.id, "c5")).toEqual(say("summary"))
          yield* Effect.scoped(Effect.gen(function*() {
            const storage = yield* (yield* SessionStorage).write(record.id)
            expect(yield* storage.nextID).toBe(7)
            expect(yield* storage.conversation("c5")).toMatchObject({ owner: null })
          }))
        }).pipe(provided(elsewhere))
      })
  )

  inDirectory("of a session that was never written is empty, and can be imported too", (at) =>
    Effect.gen(function*() {
      const store = yield* SessionStore
      const { id } = yield* store.create({ location: here, title: "T" })
      const exported = yield* exportSession(id)
      expect(exported).toMatchObject({ conversations: [], entries: [] })
      const record = yield* importSession(exported, { location: here, id: "ses_copy" })
      expect(record).toMatchObject({ id: "ses_copy", title: "T" })
      expect(yield* Effect.flip(importSession(exported, { location: here, id: "ses_copy" }))).toMatchObject({
        _tag: "SessionExists"
      })
    }).pipe(provided(at)))

  inDirectory(
    "is refused when it is damaged, with the place, and leaves nothing behind",
    (at) =>
      Effect.gen(function*() {
        const store = yield* SessionStore
        const files = yield* SessionStorage
        const { id } = yield* store.create({ location: here })
        yield* fill(files, id)
        const text = JSON.stringify(yield* exportSession(id))
        // oxlint-disable-next-line typescript/no-explicit-any
        const damages: ReadonlyArray<readonly [damage: (exported: any) => unknown, message: RegExp]> = [
          [() => null, /lacks/],
          [() => "text", /lacks/],
          [() => ({}), /lacks/],
          [(exported) => ({ ...exported, format: 2 }), /format 2.*upgrade/],
          [(exported) => ({ ...exported, entries: undefined }), /entries/],
          [(exported) => void (exported.entries[0].ordinal = 0.5), /ordinal/],
          [(exported) => void (exported.entries[2].ordinal = Number.MAX_SAFE_INTEGER), /ordinal/],
          [(exported) => void (exported.entries[0].id = "../x"), /id/],
          [(exported) => void (exported.entries[1].model[0].content[0].type = "image"), /content/],
          [(exported) => void (exported.entries[1].model[0].content = "text"), /content/],
          [(exported) => void (exported.entries[1].id = "e2"), /two entries have one id/],
          [(exported) => void (exported.entries[1].ordinal = 2), /two entries have one place/],
          [(exported) => void (exported.entries[1].conversation = "c7"), /conversation c7, which is not there/],
          [(exported) => void (exported.entries[2].head.after = "e9"), /continues after e9/],
          [(exported) => void (exported.entries[2].edits[0].entry = "e9"), /edits e9/],
          [(exported) => void (exported.conversations[0].parent = { conversation: "c5", at: null }), /is a fork of c5/],
          [(exported) => void (exported.conversations[1].parent.at = "e9"), /forked at e9/],
          [(exported) => void (exported.conversations[1].id = "c1"), /two conversations/],
          [(exported) => void (exported.entries[2].head = { at: "e6" }), /continues after e6, which is not before it/],
          [(exported) => void (exported.entries[0].head = { after: "e3" }), /continues after e3, which is not before/],
          [
            (exported) => void (exported.entries[0].edits = [{ entry: "e2", model: null }]),
            /edits e2, which is not bef/
          ],
          [(exported) => void (exported.entries[0].createdAt = 1e300), /createdAt/],
          [(exported) => void (exported.conversations[0].createdAt = -1e16), /createdAt/],
          [(exported) => void (exported.record.title = "x".repeat(3_000_000)), /title has 3000000 characters/],
          [(exported) => void (exported.record.agent = "x".repeat(1_000)), /name of its agent has 1000/],
          [
            (exported) => void (exported.record.model = { provider: "p", model: "x".repeat(1_000) }),
            /its model has 1000/
          ],
          [(exported) => void (exported.record.cost = -1), /cost is below zero \(-1\)/],
          [(exported) => void (exported.record.cost = 1e300), /cost is larger than anybody's/],
          [(exported) => void (exported.record.usage.cacheRead = -5), /usage \(cacheRead\) is below zero/],
          [(exported) => {
            for (let number = 100; number < 1_200; number++) {
              exported.conversations.push({ id: `c${number}`, parent: null, createdAt: 0 })
            }
          }, /has 1102 conversations/],
          [(exported) => {
            for (let number = 100; number < 2_200; number++) {
              exported.entries.push({ ...exported.entries[2], id: `e${number}`, ordinal: number, edits: null })
            }
          }, /taken back more than 2000 times/]
        ]
        for (const [damage, message] of damages) {
          const exported: unknown = JSON.parse(text)
          const returned = damage(exported)
          const error = yield* Effect.flip(
            importSession(returned === undefined ? exported : returned, { location: here })
          )
          expect(error).toMatchObject({ _tag: "InvalidExport", message: expect.stringMatching(message) })
          expect(error.message).not.toContain("\n")
        }
        expect((yield* store.list()).sessions.map((session) => session.id)).toEqual([id])
        expect(fs.readdirSync(path.join(at, "sessions"))).toEqual([id])
      }).pipe(provided(at))
  )

  inDirectory("of any title can be imported again: a long one is cut when it is given", (at) =>
    Effect.gen(function*() {
      const store = yield* SessionStore
      const { id, title } = yield* store.create({ location: here, title: "🎉".repeat(1_000) })
      expect(title).toBe(`${"🎉".repeat(249)}…`)
      expect(yield* importSession(yield* exportSession(id), { location: here })).toMatchObject({ title })
      const renamed = yield* store.rename(id, "r".repeat(1_000_000))
      expect(renamed.title).toHaveLength(500)
      expect(yield* importSession(yield* exportSession(id), { location: here })).toMatchObject({ title: renamed.title })
    }).pipe(provided(at)))

  inDirectory(
    "whose record was being written when its process was killed holds nothing else of it afterwards",
    (at) =>
      Effect.gen(function*() {
        const store = yield* SessionStore
        const { id } = yield* store.create({ location: here, title: "T" })
        yield* fill(yield* SessionStorage, id)
        const folder = path.join(at, "sessions", id)
        for (const name of ["record.json.4711", "record.json.tmp"]) {
          fs.writeFileSync(path.join(folder, name), '{"id":"s')
        }
        yield* store.opened(id)
        yield* store.rename(id, "Other")
        expect(
          fs.readdirSync(folder).filter((name) => name.startsWith("record"))
        ).toEqual(["record.json"])
        expect(JSON.parse(fs.readFileSync(path.join(folder, "record.json"), "utf8"))).toMatchObject({ title: "Other" })
      }).pipe(provided(at))
  )

  inDirectory("never takes the place of a session's files that no record knows", (at) =>
    Effect.gen(function*() {
      const store = yield* SessionStore
      const files = yield* SessionStorage
      const { id } = yield* store.create({ location: here })
      const exported = yield* exportSession(id)
      yield* fill(files, "ses_lost")
      expect(yield* Effect.flip(importSession(exported, { location: here, id: "ses_lost" }))).toMatchObject({
        _tag: "SessionExists"
      })
      yield* Effect.scoped(Effect.gen(function*() {
        expect(yield* (yield* files.read("ses_lost")).entry("e2")).toMatchObject({ id: "e2" })
      }))
    }).pipe(provided(at)))
})
