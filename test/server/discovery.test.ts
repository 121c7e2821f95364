/** Notes, leases and tokens of a server as files: what is stale, damaged or somebody else's. */
import { temporaryDirectory } from "@bezel/core/testing"
import { createToken, findServer, listTokens, readOwnToken, revokeToken } from "@bezel/server/discovery"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { startOf } from "../../packages/server/src/process/process-table.ts"
import { announceServer, claimServer } from "../../packages/server/src/serve/discovery.ts"
import { createPassingToken, dropPassingTokens, makeTokens, ownToken } from "../../packages/server/src/serve/tokens.ts"

const folders = Effect.map(temporaryDirectory, (root) => {
  const made = { data: join(root, "data"), state: join(root, "state") }
  for (const folder of Object.values(made)) mkdirSync(folder)
  return { ...made, root }
})

const here = { url: "http://127.0.0.1:4747", version: "test" }

describe("finding the server of a data folder", () => {
  it.effect("finds one that has announced itself, also through a link to the folder, until it ends", () =>
    Effect.gen(function*() {
      const { data, root, state } = yield* folders
      const link = join(root, "link")
      symlinkSync(data, link)
      yield* Effect.scoped(Effect.gen(function*() {
        yield* claimServer({ data, state })
        yield* announceServer({ data, state }, here)
        expect(yield* findServer({ data, state })).toMatchObject({ url: here.url, pid: process.pid })
        expect(yield* findServer({ data: link, state })).toMatchObject({ url: here.url })
        expect(yield* findServer({ data: join(root, "other"), state })).toBe(null)
        for (const name of readdirSync(state)) expect(statSync(join(state, name)).mode & 0o777).toBe(0o600)
      }))
      expect(yield* findServer({ data, state })).toBe(null)
      expect(readdirSync(state)).toEqual([])
    }).pipe(Effect.scoped))

  it.effect("takes no note for a server whose process is gone, is another one of that number, or that is damaged", () =>
    Effect.gen(function*() {
      const { data, state } = yield* folders
      yield* announceServer({ data, state }, here)
      const file = join(state, readdirSync(state)[0] ?? "")
      const note = JSON.parse(readFileSync(file, "utf8"))
      expect(note.start).toBe(startOf(process.pid))
      for (const stale of [{ ...note, start: "of another" }, { ...note, pid: 4_194_305 }, { ...note, pid: -1 }, {}]) {
        writeFileSync(file, JSON.stringify(stale))
        expect(yield* findServer({ data, state })).toBe(null)
      }
      writeFileSync(file, "{")
      expect(yield* findServer({ data, state })).toBe(null)
      writeFileSync(file, JSON.stringify(note))
      expect(yield* findServer({ data, state })).toMatchObject({ url: here.url })
    }).pipe(Effect.scoped))

  it.live("lets one server have a data folder, and the next one as soon as it has ended", () =>
    Effect.gen(function*() {
      const { data, state } = yield* folders
      yield* Effect.scoped(Effect.gen(function*() {
        yield* claimServer({ data, state })
        const error = yield* Effect.flip(Effect.scoped(claimServer({ data, state })))
        expect(error.message).toContain(`process ${process.pid}`)
        yield* announceServer({ data, state }, here)
        expect((yield* Effect.flip(Effect.scoped(claimServer({ data, state })))).message).toContain(here.url)
      }))
      yield* Effect.scoped(claimServer({ data, state }))
    }).pipe(Effect.scoped))
})

