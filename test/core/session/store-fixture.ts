import type { Message } from "@bezel/core/model"
import { SessionStore, type SessionStoreShape } from "@bezel/core/session"
import { SessionStorage } from "@bezel/core/storage"
import { it } from "@effect/vitest"
import { Effect, Layer, type Scope } from "effect"
import { spawn } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { DatabaseSync } from "node:sqlite"
import { fileURLToPath } from "node:url"

export const directory = Effect.acquireRelease(
  Effect.sync(() => fs.mkdtempSync(path.join(os.tmpdir(), "bezel-store-"))),
  (folder) => Effect.sync(() => fs.rmSync(folder, { recursive: true, force: true }))
)

export type Body<E> = (
  store: SessionStoreShape,
  files: SessionStorage["Service"]
) => Effect.Effect<void, E, Scope.Scope>

export const layer = (at: string) =>
  SessionStore.layer({ directory: at, version: "1.2.3" }).pipe(
    Layer.provideMerge(SessionStorage.layer({ directory: at }))
  )

export const use = <E>(at: string, body: Body<E>) =>
  Effect.scoped(Effect.gen(function*() {
    yield* body(yield* SessionStore, yield* SessionStorage)
  })).pipe(Effect.provide(layer(at)))

/** A test of a store in a data directory of its own, and of one in memory. */
export const both = <E>(title: string, body: Body<E>): void => {
  it.effect(title, () => Effect.scoped(Effect.flatMap(directory, (at) => use(at, body))))
  it.effect(`${title} (in memory)`, () =>
    Effect.scoped(Effect.gen(function*() {
      yield* body(yield* SessionStore, yield* SessionStorage)
    })).pipe(Effect.provide(SessionStore.layerMemory.pipe(Layer.provideMerge(SessionStorage.layerMemory)))))
}

export const inDirectory = <E>(title: string, body: (at: string) => Effect.Effect<void, E, Scope.Scope>): void => {
  it.effect(title, () => Effect.scoped(Effect.flatMap(directory, body)))
}

/** Opens a session for writing and closes it again, as whoever runs it does. */
export const openOnce = (store: SessionStoreShape, files: SessionStorage["Service"], sessionID: string) =>
  Effect.scoped(Effect.andThen(files.write(sessionID), store.opened(sessionID)))

export const here = { directory: "/work/here", workspaceID: null }
export const there = { directory: "/work/there", workspaceID: null }

export const say = (text: string): ReadonlyArray<Message> => [{ role: "user", content: [{ type: "text", text }] }]

export const titles = (page: { readonly sessions: ReadonlyArray<{ readonly title: string }> }) =>
  page.sessions.map((session) => session.title)

export const withDatabase = <A>(at: string, step: (database: DatabaseSync) => A): A => {
  const database = new DatabaseSync(path.join(at, "catalogue.db"))
  try {
    return step(database)
  } finally {
    database.close()
  }
}

export const damageRecord = (at: string): void =>
  withDatabase(at, (database) => database.exec("UPDATE sessions SET record = '{' WHERE id = 'ses_bad'"))

export const storedRecord = (at: string): string =>
  withDatabase(
    at,
    (database) => String(database.prepare("SELECT record FROM sessions WHERE id = 'ses_bad'").get()?.record)
  )

/** In a process of their own. */
export const makeChildren = (at: string, parentID: string, count: number) =>
  Effect.promise(() =>
    new Promise<number | null>((resolve) => {
      const program = fileURLToPath(new URL("./store-process.ts", import.meta.url))
      const child = spawn(process.execPath, [program, at, parentID, String(count)], { stdio: "inherit" })
      child.once("exit", resolve)
    })
  )
