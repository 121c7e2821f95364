/** The stored keys: a private file, one writer at a time, and tokens that are renewed in time. */
import { it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { TestClock } from "effect/testing"
import { chmodSync, existsSync, readFileSync, statSync, writeFileSync } from "node:fs"
import type { ServerResponse } from "node:http"
import { join } from "node:path"
import { describe, expect } from "vitest"
import { type Grant, makeCredentialStore } from "../../../packages/plugins/src/accounts/index.ts"
import { begin } from "../../../packages/plugins/src/accounts/oauth.ts"
import { authorizationServer, temporaryFolder } from "./authorization-server.ts"

const key = Redacted.make("sk-secret-1")
const valueOf = (found: { readonly value: Redacted.Redacted } | null) =>
  found === null ? null : Redacted.value(found.value)

const grant = (change: Partial<Grant> = {}): Grant => ({
  access: Redacted.make("access-0"),
  refresh: Redacted.make("refresh-0"),
  expiresAt: null,
  ...change
})

describe("the stored keys of a user", () => {
  it.effect("are kept in a file that only this user can read, and are there for the next process", () =>
    Effect.gen(function*() {
      const folder = yield* temporaryFolder
      const directory = join(folder, "data")
      yield* makeCredentialStore(directory).setKey("acme", key)
      expect(statSync(join(directory, "credentials.json")).mode & 0o777).toBe(0o600)
      expect(statSync(directory).mode & 0o777).toBe(0o700)
      const next = makeCredentialStore(directory)
      expect(valueOf(yield* next.get("acme"))).toBe("sk-secret-1")
      expect(yield* next.list).toEqual([{ provider: "acme", kind: "key", savedAt: 0, expiresAt: null }])
    }).pipe(Effect.scoped))

  it.effect("are made private if others could read them", () =>
    Effect.gen(function*() {
      const directory = yield* temporaryFolder
      const store = makeCredentialStore(directory)
      yield* store.setKey("acme", key)
      chmodSync(join(directory, "credentials.json"), 0o644)
      expect(valueOf(yield* store.get("acme"))).toBe("sk-secret-1")
      expect(statSync(join(directory, "credentials.json")).mode & 0o777).toBe(0o600)
    }).pipe(Effect.scoped))

  it.effect("that are not there make no file and are no error, whatever the name", () =>
    Effect.gen(function*() {
      const directory = yield* temporaryFolder
      const store = makeCredentialStore(directory)
      for (const name of ["acme", "constructor", "__proto__", "toString"]) {
        expect(yield* store.get(name)).toBe(null)
        expect(yield* store.remove(name)).toBe(false)
      }
      expect(existsSync(join(directory, "credentials.json"))).toBe(false)
      yield* store.setKey("__proto__", key)
      expect(valueOf(yield* store.get("__proto__"))).toBe("sk-secret-1")
      expect(yield* store.get("acme")).toBe(null)
    }).pipe(Effect.scoped))

  it.effect("that are damaged are told, without their contents, and are never overwritten", () =>
    Effect.gen(function*() {
      const directory = yield* temporaryFolder
      const file = join(directory, "credentials.json")
      for (
        const text of [
          "",
          "{",
          "[]",
          '{"version":2,"providers":{}}',
          '{"version":1,"providers":{"a":{"key":"sk-secret-1"}}}'
        ]
      ) {
        writeFileSync(file, text)
        const store = makeCredentialStore(directory)
        for (const attempt of [store.get("acme"), store.setKey("acme", key), store.remove("acme")]) {
          const { message } = yield* Effect.flip(attempt)
          expect(message).toContain(`${file} are damaged`)
          expect(message).not.toContain("sk-secret")
        }
        expect(readFileSync(file, "utf8")).toBe(text)
      }
    }).pipe(Effect.scoped))

  it.live("of many writers at once are all kept", () =>
    Effect.gen(function*() {
      const directory = yield* temporaryFolder
      const names = Array.from({ length: 20 }, (_, index) => `p${index}`)
      yield* Effect.forEach(names, (name) => makeCredentialStore(directory).setKey(name, key), {
        concurrency: "unbounded"
      })
      const all = yield* makeCredentialStore(directory).list
      expect(all.map(({ provider }) => provider).sort()).toEqual(names.sort())
    }).pipe(Effect.scoped))
})

describe("a token that was signed in for", () => {
  it.effect("is given as it is while it is good, and renewed a minute before it expires", () =>
    Effect.gen(function*() {
      const server = yield* authorizationServer
      const store = makeCredentialStore(yield* temporaryFolder)
      server.lifetime = 600
      // What the server gives first is as good as any.
      const first = yield* exchange(server)
      yield* store.setGrant("acme", first, { tokenURL: server.tokenURL, clientID: "bezel" })
      const before = valueOf(yield* store.get("acme"))
      yield* TestClock.adjust("8 minutes")
      expect(valueOf(yield* store.get("acme"))).toBe(before)
      yield* TestClock.adjust("90 seconds")
      const after = yield* store.get("acme")
      expect(after?.kind).toBe("token")
      expect(valueOf(after)).not.toBe(before)
      expect(valueOf(yield* store.get("acme"))).toBe(valueOf(after))
    }).pipe(Effect.scoped))

  it.live("is renewed once, however many ask for it at once", () =>
    Effect.gen(function*() {
      const server = yield* authorizationServer
      const directory = yield* temporaryFolder
      const first = yield* exchange(server)
      yield* makeCredentialStore(directory).setGrant("acme", { ...first, expiresAt: 1 }, {
        tokenURL: server.tokenURL,
        clientID: "bezel"
      })
      const asked = server.forms.length
      // Each store is as good as a process of its own: they meet in the file and its lock only.
      const keys = yield* Effect.forEach(
        Array.from({ length: 8 }, () => makeCredentialStore(directory)),
        (store) => store.get("acme"),
        { concurrency: "unbounded" }
      )
      expect(new Set(keys.map(valueOf)).size).toBe(1)
      expect(server.forms.length).toBe(asked + 1)
    }).pipe(Effect.scoped))

  it.live("that was refused is renewed before its time, once, with the secret and for the resource that it was got for", () =>
    Effect.gen(function*() {
      const server = yield* authorizationServer
      const directory = yield* temporaryFolder
      const first = yield* exchange(server)
      yield* makeCredentialStore(directory).setGrant("acme", first, {
        tokenURL: server.tokenURL,
        clientID: "bezel",
        clientSecret: Redacted.make("s3cret"),
        clientAuth: "post",
        resource: "https://x/"
      })
      const asked = server.forms.length
      const keys = yield* Effect.forEach(
        Array.from({ length: 5 }, () => makeCredentialStore(directory)),
        (store) => store.get("acme", { refused: first.access }),
        { concurrency: "unbounded" }
      )
      expect(new Set(keys.map(valueOf)).size).toBe(1)
      expect(valueOf(keys[0] ?? null)).not.toBe(Redacted.value(first.access))
      expect(server.forms.slice(asked).map((form) => [form.get("client_secret"), form.get("resource")])).toEqual([
        ["s3cret", "https://x/"]
      ])
      // One that somebody else has had renewed already is no reason to do it again.
      yield* makeCredentialStore(directory).get("acme", { refused: first.access })
      expect(server.forms).toHaveLength(asked + 1)
    }).pipe(Effect.scoped))

  it.effect("that cannot be renewed is told with the server's reason, and is kept", () =>
    Effect.gen(function*() {
      const server = yield* authorizationServer
      const store = makeCredentialStore(yield* temporaryFolder)
      yield* store.setGrant("acme", grant({ expiresAt: -1 }), { tokenURL: server.tokenURL, clientID: "bezel" })
      const { message } = yield* Effect.flip(store.get("acme"))
      expect(message).toBe("acme did not accept the sign-in: invalid_grant, no [2J.")
      expect(yield* store.list).toHaveLength(1)
    }).pipe(Effect.scoped))

  it.effect("and a server that answers nonsense, too much or nothing end in one sentence without a secret", () =>
    Effect.gen(function*() {
      const server = yield* authorizationServer
      const store = makeCredentialStore(yield* temporaryFolder)
      yield* store.setGrant("acme", grant({ expiresAt: -1 }), { tokenURL: server.tokenURL, clientID: "bezel" })
      const answers: ReadonlyArray<(response: ServerResponse) => void> = [
        (response) => response.end("<html>"),
        (response) => response.end('{"access_token":""}'),
        (response) => response.end('{"access_token":7}'),
        (response) => response.end("x".repeat(1_000_000)),
        (response) => response.writeHead(302, { location: "http://127.0.0.1:1/" }).end(),
        (response) => response.writeHead(500).end("refresh-0"),
        (response) => response.destroy()
      ]
      for (const answer of answers) {
        server.answer = answer
        const { message } = yield* Effect.flip(store.get("acme"))
        expect(message).toMatch(/^(Cannot sign in to acme: .*|acme did not accept the sign-in: .*)\.$/)
        expect(message).not.toContain("refresh-0")
      }
      expect(yield* store.list).toHaveLength(1)
    }).pipe(Effect.scoped))
})

/** A grant from the server, as a finished sign-in gives it. */
const exchange = (server: Effect.Success<typeof authorizationServer>) =>
  Effect.gen(function*() {
    const begun = yield* begin("acme", { ...server, clientID: "bezel" })
    const back = yield* Effect.promise(() => server.browse(begun.url))
    return yield* begun.finish(back.href)
  })