describe("tokens", () => {
  it.effect("admit their bearers with their scopes; those that were given away are kept as digests", () =>
    Effect.gen(function*() {
      const { state } = yield* folders
      expect(yield* readOwnToken(state)).toBe(null)
      const own = yield* ownToken(state)
      expect(Redacted.value((yield* readOwnToken(state)) ?? Redacted.make(""))).toBe(Redacted.value(own))
      const given = yield* createToken(state, { name: "phone", scope: "read", now: 0 })
      const tokens = makeTokens(state, own)
      expect(tokens.find(Redacted.value(own))).toEqual({ name: "owner", scope: "admin" })
      expect(tokens.find(Redacted.value(given))).toEqual({ name: "phone", scope: "read" })
      for (const wrong of ["", "bzl_", `${Redacted.value(own)} `, "\0"]) expect(tokens.find(wrong)).toBe(null)
      expect(readFileSync(join(state, "tokens.json"), "utf8")).not.toContain(Redacted.value(given))
      expect(statSync(join(state, "tokens.json")).mode & 0o777).toBe(0o600)
    }).pipe(Effect.scoped))

  it.effect("that are revoked are refused from the next call on, and their names are free again", () =>
    Effect.gen(function*() {
      const { state } = yield* folders
      const tokens = makeTokens(state, yield* ownToken(state))
      const first = yield* createToken(state, { name: "phone", scope: "prompt", now: 0 })
      expect(tokens.find(Redacted.value(first))?.name).toBe("phone")
      expect((yield* Effect.flip(createToken(state, { name: "phone", scope: "read", now: 0 }))).message).toContain(
        "already"
      )
      expect(yield* revokeToken(state, "phone")).toBe(true)
      expect(tokens.find(Redacted.value(first))).toBe(null)
      expect(yield* revokeToken(state, "phone")).toBe(false)
      const second = yield* createToken(state, { name: "phone", scope: "read", now: 0 })
      expect(tokens.find(Redacted.value(second))).toEqual({ name: "phone", scope: "read" })
      expect((yield* listTokens(state)).map(({ name }) => name)).toEqual(["phone"])
    }).pipe(Effect.scoped))

  it.effect("that a server made by itself can be seen and revoked, and end with it or with its death", () =>
    Effect.gen(function*() {
      const { state } = yield* folders
      const tokens = makeTokens(state, yield* ownToken(state))
      const kept = yield* createToken(state, { name: "phone", scope: "prompt", now: 0 })
      const wanted = { name: "browser", scope: "read", now: 0 } as const
      const [first, second, third] = [
        yield* createPassingToken(state, wanted),
        yield* createPassingToken(state, wanted),
        yield* createPassingToken(state, wanted)
      ].map((token) => Redacted.value(token))
      const names = Effect.map(listTokens(state), (all) => all.map(({ name }) => name))
      expect(yield* names).toEqual(["phone", "browser", "browser-2", "browser-3"])
      expect(tokens.find(first ?? "")).toEqual({ name: "browser", scope: "read" })
      expect(yield* revokeToken(state, "browser")).toBe(true)
      expect([tokens.find(first ?? ""), tokens.find(second ?? "")?.name]).toEqual([null, "browser-2"])
      // As if another process had made it: one that is alive keeps its own, and nobody else takes it.
      const file = join(state, "tokens.json")
      const of = (pid: number) => readFileSync(file, "utf8").replace(`"server": ${process.pid}`, `"server": ${pid}`)
      writeFileSync(file, of(process.ppid))
      expect([tokens.find(second ?? ""), tokens.find(third ?? "")?.name]).toEqual([null, "browser-3"])
      yield* dropPassingTokens(state)
      expect(yield* names).toEqual(["phone", "browser-2"])
      writeFileSync(file, readFileSync(file, "utf8").replace(`${process.ppid}`, "999999999"))
      yield* dropPassingTokens(state)
      expect(yield* names).toEqual(["phone"])
      expect(tokens.find(Redacted.value(kept))?.name).toBe("phone")
    }).pipe(Effect.scoped))

  it.effect("in a file that is damaged admit nobody but the owner", () =>
    Effect.gen(function*() {
      const { state } = yield* folders
      const own = yield* ownToken(state)
      const given = yield* createToken(state, { name: "phone", scope: "admin", now: 0 })
      const tokens = makeTokens(state, own)
      writeFileSync(join(state, "tokens.json"), '[{ "name": "phone" }]')
      expect(tokens.find(Redacted.value(given))).toBe(null)
      expect(tokens.find(Redacted.value(own))?.name).toBe("owner")
      expect((yield* Effect.flip(listTokens(state))).message).toContain("is damaged")
    }).pipe(Effect.scoped))
})
