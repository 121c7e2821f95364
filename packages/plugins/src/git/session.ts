/**
 * The session facet of git: keeps the status of the location's repository as state.
 *
 *     a client is there ─▶ looks ─▶ watches .git (two folders, never the work tree)
 *                            ▲            │ something happens · calls of a turn have ended · refresh
 *                            └── rests ◀──┘
 *
 * Nothing is run before a client is there, and nothing at all outside of a repository. After each look it rests: a moment, and
 * longer where looking takes long, so that it never takes more than a tenth of the time. What a person changes in the work
 * tree alone is seen at the next look.
 */
import type { SessionContext } from "@bezel/core/host"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Queue from "effect/Queue"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { watch } from "node:fs"
import * as path from "node:path"
import { Git, GitEvent, GitStatus } from "./contract.ts"
import { makeReadStatus } from "./look.ts"
import { findRepository } from "./repository.ts"

type Context = Pick<
  SessionContext,
  "location" | "provide" | "state" | "events" | "namespace" | "hooks" | "clients" | "onActivate"
>

const restMillis = 200

/** Tells of changes of head, index and branches, until the scope ends. One that cannot be watched is not. */
const watchFolders = (folders: ReadonlyArray<string>, changed: () => unknown) =>
  Effect.forEach(folders, (folder) =>
    Effect.acquireRelease(
      Effect.sync(() => {
        try {
          const watcher = watch(folder, { persistent: false }, (_, name) => {
            // Git's own locks come and go around each change.
            if (name === null || !name.endsWith(".lock")) changed()
          })
          watcher.on("error", () => watcher.close())
          return watcher
        } catch {
          return null
        }
      }),
      (watcher) => Effect.sync(() => watcher?.close())
    ), { discard: true })

/** The facet for session hosts. */
export const session = Effect.fn("git/session")(function*(ctx: Context) {
  const { directory } = ctx.location
  const status = yield* ctx.state(Schema.NullOr(GitStatus), null)
  const happened = yield* ctx.events(GitEvent)
  const wishes = yield* Queue.make<Deferred.Deferred<void>>()
  /** The look that has not begun yet; one stands for all who want one meanwhile. */
  let waiting: Deferred.Deferred<void> | null = null

  const wish = (): Deferred.Deferred<void> => {
    if (waiting !== null) return waiting
    waiting = Deferred.makeUnsafe<void>()
    Queue.offerUnsafe(wishes, waiting)
    return waiting
  }

  const readStatus = yield* makeReadStatus
  const look = Effect.gen(function*() {
    const now = yield* readStatus(directory)
    const before = yield* status.get
    if (JSON.stringify(now) === JSON.stringify(before)) return
    yield* status.set(now)
    yield* happened.emit({ type: "status_changed" })
    if (before?.head !== now?.head && before !== null) {
      yield* happened.emit({ type: "head_changed", from: before.head, to: now?.head ?? null })
    }
  })

  let isWatching = false
  const watchOnce = Effect.gen(function*() {
    if (isWatching) return
    const repository = yield* Effect.promise(() => findRepository(directory))
    if (repository === null) return
    isWatching = true
    yield* watchFolders([repository.gitDirectory, path.join(repository.gitDirectory, "refs", "heads")], wish)
  })

  const work = Effect.gen(function*() {
    const asked = yield* Queue.take(wishes)
    waiting = null
    const began = yield* Clock.currentTimeMillis
    // What happens between the two is seen twice rather than never.
    yield* Effect.ignoreCause(watchOnce)
    yield* Effect.ignoreCause(look)
    yield* Deferred.succeed(asked, undefined)
    const took = (yield* Clock.currentTimeMillis) - began
    yield* Effect.sleep(Math.max(restMillis, 9 * took))
  })

  yield* ctx.provide(Git, {
    status,
    happened,
    refresh: () => Effect.suspend(() => Deferred.await(wish()))
  })

  // A call may have changed anything; who knows that it did not saves nothing.
  const namespace = yield* ctx.namespace("git", {})
  yield* ctx.hooks(namespace, "post_tools", {
    afterTools: () =>
      Effect.sync(() => {
        if (isWatching) wish()
      })
  })

  yield* ctx.onActivate(Effect.gen(function*() {
    yield* Effect.forkScoped(Effect.forever(work))
    const changes = yield* Effect.forkScoped(Stream.runHead(ctx.clients.changes))
    const isThere = (yield* ctx.clients.list).length > 0
    yield* Effect.forkScoped(
      Effect.andThen(isThere ? Effect.void : Fiber.await(changes), Effect.sync(wish))
    )
  }))
})
